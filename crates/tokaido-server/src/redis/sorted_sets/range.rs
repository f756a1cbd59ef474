//! Ranges of a sorted set in arguments: by rank, by score, by member.

use std::ops::{Bound, ControlFlow, Range};

use tokaido_collections::{SortedSet, Span};
use tokaido_store::{Direction, ReadTransaction};

use crate::redis::{
    call::Call,
    failure::Failure,
    number::{parse_double, range_in},
};

/// The type of the two ends of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    Rank,
    Score,
    Member,
}

/// The two ends of a range, the lower one first.
pub(super) enum Ends<'c> {
    Ranks(i64, i64),
    Scores(Bound<f64>, Bound<f64>),
    Members(Bound<&'c [u8]>, Bound<&'c [u8]>),
    /// No member can be between them.
    Nothing,
}

impl<'c> Ends<'c> {
    /// Parses the ends from two arguments.
    pub(super) fn read(call: &Call<'c>, by: By, low: usize, high: usize) -> Result<Self, Failure> {
        match by {
            By::Rank => Ok(Self::Ranks(call.integer(low)?, call.integer(high)?)),
            By::Score => {
                let ends = (score_bound(call.arg(low)), score_bound(call.arg(high)));
                let (Some(low), Some(high)) = ends else {
                    return Err(Failure::other("min or max is not a float"));
                };
                Ok(Self::Scores(low, high))
            }
            By::Member => {
                let ends = (member_end(call.arg(low)), member_end(call.arg(high)));
                let (Some(low), Some(high)) = ends else {
                    return Err(Failure::other("min or max not valid string range item"));
                };
                Ok(match (low, high) {
                    (MemberEnd::Highest, _) | (_, MemberEnd::Lowest) => Self::Nothing,
                    (low, high) => Self::Members(low.bound(), high.bound()),
                })
            }
        }
    }

    /// The members between the ends, or `None` if there are none.
    pub(super) fn span(
        &self,
        tx: &mut (impl ReadTransaction + ?Sized),
        set: &SortedSet<'_>,
    ) -> Result<Option<Span>, Failure> {
        Ok(match *self {
            Self::Ranks(..) => Some(Span::all()),
            Self::Nothing => None,
            Self::Scores(low, high) => Some(Span::of_scores(low, high)),
            // Assumes that all members have the same score.
            Self::Members(low, high) => {
                let mut score = None;
                set.visit_ranks(tx, 0..1, Direction::Forward, |_, first| {
                    score = Some(first);
                    ControlFlow::Break(())
                })?;
                score.map(|score| Span::of_members(score, low, high))
            }
        })
    }

    /// The ranks between the ends, counted from the end where the direction starts.
    pub(super) fn ranks(
        &self,
        tx: &mut (impl ReadTransaction + ?Sized),
        set: &SortedSet<'_>,
        direction: Direction,
    ) -> Result<Range<u64>, Failure> {
        if let Self::Ranks(start, stop) = *self {
            let len = set.len(tx)?;
            let range = range_in(len, start, stop);
            return Ok(match direction {
                Direction::Forward => range,
                Direction::Backward => len - range.end..len - range.start,
            });
        }
        match self.span(tx, set)? {
            Some(span) => Ok(set.ranks(tx, &span)?),
            None => Ok(0..0),
        }
    }
}

/// A score as the end of a range: `5`, or `(5` to exclude it.
fn score_bound(text: &[u8]) -> Option<Bound<f64>> {
    match text.strip_prefix(b"(") {
        Some(score) => parse_double(score).map(Bound::Excluded),
        None => parse_double(text).map(Bound::Included),
    }
}

/// A member as the end of a range.
#[derive(Clone, Copy)]
enum MemberEnd<'c> {
    Lowest,
    Highest,
    At(Bound<&'c [u8]>),
}

impl<'c> MemberEnd<'c> {
    fn bound(self) -> Bound<&'c [u8]> {
        match self {
            Self::At(bound) => bound,
            Self::Lowest | Self::Highest => Bound::Unbounded,
        }
    }
}

fn member_end(text: &[u8]) -> Option<MemberEnd<'_>> {
    match text {
        b"-" => Some(MemberEnd::Lowest),
        b"+" => Some(MemberEnd::Highest),
        [b'[', member @ ..] => Some(MemberEnd::At(Bound::Included(member))),
        [b'(', member @ ..] => Some(MemberEnd::At(Bound::Excluded(member))),
        _ => None,
    }
}
