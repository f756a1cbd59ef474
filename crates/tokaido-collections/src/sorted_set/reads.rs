//! Reading a sorted set.

use std::ops::{Bound, ControlFlow, Range};

use tokaido_store::{CollectionId, DatabaseId, Direction, Kind, ReadError, ReadTransaction};

use super::{
    super::{
        packed::Texts,
        place::{Place, Random, Visit, damaged, head},
        table::Table,
    },
    ranks::TAG_RANKS,
    record::Large,
    score::{self, Span, rank_key, split},
};

/// A rank that takes more steps than this to find is a reason to count the members.
const STEPS_MAX: u64 = 256;

/// A callback that gets members with their scores, until it breaks off.
pub(super) type VisitScored<'v> = &'v mut dyn FnMut(&[u8], f64) -> ControlFlow<()>;

/// A callback that gets members' positions in rank order, names and scores, until it breaks off.
type VisitRanked<'v> = &'v mut dyn FnMut(&[u8], &[u8], f64) -> ControlFlow<()>;

/// The sorted set under one key, whether it exists or not.
#[derive(Clone, Copy, Debug)]
pub struct SortedSet<'k> {
    pub(super) place: Place<'k>,
    table: Table<'k>,
}

/// Reads.
impl<'k> SortedSet<'k> {
    /// The sorted set under `key` of `database`.
    #[must_use]
    pub fn new(database: DatabaseId, key: &'k [u8]) -> Self {
        let place = Place { database, key, kind: Kind::SortedSet };
        Self { place, table: Table::new(place) }
    }

    /// The number of members; 0 if there is no sorted set.
    ///
    /// # Errors
    /// [`ReadError::OtherKind`], here and in all methods below, if the record is not a sorted set.
    pub fn len(&self, tx: &mut (impl ReadTransaction + ?Sized)) -> Result<u64, ReadError> {
        self.table.len(tx)
    }

    /// Whether there is no sorted set.
    ///
    /// # Errors
    /// As [`len`](Self::len).
    pub fn is_empty(&self, tx: &mut (impl ReadTransaction + ?Sized)) -> Result<bool, ReadError> {
        Ok(self.len(tx)? == 0)
    }

    /// Calls `visit` with the scores of `members`, in that order; `None` for missing ones.
    ///
    /// # Errors
    /// As [`len`](Self::len).
    pub fn look_up<'m>(
        &self,
        tx: &mut (impl ReadTransaction + ?Sized),
        members: impl IntoIterator<Item = &'m [u8]>,
        mut visit: impl FnMut(Option<f64>),
    ) -> Result<(), ReadError> {
        let mut result = Ok(());
        self.table.look_up(tx, &mut members.into_iter(), &mut |found| match found
            .map(score::decode)
            .transpose()
        {
            Ok(score) => visit(score),
            Err(error) => result = Err(error),
        })?;
        result
    }

    /// How many members are before this one, and its score; `None` if it does not exist.
    ///
    /// # Errors
    /// As [`len`](Self::len).
    pub fn rank(
        &self,
        tx: &mut (impl ReadTransaction + ?Sized),
        member: &[u8],
    ) -> Result<Option<(u64, f64)>, ReadError> {
        let mut score = None;
        self.look_up(tx, [member], |found| score = found)?;
        let Some(score) = score else { return Ok(None) };
        Ok(Some((self.count_before(tx, &rank_key(score, member))?, score)))
    }

    /// The ranks of the members in a span.
    ///
    /// # Errors
    /// As [`len`](Self::len).
    pub fn ranks(
        &self,
        tx: &mut (impl ReadTransaction + ?Sized),
        span: &Span,
    ) -> Result<Range<u64>, ReadError> {
        let start = if span.low.is_empty() { 0 } else { self.count_before(tx, &span.low)? };
        let end = match &span.high {
            Some(high) => self.count_before(tx, high)?,
            None => self.len(tx)?,
        };
        Ok(start.min(end)..end)
    }

    /// How many members are in a span.
    ///
    /// # Errors
    /// As [`len`](Self::len).
    pub fn count(
        &self,
        tx: &mut (impl ReadTransaction + ?Sized),
        span: &Span,
    ) -> Result<u64, ReadError> {
        if span.is_empty() || self.uncounted(tx)? == 0 {
            let ranks = self.ranks(tx, span)?;
            return Ok(ranks.end - ranks.start);
        }
        let mut count = 0;
        self.visit(tx, span, Direction::Forward, |_, _| {
            count += 1;
            ControlFlow::Continue(())
        })?;
        self.note_steps(tx, count);
        Ok(count)
    }

    /// How many members are not counted, so that finding a rank may take as many steps. Counting begins some time after
    /// a rank has taken many.
    ///
    /// # Errors
    /// As [`len`](Self::len).
    pub fn uncounted(&self, tx: &mut (impl ReadTransaction + ?Sized)) -> Result<u64, ReadError> {
        let Some(record) = self.place.find(tx)? else { return Ok(0) };
        let Some(collection) = record.collection else { return Ok(0) };
        let large = Large::read(collection, record.value)?;
        Ok(large.len.saturating_sub(large.counts.members))
    }

    /// Calls `visit` with a span's members and scores, in either direction, until it breaks off.
    ///
    /// # Errors
    /// As [`len`](Self::len).
    pub fn visit(
        &self,
        tx: &mut (impl ReadTransaction + ?Sized),
        span: &Span,
        direction: Direction,
        mut visit: impl FnMut(&[u8], f64) -> ControlFlow<()>,
    ) -> Result<(), ReadError> {
        let Some(record) = self.place.find(tx)? else { return Ok(()) };
        let Some(collection) = record.collection else {
            let keys = packed_keys(record.value)?;
            let start = keys.partition_point(|key| *key < &span.low[..]);
            let end = keys.partition_point(|key| span.is_before_end(key));
            return show(&keys[start.min(end)..end], direction, &mut visit);
        };
        let large = Large::read(collection, record.value)?;
        if span.is_empty() {
            return Ok(());
        }
        let low = large.key(large.low.as_slice().max(&span.low));
        let mut high = large.high_key();
        if let Some(end) = &span.high {
            high = high.min(large.key(end));
        }
        let (low, high) = (Bound::Included(&low[..]), Bound::Excluded(&high[..]));
        let (from, to) = match direction {
            Direction::Forward => (low, high),
            Direction::Backward => (high, low),
        };
        self.visit_keys(tx, collection, from, to, direction, &mut |_, member, score| {
            visit(member, score)
        })
    }

    /// Calls `visit` with some ranks' members and scores, in either direction, until it breaks off.
    ///
    /// # Errors
    /// As [`len`](Self::len).
    pub fn visit_ranks(
        &self,
        tx: &mut (impl ReadTransaction + ?Sized),
        ranks: Range<u64>,
        direction: Direction,
        mut visit: impl FnMut(&[u8], f64) -> ControlFlow<()>,
    ) -> Result<(), ReadError> {
        let Some(record) = self.place.find(tx)? else { return Ok(()) };
        let Some(collection) = record.collection else {
            return visit_packed_ranks(record.value, ranks, direction, &mut visit);
        };
        let large = Large::read(collection, record.value)?;
        self.visit_large_ranks(tx, &large, ranks, direction, &mut visit)
    }

    pub(super) fn visit_large_ranks(
        &self,
        tx: &mut (impl ReadTransaction + ?Sized),
        large: &Large,
        ranks: Range<u64>,
        direction: Direction,
        visit: VisitScored<'_>,
    ) -> Result<(), ReadError> {
        /// Up to this many members from an end of the set, no counts are needed.
        const WALKED_MAX: u64 = 32;
        let end = ranks.end.min(large.len);
        if ranks.start >= end {
            return Ok(());
        }
        let (first, passed) = match direction {
            Direction::Forward => (ranks.start, ranks.start),
            Direction::Backward => (end - 1, large.len - end),
        };
        let is_near = passed <= WALKED_MAX;
        let (mut skipped, mut left) = (if is_near { passed } else { 0 }, end - ranks.start);
        let show: VisitRanked<'_> = &mut |_, member, score| {
            if skipped > 0 {
                skipped -= 1;
                return ControlFlow::Continue(());
            }
            left -= 1;
            visit(member, score)?;
            if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        if is_near {
            return self.walk(tx, large, direction, show);
        }
        let from = large.key(&self.key_of_rank(tx, large, first)?);
        let (from, to) = (Bound::Included(&from[..]), Bound::Unbounded);
        self.visit_keys(tx, large.collection, from, to, direction, show)
    }

    /// Visits all members.
    pub(super) fn walk(
        &self,
        tx: &mut (impl ReadTransaction + ?Sized),
        large: &Large,
        direction: Direction,
        visit: VisitRanked<'_>,
    ) -> Result<(), ReadError> {
        let (low, high) = (large.low_key(), large.high_key());
        let (low, high) = (Bound::Included(&low[..]), Bound::Excluded(&high[..]));
        let (from, to) = match direction {
            Direction::Forward => (low, high),
            Direction::Backward => (high, low),
        };
        self.visit_keys(tx, large.collection, from, to, direction, visit)
    }

    /// Calls `visit` with about `count` members and their scores from `cursor` on, which is 0 at
    /// first, until it breaks off. Returns the cursor to continue with; 0 at the end. A packed set
    /// is visited as a whole. Members present throughout are visited at least once.
    ///
    /// # Errors
    /// As [`len`](Self::len).
    pub fn page(
        &self,
        tx: &mut (impl ReadTransaction + ?Sized),
        cursor: u64,
        count: usize,
        mut visit: impl FnMut(&[u8], f64) -> ControlFlow<()>,
    ) -> Result<u64, ReadError> {
        decoding(&mut visit, |visit| self.table.page(tx, cursor, count, visit))
    }

    /// Calls `visit` with `times` members and their scores, each drawn at random from all of them,
    /// until it breaks off; none if there is no sorted set. In a large one, some are drawn a little
    /// more often.
    ///
    /// # Errors
    /// As [`len`](Self::len).
    pub fn draw(
        &self,
        tx: &mut (impl ReadTransaction + ?Sized),
        times: u64,
        random: Random<'_>,
        mut visit: impl FnMut(&[u8], f64) -> ControlFlow<()>,
    ) -> Result<(), ReadError> {
        decoding(&mut visit, |visit| self.table.draw(tx, times, random, visit))
    }

    /// Calls `visit` with `count` different members and their scores, drawn at random, or all if
    /// there are no more, until it breaks off.
    ///
    /// # Errors
    /// As [`len`](Self::len).
    pub fn sample(
        &self,
        tx: &mut (impl ReadTransaction + ?Sized),
        count: u64,
        random: Random<'_>,
        mut visit: impl FnMut(&[u8], f64) -> ControlFlow<()>,
    ) -> Result<(), ReadError> {
        decoding(&mut visit, |visit| self.table.sample(tx, count, random, visit))
    }
}

/// Runs code that visits members with encoded scores, and decodes these for `visit`.
fn decoding<R>(
    visit: VisitScored<'_>,
    run: impl FnOnce(Visit<'_>) -> Result<R, ReadError>,
) -> Result<R, ReadError> {
    let mut failure = None;
    let ran = run(&mut |member, score| match score::decode(score) {
        Ok(score) => visit(member, score),
        Err(error) => {
            failure = Some(error);
            ControlFlow::Break(())
        }
    })?;
    failure.map_or(Ok(ran), Err)
}

impl SortedSet<'_> {
    /// How many members are before a position.
    fn count_before(
        &self,
        tx: &mut (impl ReadTransaction + ?Sized),
        key: &[u8],
    ) -> Result<u64, ReadError> {
        let Some(record) = self.place.find(tx)? else { return Ok(0) };
        let Some(collection) = record.collection else {
            let keys = packed_keys(record.value)?;
            return Ok(keys.partition_point(|other| *other < key) as u64);
        };
        let large = Large::read(collection, record.value)?;
        let rank = large.ranks(self.place).rank(tx, key)?;
        if !large.counts.cover(key) {
            self.note_steps(tx, rank - large.counts.members);
        }
        Ok(rank)
    }

    /// Asks for counts if it took too many steps without them.
    fn note_steps(&self, tx: &mut (impl ReadTransaction + ?Sized), steps: u64) {
        if steps > STEPS_MAX {
            tx.request_upkeep(self.place.database, self.place.key);
        }
    }

    /// The position of the member with a rank.
    fn key_of_rank(
        &self,
        tx: &mut (impl ReadTransaction + ?Sized),
        large: &Large,
        rank: u64,
    ) -> Result<Vec<u8>, ReadError> {
        let (near, after) = large.ranks(self.place).near(tx, rank)?;
        // It may be nearer to the last member.
        let before = large.len - 1 - rank;
        let (from, direction, mut left) = match after <= before {
            true => (large.key(near.as_slice().max(&large.low)), Direction::Forward, after),
            false => (large.high_key(), Direction::Backward, before),
        };
        if large.counts.end.is_some() {
            self.note_steps(tx, left);
        }
        let from = match direction {
            Direction::Forward => Bound::Included(&from[..]),
            Direction::Backward => Bound::Excluded(&from[..]),
        };
        let (mut found, to) = (None, Bound::Unbounded);
        self.visit_keys(tx, large.collection, from, to, direction, &mut |key, _, _| {
            if left == 0 {
                found = Some(key.to_vec());
                return ControlFlow::Break(());
            }
            left -= 1;
            ControlFlow::Continue(())
        })?;
        found.ok_or_else(|| damaged("a sorted set has fewer members than its record says"))
    }

    /// Visits members in rank order from one key to another, with their positions in it.
    pub(super) fn visit_keys(
        &self,
        tx: &mut (impl ReadTransaction + ?Sized),
        collection: CollectionId,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        direction: Direction,
        visit: VisitRanked<'_>,
    ) -> Result<(), ReadError> {
        let mut result = Ok(());
        let head = head(collection, TAG_RANKS);
        self.place.scan_to(tx, &head, from, to, direction, &mut |key, _| match split(key) {
            Ok((member, score)) => visit(key, member, score),
            Err(error) => {
                result = Err(error);
                ControlFlow::Break(())
            }
        })?;
        result
    }
}

/// The members of a packed sorted set, each preceded by its score, in order.
fn packed_keys(packed: &[u8]) -> Result<Vec<&[u8]>, ReadError> {
    let (mut texts, mut keys) = (Texts::of(packed), Vec::new());
    while let Some(key) = texts.next()? {
        keys.push(key);
    }
    Ok(keys)
}

pub(super) fn visit_packed_ranks(
    packed: &[u8],
    ranks: Range<u64>,
    direction: Direction,
    visit: VisitScored<'_>,
) -> Result<(), ReadError> {
    let keys = packed_keys(packed)?;
    let end = ranks.end.min(keys.len() as u64) as usize;
    let start = ranks.start.min(end as u64) as usize;
    show(&keys[start..end], direction, visit)
}

fn show(keys: &[&[u8]], direction: Direction, visit: VisitScored<'_>) -> Result<(), ReadError> {
    let mut show_one = |key: &[u8]| -> Result<bool, ReadError> {
        let (member, score) = split(key)?;
        Ok(visit(member, score).is_break())
    };
    for i in 0..keys.len() {
        let key = match direction {
            Direction::Forward => keys[i],
            Direction::Backward => keys[keys.len() - 1 - i],
        };
        if show_one(key)? {
            break;
        }
    }
    Ok(())
}
