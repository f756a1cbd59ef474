//! A decoded request of the text protocol. It borrows from the input.

use super::{
    commands::{Command, Mode},
    error::RequestError,
    meta::{Meta, MetaKey},
};

/// The words of a line, between spaces.
#[derive(Clone, Copy, Debug)]
pub struct Words<'a>(pub(super) &'a [u8]);

impl<'a> Iterator for Words<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let start = self.0.iter().position(|&byte| byte != b' ')?;
        let rest = &self.0[start..];
        let (word, rest) = rest.split_at(word_len(rest));
        self.0 = rest;
        Some(word)
    }
}

/// The number of bytes before the first space. Words are so short that a vectorised search would
/// take longer to set up than this loop takes to run.
#[inline]
fn word_len(text: &[u8]) -> usize {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGHS: u64 = ONES << 7;
    let (eights, rest) = text.as_chunks::<8>();
    for (i, eight) in eights.iter().enumerate() {
        // The first non-zero byte of `zeros` is where the first space is.
        let zero_if_space = u64::from_le_bytes(*eight) ^ (ONES * u64::from(b' '));
        let zeros = zero_if_space.wrapping_sub(ONES) & !zero_if_space & HIGHS;
        if zeros != 0 {
            return 8 * i + zeros.trailing_zeros() as usize / 8;
        }
    }
    let in_rest = rest.iter().position(|&byte| byte == b' ').unwrap_or(rest.len());
    text.len() - rest.len() + in_rest
}

/// A value to be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Store<'a> {
    /// When it is stored, and how.
    pub mode: Mode,
    /// Under which key.
    pub key: &'a [u8],
    /// What the client wants stored with it.
    pub flags: u32,
    /// When it expires, as the client sent it: see [`Exptime`].
    pub exptime: Exptime,
    /// The cas that the record must have, if the mode requires one.
    pub cas: u64,
    /// The value.
    pub value: &'a [u8],
}

/// An expiry as a client sends it. 0 is never, a negative number has passed already, up to thirty
/// days are seconds from now, and anything greater is a time in seconds since the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exptime(pub i64);

/// Thirty days, the longest expiry that counts from now, in seconds.
const DELTA_MAX: i64 = 30 * 24 * 3600;

impl Exptime {
    /// Never.
    pub const NEVER: Self = Self(0);

    /// The time in ms since the epoch; `None`: never.
    #[must_use]
    pub fn at_ms(self, now_ms: u64) -> Option<u64> {
        match self.0 {
            0 => None,
            // The earliest of all past times.
            ..0 => Some(1),
            delta if delta <= DELTA_MAX => Some(now_ms.saturating_add(1000 * delta as u64)),
            at => Some((at as u64).saturating_mul(1000)),
        }
    }
}

/// A request.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "it lives on the stack, for one request")]
pub enum Request<'a> {
    /// Gets values.
    Get {
        /// Their keys, each within the limit.
        keys: Words<'a>,
        /// Whether replies include the cas.
        with_cas: bool,
        /// Their new expiry, if they get one.
        touch: Option<Exptime>,
    },
    /// Stores a value.
    Store(Store<'a>),
    /// Deletes a record.
    Delete {
        /// Its key.
        key: &'a [u8],
    },
    /// Increments or decrements a counter.
    Count {
        /// Its key.
        key: &'a [u8],
        /// By how much.
        by: u64,
        /// Whether to decrement.
        is_down: bool,
    },
    /// Gives a record a new expiry.
    Touch {
        /// Its key.
        key: &'a [u8],
        /// The expiry.
        exptime: Exptime,
    },
    /// Deletes everything.
    FlushAll {
        /// When; now, unless it is positive.
        delay: Exptime,
    },
    /// Gets statistics.
    Stats {
        /// Which statistics.
        arguments: Words<'a>,
    },
    /// Sets the log level.
    Verbosity {
        /// The level.
        level: u32,
    },
    /// Gets the version.
    Version,
    /// Closes the connection.
    Quit,
    /// mg
    MetaGet(Meta<'a>),
    /// ms
    MetaSet(Meta<'a>, Store<'a>),
    /// md
    MetaDelete(Meta<'a>),
    /// ma
    MetaArithmetic(Meta<'a>),
    /// mn
    MetaNoop,
    /// me
    MetaDebug(Meta<'a>),
    /// The request is refused, for the given reason.
    Refused {
        /// The reason.
        error: RequestError,
        /// The record under this key must be deleted: a newer value was too large, and the old one
        /// must not pass for it.
        forget: Option<MetaKey<'a>>,
        /// Bytes of the refused value that follow, to be [skipped](super::TextDecoder::skip).
        skip: usize,
    },
}

impl Request<'_> {
    pub(super) fn refused(error: RequestError) -> Self {
        Self::Refused { error, forget: None, skip: 0 }
    }
}

/// The outcome of decoding.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "it lives on the stack, for one request")]
pub enum Decoded<'a> {
    /// The input ends within a request.
    Incomplete,
    /// The input begins with bytes of a refused value, which have no meaning.
    Skipped {
        /// Number of those bytes.
        consumed: usize,
    },
    /// The input begins with a whole request.
    Complete {
        /// Its length in bytes: where the next one begins.
        consumed: usize,
        /// Its row of the table; `None` for an unknown command.
        command: Option<&'static Command>,
        /// Whether the client wants no reply.
        is_quiet: bool,
        /// The request.
        request: Request<'a>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expiry_is_relative_up_to_thirty_days() {
        let now_ms = 1_700_000_000_123;
        let at = |exptime| Exptime(exptime).at_ms(now_ms);
        assert_eq!(at(0), None);
        assert_eq!(at(1), Some(now_ms + 1000));
        assert_eq!(at(2_592_000), Some(now_ms + 2_592_000_000));
        assert_eq!(at(2_592_001), Some(2_592_001_000));
        assert_eq!(at(1_800_000_000), Some(1_800_000_000_000));
        assert!(at(-1).expect("a time") < now_ms && at(i64::MIN).expect("a time") < now_ms);
    }

    #[test]
    fn words_stand_between_spaces() {
        let words: Vec<_> = Words(b"  get  a\tb   c ").collect();
        assert_eq!(words, [&b"get"[..], b"a\tb", b"c"]);
        assert!(Words(b"   ").next().is_none());
    }

    #[test]
    fn a_word_ends_at_the_first_space_wherever_that_is() {
        // Bytes that differ from a space by one bit, before and after it.
        for other in [0x21, 0x1f, 0xa0, 0x00, 0xff] {
            for len in 0..40 {
                let word = vec![other; len];
                assert_eq!(word_len(&word), len);
                let line = [&word[..], b" ", &[other; 20]].concat();
                assert_eq!(word_len(&line), len, "{other:#04x}");
            }
        }
    }
}
