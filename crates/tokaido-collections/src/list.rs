//! Lists: items in the order that their callers gave them.
//!
//! The items of a large list have positions without gaps, so that an index gives the position
//! directly. Inserting or removing an item in the middle moves those on its shorter side.

use std::ops::{Bound, ControlFlow, Range};

use tokaido_store::{
    CollectionId, DatabaseId, Direction, Kind, NewRecord, ReadError, ReadTransaction, WriteError,
    WriteTransaction,
};

use super::{
    packed::{self, Packing, Texts},
    place::{COUNT_LEN, Place, Root, damaged, head, stored_count},
};

/// The only range of elements.
const TAG: u8 = 1;

/// The position of the first item of a new large list, which leaves room on both sides.
const MIDDLE: u64 = 1 << 63;

const MISSING: &str = "an item of a large list is missing";

/// One of the two ends of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Before the first item.
    Front,
    /// After the last item.
    Back,
}

/// The list under one key, whether it exists or not.
#[derive(Clone, Copy, Debug)]
pub struct List<'k> {
    place: Place<'k>,
}

/// The record of a large list.
#[derive(Clone, Copy)]
struct Large {
    collection: CollectionId,
    len: u64,
    /// The position of the first item.
    first: u64,
}

/// A list loaded from the transaction, to be changed.
struct Loaded {
    root: Root,
    large: Option<Large>,
    len: u64,
}

impl Large {
    fn read(collection: CollectionId, value: &[u8]) -> Result<Self, ReadError> {
        let first = value.get(COUNT_LEN..).and_then(<[u8]>::first_chunk::<8>);
        let first = first.ok_or_else(|| damaged("the record of a large list is too short"))?;
        let first = u64::from_le_bytes(*first);
        Ok(Self { collection, len: stored_count(value)?, first })
    }

    fn key(&self, index: u64) -> Vec<u8> {
        let position = self.first.wrapping_add(index);
        [&head(self.collection, TAG)[..], &position.to_be_bytes()].concat()
    }
}

/// Reads.
impl<'k> List<'k> {
    /// The list under `key` of `database`.
    #[must_use]
    pub fn new(database: DatabaseId, key: &'k [u8]) -> Self {
        Self { place: Place { database, key, kind: Kind::List } }
    }

    /// The number of items; 0 if there is no list.
    ///
    /// # Errors
    /// [`ReadError::OtherKind`], here and in all methods below, if the record is not a list.
    pub fn len(&self, tx: &mut (impl ReadTransaction + ?Sized)) -> Result<u64, ReadError> {
        match self.place.find(tx)? {
            None => Ok(0),
            Some(record) if record.collection.is_none() => Ok(packed::count(record.value)? as u64),
            Some(record) => stored_count(record.value),
        }
    }

    /// Whether there is no list.
    ///
    /// # Errors
    /// As [`len`](Self::len).
    pub fn is_empty(&self, tx: &mut (impl ReadTransaction + ?Sized)) -> Result<bool, ReadError> {
        Ok(self.len(tx)? == 0)
    }

    /// Calls `visit` with the items in a range of indexes, each with its index, in either
    /// direction, until it breaks off.
    ///
    /// # Errors
    /// As [`len`](Self::len).
    pub fn visit(
        &self,
        tx: &mut (impl ReadTransaction + ?Sized),
        range: Range<u64>,
        direction: Direction,
        mut visit: impl FnMut(u64, &[u8]) -> ControlFlow<()>,
    ) -> Result<(), ReadError> {
        let Some(record) = self.place.find(tx)? else { return Ok(()) };
        let Some(collection) = record.collection else {
            return visit_packed(record.value, range, direction, &mut visit);
        };
        let large = Large::read(collection, record.value)?;
        self.visit_large(tx, &large, range, direction, &mut visit)
    }
}

impl List<'_> {
    fn visit_large(
        &self,
        tx: &mut (impl ReadTransaction + ?Sized),
        large: &Large,
        range: Range<u64>,
        direction: Direction,
        visit: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>,
    ) -> Result<(), ReadError> {
        /// Up to this many items are read by key: a scan would first have to sort new records.
        const GOT_MAX: u64 = 4;
        let range = range.start..range.end.min(large.len);
        if range.is_empty() {
            return Ok(());
        }
        let mut left = range.end - range.start;
        if left <= GOT_MAX {
            return self.visit_few(tx, large, range, direction, visit);
        }
        let mut index = if direction == Direction::Forward { range.start } else { range.end - 1 };
        let from = large.key(index);
        let head = head(large.collection, TAG);
        self.place.scan(tx, &head, Bound::Included(&from), direction, &mut |_, item| {
            left -= 1;
            if visit(index, item).is_break() || left == 0 {
                return ControlFlow::Break(());
            }
            index = if direction == Direction::Forward { index + 1 } else { index - 1 };
            ControlFlow::Continue(())
        })
    }

    fn visit_few(
        &self,
        tx: &mut (impl ReadTransaction + ?Sized),
        large: &Large,
        range: Range<u64>,
        direction: Direction,
        visit: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>,
    ) -> Result<(), ReadError> {
        let (start, last) = (range.start, range.end - 1);
        for nth in range {
            let index = if direction == Direction::Forward { nth } else { last - (nth - start) };
            let found = tx.get(self.place.elements(), &large.key(index))?;
            let item = found.ok_or_else(|| damaged(MISSING))?;
            if visit(index, item.value).is_break() {
                return Ok(());
            }
        }
        Ok(())
    }
}

/// Writes.
impl List<'_> {
    /// Puts items at one end, one after the other; returns the new number of items.
    ///
    /// # Errors
    /// As [`len`](Self::len) and [`WriteTransaction::put`].
    pub fn push<'i>(
        &self,
        tx: &mut dyn WriteTransaction,
        packing: Packing,
        end: End,
        items: impl IntoIterator<Item = &'i [u8]>,
    ) -> Result<u64, WriteError> {
        let mut list = self.load(tx)?;
        for item in items {
            let is_packed =
                list.len < packing.elements_max as u64 && packing.admits(item) && list.is_packed();
            if is_packed {
                let at = if end == End::Front { 0 } else { list.root.value.len() };
                packed::replace(&mut list.root.value, at..at, &[item]);
                list.len += 1;
                continue;
            }
            let large = self.enlarge(tx, &mut list)?;
            if end == End::Front {
                large.first -= 1;
            }
            let index = if end == End::Front { 0 } else { large.len };
            large.len += 1;
            let key = large.key(index);
            tx.put(self.place.elements(), &key, NewRecord::of(item))?;
            list.len += 1;
        }
        self.save(tx, list)
    }

    /// Removes `count` items from one end, or all if there are no more, and calls `visit` with them
    /// in the order of removal; returns how many there were. `visit` may break off only if the
    /// transaction is then rolled back.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub fn pop(
        &self,
        tx: &mut dyn WriteTransaction,
        end: End,
        count: u64,
        mut visit: impl FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<u64, WriteError> {
        let list = self.load(tx)?;
        let (len, count) = (list.len, count.min(list.len));
        if count == 0 {
            return Ok(0);
        }
        let (range, kept, direction) = match end {
            End::Front => (0..count, count..len, Direction::Forward),
            End::Back => (len - count..len, 0..len - count, Direction::Backward),
        };
        let show: &mut dyn FnMut(u64, &[u8]) -> _ = &mut |_, item| visit(item);
        match &list.large {
            Some(large) => self.visit_large(tx, large, range, direction, show)?,
            None => visit_packed(&list.root.value, range, direction, show)?,
        }
        self.keep(tx, list, kept)?;
        Ok(count)
    }

    /// Replaces the item at `index`; returns whether there was one.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub fn set(
        &self,
        tx: &mut dyn WriteTransaction,
        packing: Packing,
        index: u64,
        item: &[u8],
    ) -> Result<bool, WriteError> {
        let mut list = self.load(tx)?;
        if index >= list.len {
            return Ok(false);
        }
        if list.is_packed() && packing.admits(item) {
            let place = packed_place(&list.root.value, index)?;
            packed::replace(&mut list.root.value, place, &[item]);
        } else {
            let key = self.enlarge(tx, &mut list)?.key(index);
            tx.put(self.place.elements(), &key, NewRecord::of(item))?;
        }
        self.save(tx, list)?;
        Ok(true)
    }

    /// Puts an item before the one at `index`, or after the last one if `index` is past the end;
    /// returns the new number of items.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub fn insert(
        &self,
        tx: &mut dyn WriteTransaction,
        packing: Packing,
        index: u64,
        item: &[u8],
    ) -> Result<u64, WriteError> {
        let mut list = self.load(tx)?;
        let index = index.min(list.len);
        if list.is_packed() && packing.admits(item) && list.len < packing.elements_max as u64 {
            let at = packed_place(&list.root.value, index)?.start;
            packed::replace(&mut list.root.value, at..at, &[item]);
            list.len += 1;
            return self.save(tx, list);
        }
        let large = self.enlarge(tx, &mut list)?;
        let old = *large;
        large.len += 1;
        if index < old.len / 2 {
            large.first -= 1;
            for i in 0..index {
                self.copy_item(tx, &old.key(i), &large.key(i))?;
            }
        } else {
            for i in (index..old.len).rev() {
                self.copy_item(tx, &old.key(i), &large.key(i + 1))?;
            }
        }
        let key = large.key(index);
        tx.put(self.place.elements(), &key, NewRecord::of(item))?;
        list.len += 1;
        self.save(tx, list)
    }

    /// Removes the items at some indexes, which must be ascending and all exist.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub fn remove(&self, tx: &mut dyn WriteTransaction, indexes: &[u64]) -> Result<(), WriteError> {
        let (Some(&lowest), Some(&highest)) = (indexes.first(), indexes.last()) else {
            return Ok(());
        };
        let mut list = self.load(tx)?;
        let removed = indexes.len() as u64;
        match list.large {
            None => {
                let (mut texts, mut kept, mut index) = (Texts::of(&list.root.value), Vec::new(), 0);
                while let Some(text) = texts.next()? {
                    if indexes.binary_search(&index).is_err() {
                        packed::push(&mut kept, text);
                    }
                    index += 1;
                }
                list.root.value = kept;
            }
            // The items after them move down, or those before move up.
            Some(mut large) if large.len - lowest <= highest + 1 => {
                let mut to = lowest;
                for from in lowest..large.len {
                    if indexes.binary_search(&from).is_err() {
                        self.copy_item(tx, &large.key(from), &large.key(to))?;
                        to += 1;
                    }
                }
                self.delete_items(tx, &large, to..large.len)?;
                large.len = to;
                list.large = Some(large);
            }
            Some(mut large) => {
                let mut to = highest + 1;
                for from in (0..=highest).rev() {
                    if indexes.binary_search(&from).is_err() {
                        to -= 1;
                        self.copy_item(tx, &large.key(from), &large.key(to))?;
                    }
                }
                self.delete_items(tx, &large, 0..to)?;
                (large.first, large.len) = (large.first + removed, large.len - removed);
                list.large = Some(large);
            }
        }
        list.len -= removed;
        self.save(tx, list).map(|_| ())
    }

    /// Removes all items but those of a range of indexes.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub fn trim(&self, tx: &mut dyn WriteTransaction, kept: Range<u64>) -> Result<(), WriteError> {
        let list = self.load(tx)?;
        self.keep(tx, list, kept)
    }
}

impl Loaded {
    fn is_packed(&self) -> bool {
        self.large.is_none()
    }
}

impl List<'_> {
    /// Removes all items but those of a range of indexes.
    fn keep(
        &self,
        tx: &mut dyn WriteTransaction,
        mut list: Loaded,
        kept: Range<u64>,
    ) -> Result<(), WriteError> {
        let kept = kept.start..kept.end.min(list.len);
        if kept.is_empty() {
            list.len = 0;
        } else if let Some(mut large) = list.large {
            self.delete_items(tx, &large, 0..kept.start)?;
            self.delete_items(tx, &large, kept.end..large.len)?;
            (large.first, large.len) = (large.first + kept.start, kept.end - kept.start);
            list.large = Some(large);
            list.len = large.len;
        } else {
            let end = packed_place(&list.root.value, kept.end - 1)?.end;
            let start = packed_place(&list.root.value, kept.start)?.start;
            list.root.value = list.root.value[start..end].to_vec();
            list.len = kept.end - kept.start;
        }
        self.save(tx, list).map(|_| ())
    }

    fn load(&self, tx: &mut dyn WriteTransaction) -> Result<Loaded, ReadError> {
        let root = self.place.load(tx)?;
        let large = root.collection.map(|id| Large::read(id, &root.value)).transpose()?;
        let len = match large {
            Some(large) => large.len,
            None => packed::count(&root.value)? as u64,
        };
        Ok(Loaded { root, large, len })
    }

    /// Puts the record back, or deletes it if it has no items left; returns the number of items.
    fn save(&self, tx: &mut dyn WriteTransaction, mut list: Loaded) -> Result<u64, WriteError> {
        if list.len == 0 {
            self.place.delete(tx)?;
            return Ok(0);
        }
        if let Some(Large { collection, len, first }) = list.large {
            list.root.collection = Some(collection);
            list.root.value = [len.to_le_bytes(), first.to_le_bytes()].concat();
        }
        self.place.save(tx, &list.root)?;
        Ok(list.len)
    }

    /// Turns a packed list into a large one.
    fn enlarge<'l>(
        &self,
        tx: &mut dyn WriteTransaction,
        list: &'l mut Loaded,
    ) -> Result<&'l mut Large, WriteError> {
        let large = match list.large {
            Some(large) => large,
            None => {
                let collection = tx.new_collection()?;
                let large = Large { collection, len: list.len, first: MIDDLE };
                let (mut texts, mut index) = (Texts::of(&list.root.value), 0);
                while let Some(item) = texts.next()? {
                    tx.put(self.place.elements(), &large.key(index), NewRecord::of(item))?;
                    index += 1;
                }
                large
            }
        };
        Ok(list.large.insert(large))
    }

    fn copy_item(
        &self,
        tx: &mut dyn WriteTransaction,
        from: &[u8],
        to: &[u8],
    ) -> Result<(), WriteError> {
        if from == to {
            return Ok(());
        }
        let found = tx.get(self.place.elements(), from)?.map(|record| record.value.to_vec());
        let item = found.ok_or_else(|| damaged(MISSING))?;
        tx.put(self.place.elements(), to, NewRecord::of(&item))
    }

    fn delete_items(
        &self,
        tx: &mut dyn WriteTransaction,
        large: &Large,
        indexes: Range<u64>,
    ) -> Result<(), WriteError> {
        for index in indexes {
            tx.delete_existing(self.place.elements(), &large.key(index))?;
        }
        Ok(())
    }
}

fn visit_packed(
    packed: &[u8],
    range: Range<u64>,
    direction: Direction,
    visit: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>,
) -> Result<(), ReadError> {
    let (mut texts, mut items) = (Texts::of(packed), Vec::new());
    while let Some(item) = texts.next()? {
        items.push(item);
    }
    let end = range.end.min(items.len() as u64);
    let indexes = range.start.min(end)..end;
    let mut show = |index: u64| visit(index, items[index as usize]);
    let _ = match direction {
        Direction::Forward => indexes.into_iter().try_for_each(&mut show),
        Direction::Backward => indexes.into_iter().rev().try_for_each(&mut show),
    };
    Ok(())
}

/// Where the item at an index is in a packed list; the end if the index is past the end.
fn packed_place(packed: &[u8], index: u64) -> Result<Range<usize>, ReadError> {
    let mut texts = Texts::of(packed);
    for _ in 0..index {
        texts.must()?;
    }
    let start = texts.at();
    texts.next()?;
    Ok(start..texts.at())
}
