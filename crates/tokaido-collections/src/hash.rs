//! Hashes: fields, each with a value.

use std::ops::ControlFlow;

use tokaido_store::{DatabaseId, Kind, ReadError, ReadTransaction, WriteError, WriteTransaction};

use super::{
    packed::Packing,
    place::{Place, Random},
    table::Table,
};

/// The hash under one key, whether it exists or not.
#[derive(Clone, Copy, Debug)]
pub struct Hash<'k> {
    table: Table<'k>,
}

impl<'k> Hash<'k> {
    /// The hash under `key` of `database`.
    #[must_use]
    pub fn new(database: DatabaseId, key: &'k [u8]) -> Self {
        Self { table: Table::new(Place { database, key, kind: Kind::Hash }) }
    }

    /// The number of fields; 0 if there is no hash.
    ///
    /// # Errors
    /// [`ReadError::OtherKind`], here and in all methods below, if the record is not a hash.
    pub fn len(&self, tx: &mut (impl ReadTransaction + ?Sized)) -> Result<u64, ReadError> {
        self.table.len(tx)
    }

    /// Whether there is no hash.
    ///
    /// # Errors
    /// As [`len`](Self::len).
    pub fn is_empty(&self, tx: &mut (impl ReadTransaction + ?Sized)) -> Result<bool, ReadError> {
        Ok(self.len(tx)? == 0)
    }

    /// Calls `visit` with the values of `fields`, in that order; `None` for missing ones.
    ///
    /// # Errors
    /// As [`len`](Self::len).
    pub fn look_up<'f>(
        &self,
        tx: &mut (impl ReadTransaction + ?Sized),
        fields: impl IntoIterator<Item = &'f [u8]>,
        mut visit: impl FnMut(Option<&[u8]>),
    ) -> Result<(), ReadError> {
        self.table.look_up(tx, &mut fields.into_iter(), &mut visit)
    }

    /// Calls `visit` with every field and its value, in no particular order, until it breaks off.
    ///
    /// # Errors
    /// As [`len`](Self::len).
    pub fn visit(
        &self,
        tx: &mut (impl ReadTransaction + ?Sized),
        mut visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<(), ReadError> {
        self.table.visit(tx, &mut visit)
    }

    /// Calls `visit` with about `count` fields and their values from `cursor` on, which is 0 at
    /// first, until it breaks off. Returns the cursor to continue with; 0 at the end. A packed hash
    /// is visited as a whole. Fields present from the first page to the last are visited at least
    /// once.
    ///
    /// # Errors
    /// As [`len`](Self::len).
    pub fn page(
        &self,
        tx: &mut (impl ReadTransaction + ?Sized),
        cursor: u64,
        count: usize,
        mut visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<u64, ReadError> {
        self.table.page(tx, cursor, count, &mut visit)
    }

    /// Calls `visit` with the fields after `after`, or all, with their values, until it breaks off;
    /// returns whether it did. To continue, pass the last field visited. A packed hash is visited
    /// as a whole, and has nothing after any field. Fields present throughout are visited once.
    ///
    /// # Errors
    /// As [`len`](Self::len).
    pub fn visit_after(
        &self,
        tx: &mut (impl ReadTransaction + ?Sized),
        after: Option<&[u8]>,
        mut visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, ReadError> {
        self.table.visit_after(tx, after, &mut visit)
    }

    /// Sets fields to values, in order; returns how many of the fields are new.
    ///
    /// # Errors
    /// As [`len`](Self::len) and [`WriteTransaction::put`]; [`WriteError::FieldLength`].
    pub fn set<'f>(
        &self,
        tx: &mut dyn WriteTransaction,
        packing: Packing,
        fields: impl IntoIterator<Item = (&'f [u8], &'f [u8])>,
    ) -> Result<u64, WriteError> {
        self.table.insert(tx, packing, &mut fields.into_iter())
    }

    /// Removes fields; returns how many there were. The hash is deleted with its last field.
    ///
    /// # Errors
    /// As [`set`](Self::set).
    pub fn remove<'f>(
        &self,
        tx: &mut dyn WriteTransaction,
        fields: impl IntoIterator<Item = &'f [u8]>,
    ) -> Result<u64, WriteError> {
        self.table.remove(tx, &mut fields.into_iter())
    }

    /// Calls `visit` with `times` fields and their values, each drawn at random from all, until it
    /// breaks off; none if there is no hash. In a large hash, some are drawn a little more often.
    ///
    /// # Errors
    /// As [`len`](Self::len).
    pub fn draw(
        &self,
        tx: &mut (impl ReadTransaction + ?Sized),
        times: u64,
        random: Random<'_>,
        mut visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<(), ReadError> {
        self.table.draw(tx, times, random, &mut visit)
    }

    /// Calls `visit` with `count` different fields and their values, drawn at random, or all if
    /// there are no more, until it breaks off.
    ///
    /// # Errors
    /// As [`len`](Self::len).
    pub fn sample(
        &self,
        tx: &mut (impl ReadTransaction + ?Sized),
        count: u64,
        random: Random<'_>,
        mut visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<(), ReadError> {
        self.table.sample(tx, count, random, &mut visit)
    }
}
