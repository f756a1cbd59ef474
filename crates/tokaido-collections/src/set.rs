//! Sets: members, each once.

use std::ops::ControlFlow;

use tokaido_store::{DatabaseId, Kind, ReadError, ReadTransaction, WriteError, WriteTransaction};

use super::{
    packed::Packing,
    place::{Place, Random},
    table::Table,
};

/// The set under one key, whether it exists or not.
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
    /// [`ReadError::OtherKind`], here and in all methods below, if the record is not a set.
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

    /// Calls `visit` for each of the `members`, in that order, with whether it is in the set.
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

    /// Calls `visit` with every member, in no particular order, until it breaks off.
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

    /// Calls `visit` with about `count` members from `cursor` on, which is 0 at first, until it
    /// breaks off. Returns the cursor to continue with; 0 at the end. A packed set is visited as a
    /// whole. Members present from the first page to the last are visited at least once.
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

    /// Calls `visit` with the members after `after`, or all, until it breaks off; returns whether
    /// it did. To continue, pass the last member visited. A packed set is visited as a whole, and
    /// has nothing after any member. Members present throughout are visited once.
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

    /// Adds members; returns how many of them are new.
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

    /// Removes members; returns how many there were. The set is deleted with its last member.
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

    /// Removes `count` random members, or all if there are no more, and calls `visit` with them;
    /// returns how many. `visit` may break off only if the transaction is then rolled back.
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

    /// Calls `visit` with `times` members, each drawn at random from all of them, until it breaks
    /// off; none if there is no set. In a large set, some are drawn a little more often.
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

    /// Calls `visit` with `count` different members, drawn at random, or all if there are no more,
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

    /// Makes this the set of exactly these members, replacing whatever is under the key; returns
    /// how many there are. Without members, there is no record.
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
