//! The inputs of a call.

use tokaido_wire::{kyoto::Pairs, lenient::integer};

use super::{
    number,
    refusal::{Kind, Refusal},
};

/// The prefix of record keys among the inputs and outputs of a call.
const KEY_PREFIX: u8 = b'_';

/// The inputs of a call.
#[derive(Clone, Debug)]
pub(crate) struct Inputs {
    pairs: Pairs,
    /// Maximum size of the call's reply.
    reply_bytes_max: usize,
}

impl Inputs {
    /// These pairs, for a reply of at most this many bytes.
    pub(crate) fn new(pairs: Pairs, reply_bytes_max: usize) -> Self {
        Self { pairs, reply_bytes_max }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&[u8]> {
        self.pairs.get(name.as_bytes()).map(Vec::as_slice)
    }

    /// Whether it was given, with any value.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// An input that must be given.
    pub(crate) fn need(&self, name: &str) -> Result<&[u8], Refusal> {
        self.get(name).ok_or_else(Refusal::parameters)
    }

    pub(crate) fn integer(&self, name: &str) -> Option<i64> {
        self.get(name).map(integer)
    }

    pub(crate) fn float(&self, name: &str) -> Option<f64> {
        self.get(name).map(number::float)
    }

    /// The expiry of what is written.
    pub(super) fn xt(&self) -> i64 {
        self.integer("xt").unwrap_or(i64::MAX)
    }

    /// A number of records, if one was given that is not negative.
    pub(super) fn max(&self) -> usize {
        self.integer("max").and_then(|max| usize::try_from(max).ok()).unwrap_or(usize::MAX)
    }

    /// The keys that were given, each with its value.
    pub(crate) fn records(&self) -> impl ExactSizeIterator<Item = (&[u8], &[u8])> {
        let from = vec![KEY_PREFIX];
        let to = vec![KEY_PREFIX + 1];
        let records: Vec<_> = self.pairs.range(from..to).collect();
        records.into_iter().map(|(name, value)| (&name[1..], value.as_slice()))
    }

    pub(crate) fn pairs(&self) -> &Pairs {
        &self.pairs
    }

    /// Refuses a reply that is too large.
    pub(super) fn check_reply(&self, bytes: usize) -> Result<(), Refusal> {
        if bytes <= self.reply_bytes_max {
            return Ok(());
        }
        let message = format!(
            "the reply is over {} bytes; ask for less, or raise limits.kyoto_reply_bytes_max",
            self.reply_bytes_max
        );
        Err(Refusal::new(Kind::Invalid, message))
    }
}

/// The name of an output for a key.
pub(super) fn output_name(key: &[u8]) -> Vec<u8> {
    [&[KEY_PREFIX], key].concat()
}

/// Outputs with a single one, of that name.
pub(super) fn output(name: &str, value: impl Into<Vec<u8>>) -> Pairs {
    Pairs::from([(name.as_bytes().to_vec(), value.into())])
}
