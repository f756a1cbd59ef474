//! The ranks of a large sorted set: how many members are before a position, without a full count.
//!
//! Some members are *boundaries* of one or more levels, chosen by the hash of the member: one in 32
//! is a boundary of the first level, one in 32 of those also of the second, and so on. Each level
//! has a range of elements: for each of its boundaries, in rank order, the number of members from
//! there up to the next. Before the first there is another boundary, without a member. So a rank is
//! the sum of some counts of each level, plus the remaining members, which are counted one by one.
//! Adding or removing a member changes one count of each level.
//!
//! This costs more than all else that a change does, and many sorted sets are never asked for ranks. So a set
//! begins without counts, and gets them, from the first member on, when a rank was requested that they would have helped to
//! find: see [`counting`](super::counting).

use std::ops::{Bound, ControlFlow};

use tokaido_store::{
    CollectionId, Direction, NewRecord, ReadError, ReadTransaction, WriteError, WriteTransaction,
};

use super::super::{
    name_hash::hash,
    place::{Place, Visit, damaged, flow_while, head},
};
use super::record::Counts;

/// The range of elements in rank order.
pub(super) const TAG_RANKS: u8 = 2;

/// The range of the first level of boundaries; the other levels follow it.
const TAG_LEVELS: u8 = 3;

/// One member in 2^`LEVEL_BITS` is a boundary.
const LEVEL_BITS: u32 = 5;

/// Maximum number of levels, limited by the bits of the hash.
pub(super) const LEVELS_MAX: u8 = (u32::BITS / LEVEL_BITS) as u8;

/// How many levels, from the first one on, a member is a boundary of.
pub(super) fn levels_of(member: &[u8]) -> u8 {
    (hash(member).trailing_zeros() / LEVEL_BITS).min(LEVELS_MAX.into()) as u8
}

/// The counts of a large sorted set.
pub(super) struct Ranks<'p> {
    pub(super) place: Place<'p>,
    pub(super) collection: CollectionId,
    pub(super) counts: Counts,
    /// No member is before this position, so that scans can skip deleted members.
    pub(super) low: &'p [u8],
}

/// A boundary with its count.
pub(super) struct Boundary {
    pub(super) rank_key: Vec<u8>,
    pub(super) count: u64,
}

fn count_of(value: &[u8]) -> Result<u64, ReadError> {
    let bytes = value.try_into().map_err(|_| damaged("a count of a sorted set is no number"))?;
    Ok(u64::from_le_bytes(bytes))
}

impl Ranks<'_> {
    fn key(&self, level: u8, rank_key: &[u8]) -> Vec<u8> {
        let tag = if level == 0 { TAG_RANKS } else { TAG_LEVELS + level - 1 };
        [&head(self.collection, tag)[..], rank_key].concat()
    }

    /// Counts a new member, unless it is beyond those that are counted. It may or may not be among the
    /// elements already.
    pub(super) fn add(
        &mut self,
        tx: &mut dyn WriteTransaction,
        rank_key: &[u8],
        member: &[u8],
    ) -> Result<(), WriteError> {
        if !self.counts.cover(rank_key) {
            return Ok(());
        }
        let own_levels = levels_of(member);
        while self.counts.levels < own_levels {
            self.counts.levels += 1;
            self.put(tx, self.counts.levels, &[], self.counts.members)?;
        }
        for level in 1..=self.counts.levels {
            let before = self.boundary_at(tx, level, rank_key)?;
            if level > own_levels {
                self.put(tx, level, &before.rank_key, before.count + 1)?;
                continue;
            }
            // It splits the count of the boundary before it.
            let first = self.count_between(tx, level - 1, &before.rank_key, rank_key)?;
            let rest = before.count.checked_sub(first);
            let rest = rest.ok_or_else(|| damaged("the counts of a sorted set disagree"))?;
            self.put(tx, level, &before.rank_key, first)?;
            self.put(tx, level, rank_key, rest + 1)?;
        }
        self.counts.members += 1;
        Ok(())
    }

    /// Uncounts a removed member, if it is counted.
    pub(super) fn remove(
        &mut self,
        tx: &mut dyn WriteTransaction,
        rank_key: &[u8],
        member: &[u8],
    ) -> Result<(), WriteError> {
        if !self.counts.cover(rank_key) {
            return Ok(());
        }
        let own_levels = levels_of(member);
        for level in 1..=self.counts.levels {
            let mut counted = 0;
            if level <= own_levels {
                counted = self.boundary_at(tx, level, rank_key)?.count;
                tx.delete_existing(self.place.elements(), &self.key(level, rank_key))?;
            }
            let before = self.boundary_at(tx, level, rank_key)?;
            let count = (before.count + counted).checked_sub(1);
            let count = count.ok_or_else(|| damaged("the counts of a sorted set disagree"))?;
            self.put(tx, level, &before.rank_key, count)?;
        }
        self.counts.members = self.counts.members.saturating_sub(1);
        Ok(())
    }

    /// Updates the counts for a member that has already moved from one position to another.
    pub(super) fn shift(
        &mut self,
        tx: &mut dyn WriteTransaction,
        [from, to]: [&[u8]; 2],
        member: &[u8],
    ) -> Result<(), WriteError> {
        let are_counted = self.counts.cover(from) && self.counts.cover(to);
        if levels_of(member) > 0 || !are_counted {
            self.remove(tx, from, member)?;
            return self.add(tx, to, member);
        }
        for level in 1..=self.counts.levels {
            let (loses, gains) =
                (self.boundary_at(tx, level, from)?, self.boundary_at(tx, level, to)?);
            // If it stays between the same two boundaries, no count changes at this level or above.
            if loses.rank_key == gains.rank_key {
                break;
            }
            let left = loses.count.checked_sub(1);
            let left = left.ok_or_else(|| damaged("the counts of a sorted set disagree"))?;
            self.put(tx, level, &loses.rank_key, left)?;
            self.put(tx, level, &gains.rank_key, gains.count + 1)?;
        }
        Ok(())
    }

    /// How many members are before a position.
    pub(super) fn rank(
        &self,
        tx: &mut (impl ReadTransaction + ?Sized),
        rank_key: &[u8],
    ) -> Result<u64, ReadError> {
        if let Some(end) = self.counts.end.as_deref().filter(|end| *end < rank_key) {
            return Ok(self.counts.members + self.count_between(tx, 0, end, rank_key)?);
        }
        let (from, rank) = self.last_boundary(tx, |boundary, _| boundary <= rank_key)?;
        Ok(rank + self.count_between(tx, 0, &from, rank_key)?)
    }

    /// The position of the last boundary that is not after the member of this rank, or that of the first one that
    /// is not counted, with the number of members between them.
    pub(super) fn near(
        &self,
        tx: &mut (impl ReadTransaction + ?Sized),
        rank: u64,
    ) -> Result<(Vec<u8>, u64), ReadError> {
        if let Some(end) = self.counts.end.as_ref().filter(|_| self.counts.members <= rank) {
            return Ok((end.clone(), rank - self.counts.members));
        }
        let (from, before) = self.last_boundary(tx, |_, before| before <= rank)?;
        Ok((from, rank - before))
    }

    /// The last boundary of any level for which `holds` is true, as for all before it, with the
    /// number of members before it. `holds` gets both.
    fn last_boundary(
        &self,
        tx: &mut (impl ReadTransaction + ?Sized),
        holds: impl Fn(&[u8], u64) -> bool,
    ) -> Result<(Vec<u8>, u64), ReadError> {
        let (mut last, mut before) = (Vec::new(), 0);
        for level in (1..=self.counts.levels).rev() {
            let (from, mut passed) = (last.clone(), Ok(0));
            self.scan(tx, level, &from, Bound::Unbounded, &mut |key: &[u8], value| {
                let Ok(count) = passed else { return ControlFlow::Break(()) };
                if !holds(key, before + count) {
                    return ControlFlow::Break(());
                }
                before += count;
                last.clear();
                last.extend_from_slice(key);
                passed = count_of(value);
                // After the boundary that counts the last member there may be many deleted ones.
                let has_more =
                    passed.as_ref().is_ok_and(|count| before + count < self.counts.members);
                flow_while(has_more)
            })?;
            passed?;
        }
        Ok((last, before))
    }

    /// The last boundary of a level that is not after a position.
    pub(super) fn boundary_at(
        &self,
        tx: &mut dyn WriteTransaction,
        level: u8,
        rank_key: &[u8],
    ) -> Result<Boundary, ReadError> {
        let head = self.key(level, &[]);
        let (from, to) = (self.key(level, rank_key), self.key(level, self.low));
        let (from, to) = (Bound::Included(&from[..]), Bound::Included(&to[..]));
        let mut found = None;
        self.place.scan_to(tx, &head, from, to, Direction::Backward, &mut |key, value| {
            found = Some(count_of(value).map(|count| Boundary { rank_key: key.to_vec(), count }));
            ControlFlow::Break(())
        })?;
        if let Some(found) = found {
            return found;
        }
        let count = self.first_count(tx, level)?;
        Ok(Boundary { rank_key: Vec::new(), count })
    }

    /// How many members there are from a boundary of the next level up to a position, which is a
    /// boundary of this level, unless the level is 0, that of the members themselves.
    fn count_between(
        &self,
        tx: &mut (impl ReadTransaction + ?Sized),
        level: u8,
        from: &[u8],
        to: &[u8],
    ) -> Result<u64, ReadError> {
        let (mut sum, mut failure) = (0, None);
        let end = self.key(level, to);
        self.scan(tx, level, from, Bound::Excluded(&end), &mut |_, value| {
            match if level == 0 { Ok(1) } else { count_of(value) } {
                Ok(count) => sum += count,
                Err(error) => failure = Some(error),
            }
            ControlFlow::Continue(())
        })?;
        failure.map_or(Ok(sum), Err)
    }

    /// How many members are before the first boundary of a level.
    fn first_count(
        &self,
        tx: &mut (impl ReadTransaction + ?Sized),
        level: u8,
    ) -> Result<u64, ReadError> {
        let found = tx.get(self.place.elements(), &self.key(level, &[]))?;
        let missing = || damaged("a sorted set has no count of its first members");
        count_of(found.ok_or_else(missing)?.value)
    }

    /// Visits the boundaries of a level from `from` on; for level 0, the members.
    fn scan(
        &self,
        tx: &mut (impl ReadTransaction + ?Sized),
        level: u8,
        from: &[u8],
        to: Bound<&[u8]>,
        visit: Visit<'_>,
    ) -> Result<(), ReadError> {
        // The boundary without a member is before `low`, and may be followed by many deleted ones.
        if level > 0 && from < self.low {
            let count = self.first_count(tx, level)?.to_le_bytes();
            if visit(&[], &count).is_break() {
                return Ok(());
            }
        }
        let from = self.key(level, from.max(self.low));
        let head = self.key(level, &[]);
        self.place.scan_to(tx, &head, Bound::Included(&from), to, Direction::Forward, visit)
    }

    pub(super) fn put(
        &self,
        tx: &mut dyn WriteTransaction,
        level: u8,
        rank_key: &[u8],
        count: u64,
    ) -> Result<(), WriteError> {
        let key = self.key(level, rank_key);
        tx.put(self.place.elements(), &key, NewRecord::of(&count.to_le_bytes()))
    }
}
