//! Hashes: fields, each with a value.

use std::ops::ControlFlow;

use tokaido_store::{DatabaseId, Kind, ReadError, ReadTransaction, WriteError, WriteTransaction};

use super::{
    packed::Packing,
    place::{Place, Random},
    table::Table,
};

/// The hash under one key, whether it is there or not.
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
    /// [`ReadError::OtherKind`], here and in all that follows, if the record is no hash.
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

    /// Shows `visit` the values of `fields`, in that order; `None` where there is no such field.
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

    /// Shows `visit` every field with its value, until it breaks off, in no order that means
    /// anything.
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

    /// Shows `visit` about `count` fields with their values from `cursor` on, which is 0 at first, until it
    /// breaks off, and gives the cursor to go on with; 0 at the end. A packed hash is shown as a whole. What
    /// is there from the first page to the last is shown at least once.
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

    /// Shows `visit` the fields behind `after` with their values, or from the first one on, until it breaks off, and
    /// tells whether it did; then the last field that it was shown leads on. A packed hash is shown as a whole, and
    /// has nothing behind any field. What is there all the while is shown once.
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

    /// Sets fields to values, in order; gives how many of the fields are new.
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

    /// Removes fields; gives how many of them there were. The hash goes with its last field.
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

    /// Shows `visit` as many fields with their values as `times` says, each drawn by lot from all of them,
    /// until it breaks off; none if there is no hash. In a large hash, some are drawn a little more often.
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

    /// Shows `visit` as many different fields with their values as `count` says, drawn by lot, or all if there
    /// are not more, until it breaks off.
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
