//! Transactions: reads of both kinds, writes of one.

use std::{
    cell::UnsafeCell,
    marker::PhantomData,
    ops::{Deref, DerefMut},
    ptr, slice,
};

use lmdb_master_sys as ffi;

use crate::{Direction, tree::prefetch::prefetch_block};

use super::{
    Dbi, LmdbError,
    cursors::{Cursors, Role},
    error::{check, found},
};

/// What both kinds of transaction can do.
pub(in crate::tree::base) struct Txn {
    raw: *mut ffi::MDB_txn,
    cursors: Cursors,
}

/// The key and the value of an entry.
type Found<'t> = (&'t [u8], &'t [u8]);

/// How the scan cursor moves.
#[derive(Clone, Copy, Debug)]
pub(in crate::tree::base) enum Step<'k> {
    /// To the first entry.
    First,
    /// To the last entry.
    Last,
    /// To the first entry whose key is not below this one.
    AtOrAfter(&'k [u8]),
    /// Forward by one.
    Next,
    /// Back by one.
    Previous,
    /// Not at all.
    Stay,
}

fn val(bytes: &[u8]) -> ffi::MDB_val {
    ffi::MDB_val { mv_size: bytes.len(), mv_data: bytes.as_ptr().cast_mut().cast() }
}

const EMPTY: ffi::MDB_val = ffi::MDB_val { mv_size: 0, mv_data: ptr::null_mut() };

/// The bytes that LMDB describes.
///
/// # Safety
/// `val` was filled by LMDB in a transaction that stays unchanged as long as `'t`.
unsafe fn bytes<'t>(val: &ffi::MDB_val) -> &'t [u8] {
    if val.mv_size == 0 {
        return &[];
    }
    // SAFETY: LMDB gives a pointer into a page of that many bytes.
    unsafe { slice::from_raw_parts(val.mv_data.cast::<u8>(), val.mv_size) }
}

impl Txn {
    /// The value under `key`.
    pub(in crate::tree::base) fn find(
        &mut self,
        dbi: Dbi,
        key: &[u8],
    ) -> Result<Option<&[u8]>, LmdbError> {
        let (mut key, mut data) = (val(key), EMPTY);
        // SAFETY: the transaction is live; the key outlives the call; what is found borrows `self`.
        unsafe {
            let cursor = self.cursors.get(self.raw, dbi, Role::Point)?;
            let code = ffi::mdb_cursor_get(cursor, &raw mut key, &raw mut data, ffi::MDB_SET);
            Ok(if found(code)? { Some(bytes(&data)) } else { None })
        }
    }

    /// Moves the scan cursor of `dbi` and gives the entry it comes to.
    pub(in crate::tree::base) fn step(
        &mut self,
        dbi: Dbi,
        step: Step<'_>,
    ) -> Result<Option<Found<'_>>, LmdbError> {
        let (mut key, op) = match step {
            Step::First => (EMPTY, ffi::MDB_FIRST),
            Step::Last => (EMPTY, ffi::MDB_LAST),
            Step::AtOrAfter([]) => (EMPTY, ffi::MDB_FIRST),
            Step::AtOrAfter(from) => (val(from), ffi::MDB_SET_RANGE),
            Step::Next => (EMPTY, ffi::MDB_NEXT),
            Step::Previous => (EMPTY, ffi::MDB_PREV),
            Step::Stay => (EMPTY, ffi::MDB_GET_CURRENT),
        };
        let mut data = EMPTY;
        // SAFETY: as in `find`.
        unsafe {
            let cursor = self.cursors.get(self.raw, dbi, Role::Scan)?;
            let is_found = found(ffi::mdb_cursor_get(cursor, &raw mut key, &raw mut data, op))?;
            self.cursors.settle(dbi, is_found);
            Ok(if is_found { Some((bytes(&key), bytes(&data))) } else { None })
        }
    }

    /// Opens a named database; without `create` it may be missing.
    fn open_database(&mut self, name: &str, create: bool) -> Result<Option<Dbi>, LmdbError> {
        let name = std::ffi::CString::new(name).map_err(|_| LmdbError(libc::EINVAL))?;
        let mut dbi = 0;
        let flags = if create { ffi::MDB_CREATE } else { 0 };
        // SAFETY: the transaction is live, and `name` outlives the call, which copies it.
        let code = unsafe { ffi::mdb_dbi_open(self.raw, name.as_ptr(), flags, &raw mut dbi) };
        Ok(found(code)?.then_some(dbi))
    }
}

/// A read transaction, which can be moved to a newer snapshot.
///
/// Its pages do not change, so what a call gives stays valid when the next one moves a cursor:
/// reading takes `&self`, and only letting go of the snapshot takes `&mut self`.
pub(in crate::tree::base) struct ReadTxn {
    txn: UnsafeCell<Txn>,
}

// SAFETY: the environment is opened with NOTLS, so a read transaction and its cursors belong to
// the handle and not to a thread. It is not `Sync`, so one thread at a time uses it.
unsafe impl Send for ReadTxn {}

impl ReadTxn {
    /// # Safety
    /// The environment is open, and stays open as long as the transaction lives.
    pub(super) unsafe fn begin(environment: *mut ffi::MDB_env) -> Result<Self, LmdbError> {
        let mut raw = ptr::null_mut();
        // SAFETY: the environment is open; `raw` is a valid place for the handle.
        check(unsafe {
            ffi::mdb_txn_begin(environment, ptr::null_mut(), ffi::MDB_RDONLY, &raw mut raw)
        })?;
        Ok(Self { txn: UnsafeCell::new(Txn { raw, cursors: Cursors::default() }) })
    }

    /// Lets go of the snapshot, but keeps the handle. Only [`renew`](Self::renew) may follow.
    pub(in crate::tree::base) fn reset(&mut self) {
        let txn = self.txn.get_mut();
        txn.cursors.outdate();
        // SAFETY: the handle is live, and no slice of the snapshot is borrowed any more.
        unsafe { ffi::mdb_txn_reset(txn.raw) }
    }

    /// Takes the newest snapshot, after [`reset`](Self::reset).
    pub(in crate::tree::base) fn renew(&mut self) -> Result<(), LmdbError> {
        // SAFETY: the handle is live and reset.
        check(unsafe { ffi::mdb_txn_renew(self.txn.get_mut().raw) })
    }

    /// Which commit the snapshot is of.
    pub(in crate::tree::base) fn id(&self) -> usize {
        // SAFETY: the handle is live.
        unsafe { ffi::mdb_txn_id((*self.txn.get()).raw) as usize }
    }

    /// As [`Txn::find`].
    pub(in crate::tree::base) fn find(
        &self,
        dbi: Dbi,
        key: &[u8],
    ) -> Result<Option<&[u8]>, LmdbError> {
        // SAFETY: the mutable borrow ends with the call, since what it gives is part of the map
        // and not of the `Txn`.
        unsafe { (*self.txn.get()).find(dbi, key) }
    }

    /// As [`Txn::step`].
    pub(in crate::tree::base) fn step(
        &self,
        dbi: Dbi,
        step: Step<'_>,
    ) -> Result<Option<Found<'_>>, LmdbError> {
        // SAFETY: as in `find`.
        unsafe { (*self.txn.get()).step(dbi, step) }
    }

    /// A walk from the entry that the scan cursor of `dbi` stands on.
    pub(in crate::tree::base) fn walk(
        &self,
        dbi: Dbi,
        direction: Direction,
    ) -> Result<Walk<'_>, LmdbError> {
        // SAFETY: as in `find`; the cursor lives as long as the transaction.
        let cursor = unsafe {
            let txn = &mut *self.txn.get();
            txn.cursors.settle(dbi, false);
            txn.cursors.get(txn.raw, dbi, Role::Scan)?
        };
        let op = match direction {
            Direction::Forward => ffi::MDB_NEXT,
            Direction::Backward => ffi::MDB_PREV,
        };
        Ok(Walk { cursor, op, page: 0, _txn: PhantomData })
    }

    /// Whether the scan cursor of `dbi` stands on an entry, so that it can step on from it.
    pub(in crate::tree::base) fn is_settled(&self, dbi: Dbi) -> bool {
        // SAFETY: as in `find`.
        unsafe { (*self.txn.get()).cursors.is_settled(dbi) }
    }

    /// Whether this transaction can use `dbi`: one opened after it began it cannot.
    pub(in crate::tree::base) fn knows(&self, dbi: Dbi) -> bool {
        let mut flags = 0;
        // SAFETY: the transaction is live; LMDB checks the number.
        unsafe {
            ffi::mdb_dbi_flags((*self.txn.get()).raw, dbi, &raw mut flags) == ffi::MDB_SUCCESS
        }
    }
}

/// Goes from entry to entry.
pub(in crate::tree::base) struct Walk<'t> {
    cursor: *mut ffi::MDB_cursor,
    op: ffi::MDB_cursor_op,
    /// The page that the last step came to.
    page: usize,
    _txn: PhantomData<&'t ReadTxn>,
}

/// Bytes of a page on most machines. Pages of another size are only fetched less well.
const PAGE_LEN: usize = 4096;

impl<'t> Walk<'t> {
    /// The next entry. Nothing else may have moved the scan cursor since the last one.
    #[inline]
    pub(in crate::tree::base) fn next(&mut self) -> Result<Option<Found<'t>>, LmdbError> {
        let (mut key, mut data) = (EMPTY, EMPTY);
        // SAFETY: the cursor lives as long as the transaction, which does not change under `'t`.
        unsafe {
            let code = ffi::mdb_cursor_get(self.cursor, &raw mut key, &raw mut data, self.op);
            if !found(code)? {
                return Ok(None);
            }
            self.prefetch_page(key.mv_data.cast());
            Ok(Some((bytes(&key), bytes(&data))))
        }
    }

    /// Fetches a page from memory when the walk comes to it: its entries lie in it in no order, so
    /// that the processor cannot guess which line is next.
    #[inline]
    fn prefetch_page(&mut self, key: *const u8) {
        let page = key.addr() / PAGE_LEN;
        if page != self.page {
            self.page = page;
            prefetch_block(key, PAGE_LEN);
        }
    }
}

impl ReadTxn {
    /// Opens named databases, all of which are there, for all transactions that begin after it.
    pub(super) fn open_databases(mut self, names: &[String]) -> Result<Vec<Dbi>, LmdbError> {
        let txn = self.txn.get_mut();
        let opened: Result<Vec<Dbi>, LmdbError> = names
            .iter()
            .map(|name| txn.open_database(name, false)?.ok_or(LmdbError(ffi::MDB_NOTFOUND)))
            .collect();
        let opened = opened?;
        let raw = txn.raw;
        std::mem::forget(self);
        // SAFETY: the handle is live, has no cursors, and is not used after this: `commit` frees
        // it, and forgetting `self` keeps `drop` from aborting it as well.
        check(unsafe { ffi::mdb_txn_commit(raw) })?;
        Ok(opened)
    }
}

impl Drop for ReadTxn {
    fn drop(&mut self) {
        let txn = self.txn.get_mut();
        // SAFETY: the handle is live, reset or not; its cursors go before it.
        unsafe {
            txn.cursors.close();
            ffi::mdb_txn_abort(txn.raw);
        }
    }
}

/// The write transaction. It belongs to the thread that began it, as the raw pointer sees to.
pub(in crate::tree::base) struct WriteTxn {
    txn: Txn,
}

/// What [`WriteTxn::insert`] found.
pub(in crate::tree::base) enum Insert<'t> {
    /// Nothing; here is room for the value, all of which must be filled.
    Vacant(&'t mut [u8]),
    /// This value.
    Occupied(&'t [u8]),
}

impl WriteTxn {
    /// # Safety
    /// The environment is open, and stays open as long as the transaction lives.
    pub(super) unsafe fn begin(environment: *mut ffi::MDB_env) -> Result<Self, LmdbError> {
        let mut raw = ptr::null_mut();
        // SAFETY: the environment is open; `raw` is a valid place for the handle.
        check(unsafe { ffi::mdb_txn_begin(environment, ptr::null_mut(), 0, &raw mut raw) })?;
        Ok(Self { txn: Txn { raw, cursors: Cursors::default() } })
    }

    /// Makes room for a value of `len` bytes under `key`, if nothing is there. One search serves
    /// both answers, and leaves the point cursor at the entry for
    /// [`overwrite`](Self::overwrite) and [`remove`](Self::remove).
    pub(in crate::tree::base) fn insert(
        &mut self,
        dbi: Dbi,
        key: &[u8],
        len: usize,
    ) -> Result<Insert<'_>, LmdbError> {
        let mut key = val(key);
        let mut data = ffi::MDB_val { mv_size: len, mv_data: ptr::null_mut() };
        // SAFETY: the transaction is live; with RESERVE, LMDB gives `len` writable bytes of a page
        // of its own, which stay in place until the next write, and that needs `&mut self`.
        unsafe {
            let cursor = self.txn.cursors.get(self.txn.raw, dbi, Role::Point)?;
            let flags = ffi::MDB_NOOVERWRITE | ffi::MDB_RESERVE;
            let code = ffi::mdb_cursor_put(cursor, &raw mut key, &raw mut data, flags);
            if code == ffi::MDB_KEYEXIST {
                return Ok(Insert::Occupied(bytes(&data)));
            }
            check(code)?;
            self.txn.cursors.settle(dbi, false);
            Ok(Insert::Vacant(writable(&data)))
        }
    }

    /// Makes room for another value at the entry that `insert` or `find` has just found.
    pub(in crate::tree::base) fn overwrite(
        &mut self,
        dbi: Dbi,
        key: &[u8],
        len: usize,
    ) -> Result<&mut [u8], LmdbError> {
        let mut key = val(key);
        let mut data = ffi::MDB_val { mv_size: len, mv_data: ptr::null_mut() };
        // SAFETY: as in `insert`; the point cursor stands on the entry of this key.
        unsafe {
            let cursor = self.txn.cursors.get(self.txn.raw, dbi, Role::Point)?;
            let flags = ffi::MDB_CURRENT | ffi::MDB_RESERVE;
            check(ffi::mdb_cursor_put(cursor, &raw mut key, &raw mut data, flags))?;
            self.txn.cursors.settle(dbi, false);
            Ok(writable(&data))
        }
    }

    /// Removes the entry that `insert` or `find` has just found.
    pub(in crate::tree::base) fn remove(&mut self, dbi: Dbi) -> Result<(), LmdbError> {
        // SAFETY: the transaction is live; the point cursor stands on the entry.
        unsafe {
            let cursor = self.txn.cursors.get(self.txn.raw, dbi, Role::Point)?;
            check(ffi::mdb_cursor_del(cursor, 0))?;
        }
        self.txn.cursors.settle(dbi, false);
        Ok(())
    }

    /// Removes every entry of a database.
    pub(in crate::tree::base) fn clear(&mut self, dbi: Dbi) -> Result<(), LmdbError> {
        // SAFETY: the transaction is live; LMDB unsets the cursors that stand in the database.
        check(unsafe { ffi::mdb_drop(self.txn.raw, dbi, 0) })?;
        self.txn.cursors.settle(dbi, false);
        Ok(())
    }

    /// Opens a named database, if it is there.
    pub(in crate::tree::base) fn find_database(
        &mut self,
        name: &str,
    ) -> Result<Option<Dbi>, LmdbError> {
        self.txn.open_database(name, false)
    }

    /// Opens a named database, and creates it if it is not there.
    pub(in crate::tree::base) fn create_database(&mut self, name: &str) -> Result<Dbi, LmdbError> {
        self.txn.open_database(name, true)?.ok_or(LmdbError(ffi::MDB_NOTFOUND))
    }

    /// Commits, and syncs.
    pub(in crate::tree::base) fn commit(mut self) -> Result<(), LmdbError> {
        let raw = self.txn.raw;
        let mut cursors = std::mem::take(&mut self.txn.cursors);
        std::mem::forget(self);
        // SAFETY: the handle is live, and is not used after this: `commit` frees it, whatever it
        // returns, and forgetting `self` keeps `drop` from aborting it as well.
        unsafe {
            cursors.close();
            check(ffi::mdb_txn_commit(raw))
        }
    }
}

/// The bytes that LMDB has reserved.
///
/// # Safety
/// `val` was filled by a put with RESERVE in a transaction that is borrowed as long as `'t`.
unsafe fn writable<'t>(val: &ffi::MDB_val) -> &'t mut [u8] {
    if val.mv_size == 0 {
        return &mut [];
    }
    // SAFETY: LMDB gives a pointer to that many bytes, and to nobody else.
    unsafe { slice::from_raw_parts_mut(val.mv_data.cast::<u8>(), val.mv_size) }
}

impl Deref for WriteTxn {
    type Target = Txn;
    fn deref(&self) -> &Txn {
        &self.txn
    }
}

impl DerefMut for WriteTxn {
    fn deref_mut(&mut self) -> &mut Txn {
        &mut self.txn
    }
}

impl Drop for WriteTxn {
    fn drop(&mut self) {
        // SAFETY: the handle is live; its cursors go before it.
        unsafe {
            self.txn.cursors.close();
            ffi::mdb_txn_abort(self.txn.raw);
        }
    }
}
