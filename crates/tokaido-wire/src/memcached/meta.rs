//! Meta commands: a key and single-letter flags.

use super::{
    error::RequestError,
    limits::{KEY_LEN_MAX, META_WORDS_MAX, OPAQUE_LEN_MAX},
    number,
    request::{Exptime, Words},
};
use crate::base64;

/// A key as it was sent, and the bytes that it stands for.
#[derive(Clone, Debug)]
pub struct MetaKey<'a> {
    given: &'a [u8],
    decoded: Option<Box<[u8]>>,
}

impl<'a> MetaKey<'a> {
    /// A key that stands for itself.
    pub(super) fn plain(given: &'a [u8]) -> Self {
        Self { given, decoded: None }
    }

    /// The bytes that it stands for.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.decoded.as_deref().unwrap_or(self.given)
    }

    /// The key as it was sent: in base64, if the flag `b` says so.
    #[must_use]
    pub fn given(&self) -> &'a [u8] {
        self.given
    }

    /// Whether it was sent in base64.
    #[must_use]
    pub fn is_base64(&self) -> bool {
        self.decoded.is_some()
    }
}

/// What the flags of a meta command say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MetaFlags {
    /// `N`: create a missing record, with this expiry.
    pub vivify: Option<Exptime>,
    /// `T`: the new expiry.
    pub ttl: Option<Exptime>,
    /// `R`: a client that finds less time left than this is to renew the value.
    pub recache: Option<Exptime>,
    /// `v`: the value is wanted.
    pub wants_value: bool,
    /// `u`: reading the record does not mark it as fetched.
    pub no_update: bool,
    /// `q`: no reply in the nominal case.
    pub is_quiet: bool,
    /// `F`: the client's flags of the value.
    pub client_flags: u32,
    /// `C`: the cas that the record must have.
    pub cas: Option<u64>,
    /// `M`: the mode.
    pub mode: Option<u8>,
    /// `J`: the initial value of a counter.
    pub initial: u64,
    /// `D`: by how much the counter changes.
    pub delta: Option<u64>,
    /// `I`: invalidate.
    pub invalidates: bool,
    /// `x`: the value is dropped, and the record stays.
    pub drops_value: bool,
}

/// A meta command's key and flags.
#[derive(Clone, Debug)]
pub struct Meta<'a> {
    /// The key.
    pub key: MetaKey<'a>,
    /// What its flags say.
    pub flags: MetaFlags,
    /// The flags as they were sent, in order: replies follow it.
    pub words: Words<'a>,
}

/// Reads key and flags. `words` are the flags, `count` the number of all words of the command.
pub(super) fn read<'a>(
    key: &'a [u8],
    words: Words<'a>,
    count: usize,
    too_many: RequestError,
) -> Result<Meta<'a>, RequestError> {
    if key.len() > KEY_LEN_MAX {
        return Err(RequestError::Format);
    }
    if count > META_WORDS_MAX {
        return Err(too_many);
    }
    let mut meta = Meta { key: MetaKey::plain(key), flags: MetaFlags::default(), words };
    // memcached reads on after an invalid number, and reports the last one.
    let mut bad_number = None;
    let mut seen = 0u128;
    for word in words {
        let letter = word[0];
        let bit = 1u128.checked_shl(letter.into()).filter(|_| letter < 127);
        let bit = bit.filter(|bit| seen & bit == 0).ok_or(RequestError::DuplicateFlag)?;
        seen |= bit;
        if let Err(error) = read_flag(&mut meta, letter, &word[1..]) {
            if error == RequestError::InvalidFlag {
                return Err(error);
            }
            // memcached has no message of its own for invalid client flags.
            if error != RequestError::ClientFlags || bad_number.is_none() {
                bad_number = Some(error);
            }
        }
    }
    bad_number.map_or(Ok(meta), Err)
}

/// Decodes a base64 key. Its padding must be complete, as an encoder would write it.
fn decode_key(text: &[u8]) -> Option<Box<[u8]>> {
    let is_whole = !text.is_empty() && text.len().is_multiple_of(4) && text.len() <= KEY_LEN_MAX;
    let bytes = if is_whole { base64::decode(text) } else { None };
    bytes.map(Vec::into_boxed_slice)
}

fn read_flag(meta: &mut Meta<'_>, letter: u8, argument: &[u8]) -> Result<(), RequestError> {
    let exptime = || {
        let seconds = number::signed_32(argument).ok_or(RequestError::Token)?;
        Ok(Some(Exptime(seconds.into())))
    };
    let unsigned = |error| number::unsigned(argument).ok_or(error);
    let flags = &mut meta.flags;
    match letter {
        b'b' => {
            let decoded = decode_key(meta.key.given).ok_or(RequestError::KeyEncoding)?;
            meta.key.decoded = Some(decoded);
        }
        b'N' => flags.vivify = exptime()?,
        b'T' => flags.ttl = exptime()?,
        b'R' => flags.recache = exptime()?,
        b'v' => flags.wants_value = true,
        b'u' => flags.no_update = true,
        b'q' => flags.is_quiet = true,
        b'F' => {
            flags.client_flags = number::unsigned_32(argument).ok_or(RequestError::ClientFlags)?;
        }
        b'C' => flags.cas = Some(unsigned(RequestError::Token)?),
        b'M' => match argument {
            [mode] => flags.mode = Some(*mode),
            _ => return Err(RequestError::ModeLength),
        },
        b'J' => flags.initial = unsigned(RequestError::Initial)?,
        b'D' => flags.delta = Some(unsigned(RequestError::DeltaFlag)?),
        b'I' => flags.invalidates = true,
        b'x' => flags.drops_value = true,
        b'h' | b'k' | b's' | b't' | b'c' | b'f' | b'O' | b'P' | b'L' => {}
        _ => return Err(RequestError::InvalidFlag),
    }
    Ok(())
}

/// Whether the opaque token is within the limit.
pub(super) fn check_opaque(words: Words<'_>) -> Result<(), RequestError> {
    let is_long = |word: &[u8]| word[0] == b'O' && word.len() > OPAQUE_LEN_MAX;
    let mut words = words;
    if words.any(is_long) { Err(RequestError::OpaqueLength) } else { Ok(()) }
}
