//! Scores as ordered bytes, and positions in the order of a sorted set.

use std::ops::Bound;

use tokaido_store::ReadError;

use crate::place::damaged;

/// Length in bytes of a score before a member.
pub(crate) const SCORE_LEN: usize = 8;

const SIGN: u64 = 1 << 63;

/// A score as bytes that sort like scores. There is only one zero.
pub(super) fn encode(score: f64) -> [u8; SCORE_LEN] {
    ordinal(score).to_be_bytes()
}

fn ordinal(score: f64) -> u64 {
    let bits = (score + 0.0).to_bits();
    if bits & SIGN == 0 { bits | SIGN } else { !bits }
}

/// The score that [`encode`] encoded.
pub(super) fn decode(bytes: &[u8]) -> Result<f64, ReadError> {
    let bytes = bytes.first_chunk::<SCORE_LEN>();
    let ordinal = u64::from_be_bytes(*bytes.ok_or_else(|| damaged("a score is too short"))?);
    Ok(f64::from_bits(if ordinal & SIGN == 0 { !ordinal } else { ordinal & !SIGN }))
}

/// The sort key of a sorted set: the score and the member.
pub(super) fn rank_key(score: f64, member: &[u8]) -> Vec<u8> {
    [&encode(score)[..], member].concat()
}

/// The member and the score in such a key.
pub(super) fn split(rank_key: &[u8]) -> Result<(&[u8], f64), ReadError> {
    let score = decode(rank_key)?;
    Ok((&rank_key[SCORE_LEN..], score))
}

/// A range of consecutive members of a sorted set: those from `low` on that are before `high`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    pub(super) low: Vec<u8>,
    /// `None`: no upper end.
    pub(super) high: Option<Vec<u8>>,
}

impl Span {
    /// All members.
    #[must_use]
    pub fn all() -> Self {
        Self { low: Vec::new(), high: None }
    }

    /// The members whose scores lie between two bounds.
    #[must_use]
    pub fn of_scores(low: Bound<f64>, high: Bound<f64>) -> Self {
        let after = |score| (ordinal(score) + 1).to_be_bytes().to_vec();
        let low = match low {
            Bound::Unbounded => Vec::new(),
            Bound::Included(score) => encode(score).to_vec(),
            Bound::Excluded(score) => after(score),
        };
        let high = match high {
            Bound::Unbounded => None,
            Bound::Included(score) => Some(after(score)),
            Bound::Excluded(score) => Some(encode(score).to_vec()),
        };
        Self { low, high }
    }

    /// The members with one score that lie between two members in byte order.
    #[must_use]
    pub fn of_members(score: f64, low: Bound<&[u8]>, high: Bound<&[u8]>) -> Self {
        let after = |member: &[u8]| [&encode(score), member, &[0]].concat();
        let low = match low {
            Bound::Unbounded => Vec::new(),
            Bound::Included(member) => rank_key(score, member),
            Bound::Excluded(member) => after(member),
        };
        let high = match high {
            Bound::Unbounded => None,
            Bound::Included(member) => Some(after(member)),
            Bound::Excluded(member) => Some(rank_key(score, member)),
        };
        Self { low, high }
    }

    /// The members in this span that come after a member with a score.
    #[must_use]
    pub fn after(mut self, score: f64, member: &[u8]) -> Self {
        let low = [&encode(score), member, &[0]].concat();
        if low > self.low {
            self.low = low;
        }
        self
    }

    /// The members in this span that come before a member with a score.
    #[must_use]
    pub fn before(mut self, score: f64, member: &[u8]) -> Self {
        let high = rank_key(score, member);
        if self.is_before_end(&high) {
            self.high = Some(high);
        }
        self
    }

    /// Whether a position is before the end.
    pub(super) fn is_before_end(&self, rank_key: &[u8]) -> bool {
        self.high.as_ref().is_none_or(|high| rank_key < &high[..])
    }

    /// Whether nothing can be in the span.
    pub(super) fn is_empty(&self) -> bool {
        self.high.as_ref().is_some_and(|high| *high <= self.low)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn score() -> impl Strategy<Value = f64> {
        prop_oneof![
            any::<f64>().prop_filter("scores are numbers", |score| !score.is_nan()),
            Just(f64::INFINITY),
            Just(f64::NEG_INFINITY),
            Just(0.0),
        ]
    }

    proptest! {
        #[test]
        fn bytes_are_ordered_as_scores_are(a in score(), b in score()) {
            prop_assert_eq!(encode(a) < encode(b), a < b);
            prop_assert_eq!(decode(&encode(a)).unwrap(), a);
        }

        #[test]
        fn spans_have_what_lies_between_their_bounds(a in score(), low in score(), high in score()) {
            let key = rank_key(a, b"m");
            let has = |span: &Span| key >= span.low && span.is_before_end(&key);
            prop_assert_eq!(has(&Span::of_scores(Bound::Included(low), Bound::Included(high))), low <= a && a <= high);
            prop_assert_eq!(has(&Span::of_scores(Bound::Excluded(low), Bound::Excluded(high))), low < a && a < high);
        }
    }

    #[test]
    fn a_span_goes_on_behind_a_member_or_before_it() {
        let span = Span::of_scores(Bound::Included(1.0), Bound::Excluded(3.0));
        let has = |span: &Span, score, member: &[u8]| {
            let key = rank_key(score, member);
            key >= span.low && span.is_before_end(&key)
        };
        let after = span.clone().after(2.0, b"m");
        assert!(!has(&after, 2.0, b"m") && has(&after, 2.0, b"m\0") && !has(&after, 3.0, b""));
        let before = span.clone().before(2.0, b"m");
        assert!(!has(&before, 2.0, b"m") && has(&before, 2.0, b"l") && !has(&before, 0.0, b"z"));
        assert_eq!(
            (span.clone().after(0.0, b"z"), span.clone().before(3.0, b"a")),
            (span.clone(), span)
        );
    }

    #[test]
    fn the_two_zeros_are_one() {
        assert_eq!(encode(-0.0), encode(0.0));
    }
}
