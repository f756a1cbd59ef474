//! The requests of one thread, one after the other.

use super::{
    keys::KeySource,
    operation::{Mix, Operation},
    protocol::{Codec, Sent},
    values::ValueSource,
};
use crate::random::Random;

/// Makes requests.
pub(super) struct Requests {
    pub(super) codec: Box<dyn Codec>,
    pub(super) keys: KeySource,
    pub(super) values: ValueSource,
    pub(super) mix: Mix,
    pub(super) random: Random,
    /// Room for a key.
    pub(super) key: Vec<u8>,
}

impl Requests {
    /// Appends the next request.
    pub(super) fn next(&mut self, out: &mut Vec<u8>) -> Sent {
        let kind = self.mix.at(self.random.next());
        self.keys.next(&mut self.random, &mut self.key);
        let value = match kind {
            super::Kind::Set => self.values.next(&mut self.random),
            _ => &[],
        };
        let before = out.len();
        self.codec.encode(&Operation { kind, key: &self.key, value }, out);
        Sent { kind, len: out.len() - before }
    }
}
