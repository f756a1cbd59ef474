//! What the arguments of a blocking command ask for.

use std::{ops::Range, time::Duration};

use tokaido_collections::{End, List, SortedSet};
use tokaido_store::{Direction, Kind, WriteTransaction};

use crate::redis::{call::Call, failure::Failure, lists, number::parse_double, sorted_sets};

/// What to take from the first non-empty key, and how long to wait for it.
#[derive(Debug, PartialEq)]
pub(crate) struct Plan {
    /// The indices of the arguments that are keys.
    pub(super) keys: Range<usize>,
    pub(super) take: Take,
    /// `None`: wait without a limit.
    pub(super) timeout: Option<Duration>,
}

/// What to take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Take {
    /// One item, returned with its key.
    Item(End),
    /// Some items, returned with their key.
    Items(End, u64),
    /// One item, which moves to the list named by the second argument.
    Moved { from: End, to: End },
    /// One member, returned with its key.
    Member(Direction),
    /// Some members, returned with their key.
    Members(Direction, u64),
}

impl Plan {
    pub(super) fn kind(&self) -> Kind {
        match self.take {
            Take::Item(_) | Take::Items(..) | Take::Moved { .. } => Kind::List,
            Take::Member(_) | Take::Members(..) => Kind::SortedSet,
        }
    }

    /// Maximum number of elements to take.
    pub(super) fn count(&self) -> u64 {
        match self.take {
            Take::Items(_, count) | Take::Members(_, count) => count,
            Take::Item(_) | Take::Moved { .. } | Take::Member(_) => 1,
        }
    }

    /// The number of elements of the collection that the argument at `index` names.
    pub(super) fn len(
        &self,
        call: &Call<'_>,
        tx: &mut dyn WriteTransaction,
        index: usize,
    ) -> Result<u64, Failure> {
        Ok(match self.kind() {
            Kind::List => List::new(call.database, call.arg(index)).len(tx)?,
            _ => SortedSet::new(call.database, call.arg(index)).len(tx)?,
        })
    }

    /// Takes from the non-empty collection that the argument at `index` names, and replies.
    pub(super) fn take(
        &self,
        call: &mut Call<'_>,
        tx: &mut dyn WriteTransaction,
        index: usize,
    ) -> Result<(), Failure> {
        match self.take {
            Take::Moved { from, to } => lists::move_item(call, tx, from, to),
            Take::Items(end, count) => lists::pop_from(call, tx, index, end, count).map(drop),
            Take::Members(direction, count) => {
                sorted_sets::pop_from(call, tx, index, direction, count).map(drop)
            }
            Take::Item(end) => {
                let (key, reply) = (call.arg(index), &mut *call.reply);
                reply.array(2);
                reply.bulk(key);
                List::new(call.database, key).pop(tx, end, 1, |item| {
                    reply.bulk(item);
                    reply.flow()
                })?;
                Ok(())
            }
            Take::Member(direction) => {
                let (key, reply) = (call.arg(index), &mut *call.reply);
                reply.array(3);
                reply.bulk(key);
                SortedSet::new(call.database, key).pop(tx, direction, 1, |member, score| {
                    reply.bulk(member);
                    reply.double(score);
                    reply.flow()
                })?;
                Ok(())
            }
        }
    }
}

/// The argument at `index` as a timeout in seconds, rounded up to ms. 0 means forever.
pub(super) fn timeout_at(call: &Call<'_>, index: usize) -> Result<Option<Duration>, Failure> {
    let seconds = parse_double(call.arg(index))
        .ok_or_else(|| Failure::other("timeout is not a float or out of range"))?;
    let ms = (seconds * 1000.0).ceil();
    if ms < 0.0 {
        return Err(Failure::other("timeout is negative"));
    }
    let end_ms = ms + (crate::shared::wall_clock_us() / 1000) as f64;
    if end_ms >= i64::MAX as f64 {
        return Err(Failure::other("timeout is out of range"));
    }
    Ok((ms > 0.0).then(|| Duration::from_millis(ms as u64)))
}
