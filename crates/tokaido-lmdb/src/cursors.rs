//! The cursors of one transaction, opened when first needed.
//!
//! LMDB begins a search at the page where the cursor is, so keeping cursors makes accesses to
//! neighbouring keys cheap. Each database has two: one for points and one for scans, so that
//! neither loses the other's place.

use std::ptr;

use lmdb_master_sys as ffi;

use super::{Dbi, LmdbError, error::check};

#[derive(Clone, Copy, Debug)]
pub(super) enum Role {
    Point,
    Scan,
}

struct Slot {
    raw: *mut ffi::MDB_cursor,
    /// The `life` of the transaction when the cursor was last renewed.
    life: u64,
    /// Whether the cursor is on an entry, and nothing has been written since.
    positioned: bool,
}

#[derive(Default)]
pub(super) struct Cursors {
    slots: Vec<Option<Slot>>,
    /// Counts the renewals of the transaction.
    life: u64,
}

impl Cursors {
    fn place(dbi: Dbi, role: Role) -> usize {
        dbi as usize * 2 + role as usize
    }

    /// The cursor of `dbi` in that role, ready for use in `txn`.
    ///
    /// # Safety
    /// `txn` is the live transaction that this object belongs to, always the same one.
    pub(super) unsafe fn get(
        &mut self,
        txn: *mut ffi::MDB_txn,
        dbi: Dbi,
        role: Role,
    ) -> Result<*mut ffi::MDB_cursor, LmdbError> {
        let place = Self::place(dbi, role);
        if let Some(Some(slot)) = self.slots.get_mut(place) {
            if slot.life != self.life {
                // SAFETY: the cursor was opened in this transaction, which has been renewed since.
                check(unsafe { ffi::mdb_cursor_renew(txn, slot.raw) })?;
                slot.life = self.life;
                slot.positioned = false;
            }
            return Ok(slot.raw);
        }
        let mut raw = ptr::null_mut();
        // SAFETY: the transaction is live; `raw` is a valid place for the new handle. LMDB refuses a
        // `dbi` that it does not know.
        check(unsafe { ffi::mdb_cursor_open(txn, dbi, &raw mut raw) })?;
        if self.slots.len() <= place {
            self.slots.resize_with(place + 1, || None);
        }
        self.slots[place] = Some(Slot { raw, life: self.life, positioned: false });
        Ok(raw)
    }

    /// Records whether the scan cursor of `dbi` is on an entry.
    pub(super) fn set_positioned(&mut self, dbi: Dbi, positioned: bool) {
        if let Some(Some(slot)) = self.slots.get_mut(Self::place(dbi, Role::Scan)) {
            slot.positioned = positioned;
        }
    }

    pub(super) fn is_positioned(&self, dbi: Dbi) -> bool {
        match self.slots.get(Self::place(dbi, Role::Scan)) {
            Some(Some(slot)) => slot.positioned && slot.life == self.life,
            _ => false,
        }
    }

    /// Unsets all cursors: the transaction is about to see another snapshot.
    pub(super) fn outdate(&mut self) {
        self.life += 1;
    }

    /// Closes all cursors.
    ///
    /// # Safety
    /// The transaction that they were opened in has not ended.
    pub(super) unsafe fn close(&mut self) {
        for slot in self.slots.drain(..).flatten() {
            // SAFETY: opened by `get` and closed once, since it is taken out here.
            unsafe { ffi::mdb_cursor_close(slot.raw) }
        }
    }
}
