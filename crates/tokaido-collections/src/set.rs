//! Sets: members, each once.

use std::ops::ControlFlow;

use tokaido_store::{DatabaseId, Kind, ReadError, ReadTransaction, WriteError, WriteTransaction};

use super::{
    packed::Packing,
    place::{Place, Random},
    table::Table,
};

/// The set under one key, whether it is there or not.
#[derive(Clone, Copy, Debug)]
pub struct Set<'k> {
    table: Table<'k>,
}

impl<'k> Set<'k> {
    /// The set under `key` of `database`.
    #[must_use]
    pub fn new(database: DatabaseId, key: &'k [u8]) -> Self {
        Self { table: Table::new(Place { database, key, kind: Kind::Set }) }
    }

    /// The number of members; 0 if there is no set.
    ///
    /// # Errors
    /// [`ReadError::OtherKind`], here and in all that follows, if the record is no set.
    pub fn len(&self, tx: &mut (impl ReadTransaction + ?Sized)) -> Result<u64, ReadError> {
        self.table.len(tx)
    }

    /// Whether there is no set.
    ///
    /// # Errors
    /// As [`len`](Self::len).
    pub fn is_empty(&self, tx: &mut (impl ReadTransaction + ?Sized)) -> Result<bool, ReadError> {
        Ok(self.len(tx)? == 0)
    }

    /// Tells `visit` of each of the `members`, in that order, whether it is there.
    ///
    /// # Errors
    /// As [`len`](Self::len).
    pub fn look_up<'m>(
        &self,
        tx: &mut (impl ReadTransaction + ?Sized),
        members: impl IntoIterator<Item = &'m [u8]>,
        mut visit: impl FnMut(bool),
    ) -> Result<(), ReadError> {
        self.table.look_up(tx, &mut members.into_iter(), &mut |found| visit(found.is_some()))
    }

    /// Shows `visit` every member, until it breaks off, in no order that means anything.
    ///
    /// # Errors
    /// As [`len`](Self::len).
    pub fn visit(
        &self,
        tx: &mut (impl ReadTransaction + ?Sized),
        mut visit: impl FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<(), ReadError> {
        self.table.visit(tx, &mut |member, _| visit(member))
    }

    /// Shows `visit` about `count` members from `cursor` on, which is 0 at first, until it breaks off, and
    /// gives the cursor to go on with; 0 at the end. A packed set is shown as a whole. What is there from
    /// the first page to the last is shown at least once.
    ///
    /// # Errors
    /// As [`len`](Self::len).
    pub fn page(
        &self,
        tx: &mut (impl ReadTransaction + ?Sized),
        cursor: u64,
        count: usize,
        mut visit: impl FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<u64, ReadError> {
        self.table.page(tx, cursor, count, &mut |member, _| visit(member))
    }

    /// Shows `visit` the members behind `after`, or from the first one on, until it breaks off, and tells whether it
    /// did; then the last member that it was shown leads on. A packed set is shown as a whole, and has nothing
    /// behind any member. What is there all the while is shown once.
    ///
    /// # Errors
    /// As [`len`](Self::len).
    pub fn visit_after(
        &self,
        tx: &mut (impl ReadTransaction + ?Sized),
        after: Option<&[u8]>,
        mut visit: impl FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, ReadError> {
        self.table.visit_after(tx, after, &mut |member, _| visit(member))
    }

    /// Adds members; gives how many of them are new.
    ///
    /// # Errors
    /// As [`len`](Self::len) and [`WriteTransaction::put`]; [`WriteError::FieldLength`].
    pub fn add<'m>(
        &self,
        tx: &mut dyn WriteTransaction,
        packing: Packing,
        members: impl IntoIterator<Item = &'m [u8]>,
    ) -> Result<u64, WriteError> {
        self.table.insert(tx, packing, &mut members.into_iter().map(|member| (member, &[][..])))
    }

    /// Removes members; gives how many of them there were. The set goes with its last member.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn remove<'m>(
        &self,
        tx: &mut dyn WriteTransaction,
        members: impl IntoIterator<Item = &'m [u8]>,
    ) -> Result<u64, WriteError> {
        self.table.remove(tx, &mut members.into_iter())
    }

    /// Removes as many members as `count` says, drawn by lot, or all if there are not more, and shows them to
    /// `visit`; gives how many they are. It may break off if the transaction is rolled back then.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn pop(
        &self,
        tx: &mut dyn WriteTransaction,
        count: u64,
        random: Random<'_>,
        mut visit: impl FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<u64, WriteError> {
        self.table.pop(tx, count, random, &mut |member, _| visit(member))
    }

    /// Shows `visit` as many members as `times` says, each drawn by lot from all of them, until it breaks off;
    /// none if there is no set. In a large set, some are drawn a little more often.
    ///
    /// # Errors
    /// As [`len`](Self::len).
    pub fn draw(
        &self,
        tx: &mut (impl ReadTransaction + ?Sized),
        times: u64,
        random: Random<'_>,
        mut visit: impl FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<(), ReadError> {
        self.table.draw(tx, times, random, &mut |member, _| visit(member))
    }

    /// Shows `visit` as many different members as `count` says, drawn by lot, or all if there are not more,
    /// until it breaks off.
    ///
    /// # Errors
    /// As [`len`](Self::len).
    pub fn sample(
        &self,
        tx: &mut (impl ReadTransaction + ?Sized),
        count: u64,
        random: Random<'_>,
        mut visit: impl FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<(), ReadError> {
        self.table.sample(tx, count, random, &mut |member, _| visit(member))
    }

    /// Makes this the set of just these members, in place of whatever is under the key; gives how
    /// many they are. Without members there is no record.
    ///
    /// # Errors
    /// As [`add`](Self::add), whatever is under the key.
    pub fn replace<'m>(
        &self,
        tx: &mut dyn WriteTransaction,
        packing: Packing,
        members: impl IntoIterator<Item = &'m [u8]>,
    ) -> Result<u64, WriteError> {
        self.table.delete(tx)?;
        self.add(tx, packing, members)
    }
}
