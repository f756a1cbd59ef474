//! Walks over the rows of a plan: each row is visited once, and only existing rows.

use std::ops::{Bound, ControlFlow};

use tokaido_store::{DatabaseId, Direction, ReadError, ReadTransaction};

use crate::{
    Index, Row, TableError,
    entries::{self, Entry},
    range::Range,
};

/// Entries read at a time: few at first, since a query may need no more, then more and more.
const BATCH_MIN: usize = 16;
const BATCH_MAX: usize = 1024;

/// The result of visiting a row: whether to continue.
pub(crate) type Shown = Result<ControlFlow<()>, TableError>;

/// Calls `visit` with the rows in disjoint, ordered ranges of keys.
pub(crate) fn rows(
    tx: &mut dyn ReadTransaction,
    database: DatabaseId,
    ranges: &[Range],
    direction: Direction,
    visit: &mut dyn FnMut(&[u8], Row<'_>) -> Shown,
) -> Shown {
    for range in in_direction(ranges, direction) {
        let mut shown = Ok(ControlFlow::Continue(()));
        let (from, to) = ends(range, direction);
        tx.scan(database, from, to, direction, &mut |entry| {
            if let Some(value) = entries::row_value(&entry.record) {
                shown = visit(entry.key, Row::new(value));
            }
            if matches!(shown, Ok(ControlFlow::Continue(()))) {
                return ControlFlow::Continue(());
            }
            ControlFlow::Break(())
        })?;
        if shown?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// A walk over entries of an index.
pub(crate) struct EntryWalk<'w> {
    pub(crate) database: DatabaseId,
    pub(crate) index: &'w Index,
    /// Disjoint and ordered.
    pub(crate) ranges: &'w [Range],
    pub(crate) direction: Direction,
    /// Whether a row may have several entries there. It is visited for the first one only.
    pub(crate) may_repeat: bool,
}

impl EntryWalk<'_> {
    /// Calls `visit` with the rows of the entries, and whether an entry has only a text's prefix.
    pub(crate) fn run(
        &self,
        tx: &mut dyn ReadTransaction,
        visit: &mut dyn FnMut(&[u8], Row<'_>, bool) -> Shown,
    ) -> Shown {
        for range in in_direction(self.ranges, self.direction) {
            let (from, to) = ends(range, self.direction);
            let mut from = from.map(<[u8]>::to_vec);
            let mut batch_len = BATCH_MIN;
            loop {
                let batch = self.batch(tx, from.as_ref().map(Vec::as_slice), to, batch_len)?;
                for entry in &batch {
                    if self.show(tx, entry, visit)?.is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
                if batch.len() < batch_len {
                    break;
                }
                batch_len = BATCH_MAX.min(batch_len * 2);
                let Some(last) = batch.into_iter().next_back() else { break };
                from = Bound::Excluded(last.key);
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn batch(
        &self,
        tx: &mut dyn ReadTransaction,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        len: usize,
    ) -> Result<Vec<Entry>, ReadError> {
        let (mut batch, mut failed) = (Vec::new(), None);
        tx.scan(self.database.elements(), from, to, self.direction, &mut |found| {
            if batch.len() == len {
                return ControlFlow::Break(());
            }
            match Entry::new(found.key, found.record.value) {
                Ok(entry) => batch.push(entry),
                Err(error) => {
                    failed = Some(error);
                    return ControlFlow::Break(());
                }
            }
            ControlFlow::Continue(())
        })?;
        failed.map_or(Ok(batch), Err)
    }

    fn show(
        &self,
        tx: &mut dyn ReadTransaction,
        entry: &Entry,
        visit: &mut dyn FnMut(&[u8], Row<'_>, bool) -> Shown,
    ) -> Shown {
        let key = entry.row_key();
        let found = tx.get(self.database, key)?;
        let Some(value) = found.as_ref().and_then(entries::row_value) else {
            return Ok(ControlFlow::Continue(()));
        };
        let row = Row::new(value);
        if self.may_repeat && !self.is_first(entry, key, row) {
            return Ok(ControlFlow::Continue(()));
        }
        visit(key, row, entry.is_cut())
    }

    /// Whether the walk reaches this entry before all others of its row.
    fn is_first(&self, entry: &Entry, key: &[u8], row: Row<'_>) -> bool {
        let own = entries::of_index(self.index, key, row);
        let mut met = own.iter().filter(|own| self.ranges.iter().any(|range| range.has(own)));
        let first = match self.direction {
            Direction::Forward => met.next(),
            Direction::Backward => met.next_back(),
        };
        first == Some(&entry.key)
    }
}

fn in_direction(ranges: &[Range], direction: Direction) -> impl Iterator<Item = &Range> {
    let len = ranges.len();
    (0..len).map(move |place| match direction {
        Direction::Forward => &ranges[place],
        Direction::Backward => &ranges[len - 1 - place],
    })
}

/// Where a scan of a range starts, and where it ends.
fn ends(range: &Range, direction: Direction) -> (Bound<&[u8]>, Bound<&[u8]>) {
    let is_bounded = !range.low.is_empty();
    let low = if is_bounded { Bound::Included(&range.low[..]) } else { Bound::Unbounded };
    let high = range.high.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
    match direction {
        Direction::Forward => (low, high),
        Direction::Backward => (high, low),
    }
}
