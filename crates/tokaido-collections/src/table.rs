//! What hashes, sets and sorted sets share: elements without an order of their own, found by name.
//!
//! If packed, they are in the order in which they came. If large, they are ordered by a hash of the
//! name. So a position in that order can be drawn at random to find an element, and can serve as a
//! number to continue from.

use std::{
    iter,
    ops::{Bound, ControlFlow, Range},
};

use tokaido_store::{
    CollectionId, Direction, Kind, ReadError, ReadTransaction, WriteError, WriteTransaction,
};

use super::{
    name_hash::hash,
    packed::{self, Packing, Texts},
    place::{COUNT_LEN, Place, Random, Root, Visit, check_name, damaged, head, stored_count},
    sorted_set::SCORE_LEN,
};

/// The only range of elements.
pub(super) const TAG: u8 = 1;

/// Length in bytes of the hash of the name, which follows the head of an element's key.
const HASH_LEN: usize = 4;

/// A field with its value, if packed; the value of a set's member is empty.
type PackedElement<'p> = (&'p [u8], &'p [u8]);

/// A hash or a set; or a sorted set, which it only reads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Table<'k> {
    pub(super) place: Place<'k>,
}

impl<'k> Table<'k> {
    pub(super) fn new(place: Place<'k>) -> Self {
        Self { place }
    }

    fn has_values(&self) -> bool {
        self.place.kind != Kind::Set
    }

    /// The number of elements.
    pub(super) fn len(&self, tx: &mut (impl ReadTransaction + ?Sized)) -> Result<u64, ReadError> {
        match self.place.find(tx)? {
            None => Ok(0),
            Some(record) => self.count(record.collection, record.value),
        }
    }

    pub(super) fn count(
        &self,
        collection: Option<CollectionId>,
        value: &[u8],
    ) -> Result<u64, ReadError> {
        match collection {
            None => {
                let texts = packed::count(value)? as u64;
                Ok(if self.place.kind == Kind::Hash { texts / 2 } else { texts })
            }
            Some(_) => stored_count(value),
        }
    }

    /// Calls `visit` with the value of each of the names in turn.
    pub(super) fn look_up(
        &self,
        tx: &mut (impl ReadTransaction + ?Sized),
        names: &mut dyn Iterator<Item = &[u8]>,
        visit: &mut dyn FnMut(Option<&[u8]>),
    ) -> Result<(), ReadError> {
        let collection = match self.place.find(tx)? {
            None => {
                names.for_each(|_| visit(None));
                return Ok(());
            }
            Some(record) if record.collection.is_none() => {
                for name in names {
                    visit(self.find_packed(record.value, name)?.map(|found| found.value));
                }
                return Ok(());
            }
            Some(record) => record.collection,
        };
        for name in names {
            match collection.filter(|_| check_name(name).is_ok()) {
                Some(collection) => {
                    let found = tx.get(self.place.elements(), &element_key(collection, name))?;
                    visit(found.map(|record| record.value));
                }
                None => visit(None),
            }
        }
        Ok(())
    }

    /// Calls `visit` with every element, until it breaks off.
    pub(super) fn visit(
        &self,
        tx: &mut (impl ReadTransaction + ?Sized),
        visit: Visit<'_>,
    ) -> Result<(), ReadError> {
        let Some(record) = self.place.find(tx)? else { return Ok(()) };
        match record.collection {
            None => self.visit_packed(record.value, visit),
            Some(collection) => self.visit_all(tx, collection, visit),
        }
    }

    /// Calls `visit` with about `count` elements from `cursor` on, until it breaks off, and returns
    /// the cursor to continue with; 0 at the end, as at the beginning. Elements that are there
    /// throughout are visited at least once.
    pub(super) fn page(
        &self,
        tx: &mut (impl ReadTransaction + ?Sized),
        cursor: u64,
        count: usize,
        visit: Visit<'_>,
    ) -> Result<u64, ReadError> {
        let Some(record) = self.place.find(tx)? else { return Ok(0) };
        let Some(collection) = record.collection else {
            self.visit_packed(record.value, visit)?;
            return Ok(0);
        };
        let Ok(from) = u32::try_from(cursor) else { return Ok(0) };
        let head = head(collection, TAG);
        let from = [&head[..], &from.to_be_bytes()].concat();
        let (mut seen, mut last, mut next) = (0, 0, 0);
        self.place.scan(
            tx,
            &head,
            Bound::Included(&from),
            Direction::Forward,
            &mut |rest, value| {
                let (hash, name) = split(rest);
                // Elements with one hash are visited together, so that it can serve as a cursor.
                if seen >= count && hash != last {
                    next = u64::from(hash);
                    return ControlFlow::Break(());
                }
                (seen, last) = (seen + 1, hash);
                visit(name, value)
            },
        )?;
        Ok(next)
    }

    /// Calls `visit` with the elements after a name, or all, until it breaks off; returns whether
    /// it did. Packed ones are all visited, whatever `visit` returns, and none after a name. If
    /// each call continues after the last name, elements present throughout are visited once.
    pub(super) fn visit_after(
        &self,
        tx: &mut (impl ReadTransaction + ?Sized),
        after: Option<&[u8]>,
        visit: Visit<'_>,
    ) -> Result<ControlFlow<()>, ReadError> {
        let Some(record) = self.place.find(tx)? else { return Ok(ControlFlow::Continue(())) };
        let Some(collection) = record.collection else {
            if after.is_none() {
                self.visit_packed(record.value, &mut |name, value| {
                    let _ = visit(name, value);
                    ControlFlow::Continue(())
                })?;
            }
            return Ok(ControlFlow::Continue(()));
        };
        let head = head(collection, TAG);
        let from = after.map(|name| element_key(collection, name));
        let from = from.as_deref().map_or(Bound::Included(&head[..]), Bound::Excluded);
        let mut flow = ControlFlow::Continue(());
        self.visit_from(tx, &head, from, &mut |name, value| {
            flow = visit(name, value);
            flow
        })?;
        Ok(flow)
    }

    /// Puts elements, each a name and a value, replacing those with the same names; returns how
    /// many are new.
    pub(super) fn insert(
        &self,
        tx: &mut dyn WriteTransaction,
        packing: Packing,
        elements: &mut dyn Iterator<Item = (&[u8], &[u8])>,
    ) -> Result<u64, WriteError> {
        let mut root = self.place.load(tx)?;
        let mut count = self.count(root.collection, &root.value)?;
        let (before, mut has_changed) = (count, false);
        for (name, value) in elements {
            check_name(name)?;
            if root.collection.is_none() {
                let found = self.find_packed(&root.value, name)?.map(|found| found.range);
                let has_room = found.is_some() || count < packing.elements_max as u64;
                if has_room && packing.admits(name) && packing.admits(value) {
                    has_changed |= found.is_none() || self.has_values();
                    count += u64::from(found.is_none());
                    self.put_packed(&mut root.value, found, name, value);
                    continue;
                }
                self.unpack(tx, &mut root)?;
                has_changed = true;
            }
            let Some(collection) = root.collection else { continue };
            let is_new = self.put_element(tx, collection, name, value)?;
            has_changed |= is_new || self.has_values();
            count += u64::from(is_new);
        }
        if has_changed {
            self.save(tx, &mut root, count)?;
        }
        Ok(count - before)
    }

    /// Removes the elements with those names; returns how many there were.
    pub(super) fn remove(
        &self,
        tx: &mut dyn WriteTransaction,
        names: &mut dyn Iterator<Item = &[u8]>,
    ) -> Result<u64, WriteError> {
        let root = self.place.load(tx)?;
        let len = self.count(root.collection, &root.value)?;
        self.remove_from(tx, root, len, names)
    }

    /// Removes `count` random elements, or all if there are no more, and calls `visit` with them;
    /// returns how many. `visit` may break off only if the transaction is then rolled back.
    pub(super) fn pop(
        &self,
        tx: &mut dyn WriteTransaction,
        count: u64,
        random: Random<'_>,
        visit: Visit<'_>,
    ) -> Result<u64, WriteError> {
        let mut root = self.place.load(tx)?;
        let len = self.count(root.collection, &root.value)?;
        if count >= len && len > 0 {
            match root.collection {
                None => self.visit_packed(&root.value, visit)?,
                Some(collection) => self.visit_all(tx, collection, visit)?,
            }
            self.place.delete(tx)?;
            return Ok(len);
        }
        let mut names = Vec::new();
        let take: Visit<'_> = &mut |name, value| {
            packed::push(&mut names, name);
            visit(name, value)
        };
        match root.collection {
            None => self.sample_packed(&root.value, len, count, random, take)?,
            Some(collection) => self.sample_large(tx, collection, len, count, random, take)?,
        }
        let mut names = Texts::of(&names);
        let Some(collection) = root.collection else {
            let names = &mut iter::from_fn(|| names.next().ok().flatten());
            return self.remove_from(tx, root, len, names);
        };
        let mut removed = 0;
        while let Some(name) = names.next()? {
            tx.delete_existing(self.place.elements(), &element_key(collection, name))?;
            removed += 1;
        }
        if removed > 0 {
            self.save(tx, &mut root, len - removed)?;
        }
        Ok(removed)
    }

    /// As [`remove`](Self::remove), with the record already loaded. It counts `before` elements.
    fn remove_from(
        &self,
        tx: &mut dyn WriteTransaction,
        mut root: Root,
        before: u64,
        names: &mut dyn Iterator<Item = &[u8]>,
    ) -> Result<u64, WriteError> {
        let mut count = before;
        for name in names {
            let was_there = match root.collection {
                None => {
                    let found = self.find_packed(&root.value, name)?.map(|found| found.range);
                    found.map(|range| root.value.drain(range)).is_some()
                }
                Some(_) if check_name(name).is_err() => false,
                Some(collection) => {
                    tx.delete(self.place.elements(), &element_key(collection, name))?
                }
            };
            count -= u64::from(was_there);
        }
        if count == 0 && before > 0 {
            self.place.delete(tx)?;
        } else if count < before {
            self.save(tx, &mut root, count)?;
        }
        Ok(before - count)
    }
}

impl Table<'_> {
    /// Deletes whatever is under the key.
    pub(super) fn delete(&self, tx: &mut dyn WriteTransaction) -> Result<(), WriteError> {
        self.place.delete(tx)
    }
}

/// Packed elements.
impl Table<'_> {
    pub(super) fn next_packed<'p>(
        &self,
        texts: &mut Texts<'p>,
    ) -> Result<Option<PackedElement<'p>>, ReadError> {
        let Some(name) = texts.next()? else { return Ok(None) };
        Ok(Some(match self.place.kind {
            Kind::Hash => (name, texts.must()?),
            // The score precedes the member.
            Kind::SortedSet => {
                let split = name.split_at_checked(SCORE_LEN);
                let (score, member) = split.ok_or_else(|| damaged("a score is too short"))?;
                (member, score)
            }
            _ => (name, &[]),
        }))
    }

    fn find_packed<'p>(
        &self,
        packed: &'p [u8],
        name: &[u8],
    ) -> Result<Option<FoundPacked<'p>>, ReadError> {
        let mut texts = Texts::of(packed);
        loop {
            let start = texts.at();
            match self.next_packed(&mut texts)? {
                None => return Ok(None),
                Some((found, value)) if found == name => {
                    return Ok(Some(FoundPacked { range: start..texts.at(), value }));
                }
                Some(_) => {}
            }
        }
    }

    pub(super) fn visit_packed(&self, packed: &[u8], visit: Visit<'_>) -> Result<(), ReadError> {
        let mut texts = Texts::of(packed);
        while let Some((name, value)) = self.next_packed(&mut texts)? {
            if visit(name, value).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn put_packed(
        &self,
        packed: &mut Vec<u8>,
        found: Option<Range<usize>>,
        name: &[u8],
        value: &[u8],
    ) {
        match found {
            Some(range) if self.has_values() => packed::replace(packed, range, &[name, value]),
            Some(_) => {}
            None => {
                packed::push(packed, name);
                if self.has_values() {
                    packed::push(packed, value);
                }
            }
        }
    }
}

/// Elements with records of their own.
impl Table<'_> {
    /// Turns a packed collection into a large one.
    fn unpack(&self, tx: &mut dyn WriteTransaction, root: &mut Root) -> Result<(), WriteError> {
        let collection = tx.new_collection()?;
        let mut texts = Texts::of(&root.value);
        while let Some((name, value)) = self.next_packed(&mut texts)? {
            self.put_element(tx, collection, name, value)?;
        }
        root.collection = Some(collection);
        Ok(())
    }

    /// Puts one element; returns whether it is new.
    fn put_element(
        &self,
        tx: &mut dyn WriteTransaction,
        collection: CollectionId,
        name: &[u8],
        value: &[u8],
    ) -> Result<bool, WriteError> {
        let (elements, key) = (self.place.elements(), element_key(collection, name));
        let is_new = tx.get(elements, &key)?.is_none();
        if is_new || self.has_values() {
            tx.put(elements, &key, tokaido_store::NewRecord::of(value))?;
        }
        Ok(is_new)
    }

    fn save(
        &self,
        tx: &mut dyn WriteTransaction,
        root: &mut Root,
        count: u64,
    ) -> Result<(), WriteError> {
        if root.collection.is_some() {
            root.value.clear();
            root.value.extend_from_slice(&count.to_le_bytes());
            debug_assert_eq!(root.value.len(), COUNT_LEN);
        }
        self.place.save(tx, root)
    }

    pub(super) fn visit_all(
        &self,
        tx: &mut (impl ReadTransaction + ?Sized),
        collection: CollectionId,
        visit: Visit<'_>,
    ) -> Result<(), ReadError> {
        let head = head(collection, TAG);
        self.visit_from(tx, &head, Bound::Included(&head), visit)
    }

    pub(super) fn visit_from(
        &self,
        tx: &mut (impl ReadTransaction + ?Sized),
        head: &[u8],
        from: Bound<&[u8]>,
        visit: Visit<'_>,
    ) -> Result<(), ReadError> {
        self.place.scan(tx, head, from, Direction::Forward, &mut |rest, value| {
            visit(split(rest).1, value)
        })
    }
}

struct FoundPacked<'p> {
    range: Range<usize>,
    value: &'p [u8],
}

pub(super) fn element_key(collection: CollectionId, name: &[u8]) -> Vec<u8> {
    let head = head(collection, TAG);
    let mut key = Vec::with_capacity(head.len() + HASH_LEN + name.len());
    key.extend_from_slice(&head);
    key.extend_from_slice(&hash(name).to_be_bytes());
    key.extend_from_slice(name);
    key
}

/// The hash and the name that follow the head in an element's key.
fn split(rest: &[u8]) -> (u32, &[u8]) {
    match rest.split_first_chunk::<HASH_LEN>() {
        Some((hash, name)) => (u32::from_be_bytes(*hash), name),
        None => (0, rest),
    }
}
