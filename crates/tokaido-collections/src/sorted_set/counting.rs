//! Counting the members of a large sorted set that was used without counts so far, in steps.

use std::ops::Bound;

use tokaido_store::{Direction, ReadError, WriteError, WriteTransaction};

use super::{
    super::place::flow_while,
    SortedSet,
    ranks::{Boundary, Ranks, levels_of},
    record::Large,
    score::split,
};

/// Counts up to `limit` members of sorted sets for which readers have
/// [requested](tokaido_store::ReadTransaction::request_upkeep) it. Returns how many; if that is `limit`, there may be more.
///
/// # Errors
/// As [`WriteTransaction::put`]. The request is gone, until a reader repeats it.
pub fn count_requested(tx: &mut dyn WriteTransaction, limit: usize) -> Result<usize, WriteError> {
    let mut counted = 0;
    while counted < limit
        && let Some((database, key)) = tx.take_upkeep_request()
    {
        let set = SortedSet::new(database, &key);
        counted += match set.count_more(tx, limit - counted) {
            Err(WriteError::Read(ReadError::OtherKind)) => 0,
            result => result?,
        };
        if set.uncounted(tx).is_ok_and(|left| left > 0) {
            tx.request_upkeep(database, &key);
        }
    }
    Ok(counted)
}

impl SortedSet<'_> {
    /// Counts up to `limit` more members, in rank order. Returns how many.
    fn count_more(&self, tx: &mut dyn WriteTransaction, limit: usize) -> Result<usize, WriteError> {
        let mut set = self.load(tx)?;
        let Some(large) = &mut set.large else { return Ok(0) };
        let Some(end) = large.counts.end.clone() else { return Ok(0) };
        let mut positions = self.positions_from(tx, large, &end, limit.saturating_add(1))?;
        let next = if positions.len() > limit { positions.pop() } else { None };
        let mut ranks = large.ranks(self.place);
        let mut last = LastBoundaries::load(tx, &ranks, &end)?;
        for position in &positions {
            last.pass(tx, &mut ranks, position)?;
        }
        last.save(tx, &ranks)?;
        ranks.counts.end = next;
        large.counts = ranks.counts;
        self.save(tx, set)?;
        Ok(positions.len())
    }

    /// The positions of up to `limit` members from a position on.
    fn positions_from(
        &self,
        tx: &mut dyn WriteTransaction,
        large: &Large,
        from: &[u8],
        limit: usize,
    ) -> Result<Vec<Vec<u8>>, ReadError> {
        let mut positions = Vec::new();
        let (from, to) = (large.key(from.max(&large.low)), large.high_key());
        let (from, to) = (Bound::Included(&from[..]), Bound::Excluded(&to[..]));
        self.visit_keys(tx, large.collection, from, to, Direction::Forward, &mut |key, _, _| {
            positions.push(key.to_vec());
            flow_while(positions.len() < limit)
        })?;
        Ok(positions)
    }
}

/// The last boundary of each level, while members after it are counted.
struct LastBoundaries(Vec<Boundary>);

impl LastBoundaries {
    fn load(
        tx: &mut dyn WriteTransaction,
        ranks: &Ranks<'_>,
        end: &[u8],
    ) -> Result<Self, ReadError> {
        let levels = 1..=ranks.counts.levels;
        Ok(Self(levels.map(|level| ranks.boundary_at(tx, level, end)).collect::<Result<_, _>>()?))
    }

    /// Counts the member after those that are counted.
    fn pass(
        &mut self,
        tx: &mut dyn WriteTransaction,
        ranks: &mut Ranks<'_>,
        rank_key: &[u8],
    ) -> Result<(), WriteError> {
        let own_levels = levels_of(split(rank_key)?.0);
        while ranks.counts.levels < own_levels {
            ranks.counts.levels += 1;
            self.0.push(Boundary { rank_key: Vec::new(), count: ranks.counts.members });
        }
        for (level, boundary) in (1..).zip(&mut self.0) {
            if level > own_levels {
                boundary.count += 1;
                continue;
            }
            ranks.put(tx, level, &boundary.rank_key, boundary.count)?;
            *boundary = Boundary { rank_key: rank_key.to_vec(), count: 1 };
        }
        ranks.counts.members += 1;
        Ok(())
    }

    fn save(self, tx: &mut dyn WriteTransaction, ranks: &Ranks<'_>) -> Result<(), WriteError> {
        for (level, boundary) in (1..).zip(&self.0) {
            ranks.put(tx, level, &boundary.rank_key, boundary.count)?;
        }
        Ok(())
    }
}
