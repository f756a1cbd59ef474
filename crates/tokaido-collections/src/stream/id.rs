//! The ids of entries.

use std::fmt;

use tokaido_store::ReadError;

use super::super::place::damaged;

/// The id of an entry: a time, in ms since the epoch, and a number that distinguishes entries of
/// the same time. Ids are ordered by both, and shown as `1700000000000-0`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId {
    /// The time.
    pub ms: u64,
    /// The number.
    pub seq: u64,
}

impl StreamId {
    /// The smallest id, which no entry has.
    pub const MIN: Self = Self { ms: 0, seq: 0 };

    /// The largest id.
    pub const MAX: Self = Self { ms: u64::MAX, seq: u64::MAX };

    /// Length in keys, in bytes.
    pub(super) const LEN: usize = 16;

    /// Parses an id such as `1700000000000-0`. If the number is left out, it is `missing`. `None`
    /// if it is not an id.
    #[must_use]
    pub fn parse(text: &[u8], missing: u64) -> Option<Self> {
        let number = |text: &str| text.parse().ok().filter(|_: &u64| !text.starts_with('+'));
        let text = std::str::from_utf8(text).ok()?;
        Some(match text.split_once('-') {
            Some((ms, seq)) => Self { ms: number(ms)?, seq: number(seq)? },
            None => Self { ms: number(text)?, seq: missing },
        })
    }

    /// The next larger id; `None` after the largest.
    #[must_use]
    pub fn next(self) -> Option<Self> {
        match self.seq.checked_add(1) {
            Some(seq) => Some(Self { seq, ..self }),
            None => Some(Self { ms: self.ms.checked_add(1)?, seq: 0 }),
        }
    }

    /// The next smaller id; `None` before the smallest.
    #[must_use]
    pub fn previous(self) -> Option<Self> {
        match self.seq.checked_sub(1) {
            Some(seq) => Some(Self { seq, ..self }),
            None => Some(Self { ms: self.ms.checked_sub(1)?, seq: u64::MAX }),
        }
    }

    /// The id of an entry that is added after `last` at time `now_ms`, which may be earlier than
    /// that of `last`; `None` if there is no larger id.
    #[must_use]
    pub fn after(last: Self, now_ms: u64) -> Option<Self> {
        if now_ms > last.ms { Some(Self { ms: now_ms, seq: 0 }) } else { last.next() }
    }

    /// The form in keys, where ids are ordered as bytes.
    pub(super) fn encode(self) -> [u8; Self::LEN] {
        (u128::from(self.ms) << 64 | u128::from(self.seq)).to_be_bytes()
    }

    /// The id that a key ends with.
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, ReadError> {
        let bytes: [u8; Self::LEN] =
            bytes.try_into().map_err(|_| damaged("the id of an entry has not 16 bytes"))?;
        let both = u128::from_be_bytes(bytes);
        Ok(Self { ms: (both >> 64) as u64, seq: both as u64 })
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.ms, self.seq)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn id() -> impl Strategy<Value = StreamId> {
        let part = prop_oneof![Just(0), Just(1), Just(u64::MAX), any::<u64>()];
        (part.clone(), part).prop_map(|(ms, seq)| StreamId { ms, seq })
    }

    proptest! {
        #[test]
        fn ids_come_back_and_keep_their_order(a in id(), b in id()) {
            prop_assert_eq!(StreamId::decode(&a.encode()).unwrap(), a);
            prop_assert_eq!(a.encode().cmp(&b.encode()), a.cmp(&b));
            prop_assert_eq!(a.next().and_then(StreamId::previous).unwrap_or(a), a);
            prop_assert!(a.next().is_none_or(|next| next > a));
            prop_assert!(a.previous().is_none_or(|previous| previous < a));
        }
    }

    #[test]
    fn a_clock_that_stands_still_or_goes_back_makes_larger_ids() {
        let last = StreamId { ms: 10, seq: 5 };
        for (now_ms, ms, seq) in [(11, 11, 0), (10, 10, 6), (9, 10, 6)] {
            assert_eq!(StreamId::after(last, now_ms), Some(StreamId { ms, seq }));
        }
        assert_eq!(StreamId::after(StreamId::MAX, 5), None);
        let full = StreamId { ms: 10, seq: u64::MAX };
        assert_eq!(StreamId::after(full, 10), Some(StreamId { ms: 11, seq: 0 }));
    }

    #[test]
    fn texts_are_ids_or_not() {
        let id = |ms, seq| Some(StreamId { ms, seq });
        for (text, expected) in [("5-3", id(5, 3)), ("5", id(5, 7)), ("0-0", id(0, 0))] {
            assert_eq!(StreamId::parse(text.as_bytes(), 7), expected, "{text}");
        }
        for text in ["", "-", "5-", "-5", "+5", "5-+3", "a", "5-3-1", " 5", "18446744073709551616"]
        {
            assert_eq!(StreamId::parse(text.as_bytes(), 7), None, "{text}");
        }
        assert_eq!(StreamId::parse(b"\xff", 0), None);
    }

    #[test]
    fn other_lengths_are_damage() {
        assert!(StreamId::decode(&[0; 15]).is_err() && StreamId::decode(&[0; 17]).is_err());
    }
}
