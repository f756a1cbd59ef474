//! Where a collection is stored: its record, which is read, changed and put back as a whole, and
//! the keys of its elements.

use std::ops::{Bound, ControlFlow};

use tokaido_store::{
    CollectionId, DatabaseId, Direction, Entry, Kind, Marks, NewRecord, ReadError, ReadTransaction,
    Record, WriteError, WriteTransaction, limits, prefix_end,
};

/// A callback that gets elements, each as two texts, until it breaks off.
pub(super) type Visit<'v> = &'v mut dyn FnMut(&[u8], &[u8]) -> ControlFlow<()>;

/// A source of random numbers.
pub type Random<'r> = &'r mut dyn FnMut() -> u64;

/// The key of a collection, and the kind that must be there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'k> {
    pub(super) database: DatabaseId,
    pub(super) key: &'k [u8],
    pub(super) kind: Kind,
}

/// The record of a collection, loaded from the transaction. An empty one stands for a collection
/// that does not exist.
#[derive(Clone, Debug, Default)]
pub(super) struct Root {
    flags: u32,
    expires_at_ms: Option<u64>,
    /// The elements of a large collection.
    pub(super) collection: Option<CollectionId>,
    /// All of a packed collection, or the metadata of a large one.
    pub(super) value: Vec<u8>,
}

impl Place<'_> {
    /// The record, if it exists.
    pub(super) fn find<'t>(
        &self,
        tx: &'t mut (impl ReadTransaction + ?Sized),
    ) -> Result<Option<Record<'t>>, ReadError> {
        match tx.get(self.database, self.key)? {
            Some(record) if record.kind != self.kind => Err(ReadError::OtherKind),
            found => Ok(found),
        }
    }

    /// A copy of the record, to be changed.
    pub(super) fn load(&self, tx: &mut (impl ReadTransaction + ?Sized)) -> Result<Root, ReadError> {
        let found = self.find(tx)?;
        Ok(found.map_or_else(Root::default, |record| Root {
            flags: record.flags,
            expires_at_ms: record.expires_at_ms,
            collection: record.collection,
            value: record.value.to_vec(),
        }))
    }

    /// Puts the record back.
    pub(super) fn save(
        &self,
        tx: &mut dyn WriteTransaction,
        root: &Root,
    ) -> Result<(), WriteError> {
        let Root { flags, expires_at_ms, collection, ref value } = *root;
        let marks = Marks::NONE;
        let record = NewRecord { value, flags, expires_at_ms, kind: self.kind, collection, marks };
        tx.put(self.database, self.key, record)
    }

    /// Deletes the record, and with it all elements.
    pub(super) fn delete(&self, tx: &mut dyn WriteTransaction) -> Result<(), WriteError> {
        tx.delete(self.database, self.key).map(|_| ())
    }

    /// The keyspace of the elements.
    pub(super) fn elements(&self) -> DatabaseId {
        self.database.elements()
    }

    /// Visits the elements whose keys begin with `head`, from `from` on, until `visit` breaks off.
    /// It gets keys without the head. `from` may be longer than any key.
    pub(super) fn scan(
        &self,
        tx: &mut (impl ReadTransaction + ?Sized),
        head: &[u8],
        from: Bound<&[u8]>,
        direction: Direction,
        visit: Visit<'_>,
    ) -> Result<(), ReadError> {
        let end;
        let to = match direction {
            Direction::Forward => {
                end = prefix_end(head);
                end.as_deref().map_or(Bound::Unbounded, Bound::Excluded)
            }
            Direction::Backward => Bound::Included(head),
        };
        self.scan_to(tx, head, from, to, direction, visit)
    }

    /// As [`scan`](Self::scan), up to a key. This spares the store a walk over deleted records
    /// after it.
    pub(super) fn scan_to(
        &self,
        tx: &mut (impl ReadTransaction + ?Sized),
        head: &[u8],
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        direction: Direction,
        visit: Visit<'_>,
    ) -> Result<(), ReadError> {
        /// Maximum length of the key of an element, in bytes.
        const KEY_LEN_MAX: usize = limits::KEY_LEN_MAX + limits::ELEMENT_HEAD_LEN_MAX;
        let from = match from {
            // No key is between the truncated bound and the full one, or equal to the full one.
            Bound::Included(key) | Bound::Excluded(key) if key.len() > KEY_LEN_MAX => {
                match direction {
                    Direction::Forward => Bound::Excluded(&key[..KEY_LEN_MAX]),
                    Direction::Backward => Bound::Included(&key[..KEY_LEN_MAX]),
                }
            }
            from => from,
        };
        tx.scan(self.elements(), from, to, direction, &mut |Entry { key, record }| match key
            .strip_prefix(head)
        {
            Some(rest) => visit(rest, record.value),
            None => ControlFlow::Break(()),
        })
    }
}

/// The common prefix of the keys of one range of a collection's elements. The ranges of one kind of
/// collection differ in `tag`.
pub(super) fn head(collection: CollectionId, tag: u8) -> [u8; CollectionId::LEN + 1] {
    let mut head = [tag; CollectionId::LEN + 1];
    head[..CollectionId::LEN].copy_from_slice(&collection.prefix());
    head
}

/// Length in bytes of the number of elements in the record of a large collection.
pub(super) const COUNT_LEN: usize = 8;

/// The number of elements, which is at the start of a large collection's record.
pub(super) fn stored_count(value: &[u8]) -> Result<u64, ReadError> {
    let count = value.first_chunk::<COUNT_LEN>().copied().map(u64::from_le_bytes);
    count.ok_or_else(|| damaged("the record of a large collection is too short"))
}

/// Continues, or breaks off.
pub(super) fn flow_while(goes_on: bool) -> ControlFlow<()> {
    if goes_on { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
}

pub(super) fn damaged(what: &str) -> ReadError {
    ReadError::Damaged { what: what.to_owned() }
}

/// Refuses a name that is too long for an element's key.
pub(super) fn check_name(name: &[u8]) -> Result<(), WriteError> {
    match name.len() {
        0..=limits::FIELD_LEN_MAX => Ok(()),
        len => Err(WriteError::FieldLength { len, max: limits::FIELD_LEN_MAX }),
    }
}
