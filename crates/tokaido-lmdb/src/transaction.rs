//! Read transactions and the write transaction.

use std::{
    cell::UnsafeCell, ffi::CString, marker::PhantomData, mem, ops::Deref, ptr, slice, sync::Arc,
};

use lmdb_master_sys as ffi;

use super::{
    Dbi, LmdbError,
    cursors::{Cursors, Role},
    environment::Handle,
    error::{check, found},
};

/// What both kinds of transaction can do.
///
/// Moving a cursor changes no page, so the result of a call stays valid when the next one moves a
/// cursor: reading takes `&self`, and only writing, or releasing the snapshot, takes `&mut self`.
pub struct Txn {
    /// Null once the transaction has ended.
    raw: *mut ffi::MDB_txn,
    /// Borrowed only within a call, and never for longer than a call to LMDB takes.
    cursors: UnsafeCell<Cursors>,
    _environment: Arc<Handle>,
}

/// The key and the value of an entry.
type Found<'t> = (&'t [u8], &'t [u8]);

/// How the scan cursor moves.
#[derive(Clone, Copy, Debug)]
pub enum Step<'k> {
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

/// The bytes that an `MDB_val` points to.
///
/// # Safety
/// `val` was filled by LMDB in a transaction that stays unchanged for `'t`.
unsafe fn bytes<'t>(val: &ffi::MDB_val) -> &'t [u8] {
    if val.mv_size == 0 {
        return &[];
    }
    // SAFETY: LMDB gives a pointer to that many bytes in a page.
    unsafe { slice::from_raw_parts(val.mv_data.cast::<u8>(), val.mv_size) }
}

impl Txn {
    pub(super) fn begin(environment: &Arc<Handle>, flags: libc::c_uint) -> Result<Self, LmdbError> {
        let mut raw = ptr::null_mut();
        // SAFETY: the environment is open, and stays so as long as the transaction holds it; `raw` is a
        // valid place for the handle.
        check(unsafe { ffi::mdb_txn_begin(environment.0, ptr::null_mut(), flags, &raw mut raw) })?;
        Ok(Self { raw, cursors: UnsafeCell::default(), _environment: Arc::clone(environment) })
    }

    /// The cursor of `dbi` in that role.
    #[inline]
    fn cursor(&self, dbi: Dbi, role: Role) -> Result<*mut ffi::MDB_cursor, LmdbError> {
        // SAFETY: the transaction is live, and nothing else borrows the cursors.
        unsafe { (*self.cursors.get()).get(self.raw, dbi, role) }
    }

    /// Records whether the scan cursor of `dbi` is on an entry.
    #[inline]
    fn set_positioned(&self, dbi: Dbi, positioned: bool) {
        // SAFETY: nothing else borrows the cursors.
        unsafe { (*self.cursors.get()).set_positioned(dbi, positioned) }
    }

    /// Whether the scan cursor of `dbi` is on an entry, so that it can step on from it.
    pub fn is_positioned(&self, dbi: Dbi) -> bool {
        // SAFETY: nothing else borrows the cursors.
        unsafe { (*self.cursors.get()).is_positioned(dbi) }
    }

    /// The value under `key`.
    pub fn find(&self, dbi: Dbi, key: &[u8]) -> Result<Option<&[u8]>, LmdbError> {
        let cursor = self.cursor(dbi, Role::Point)?;
        let (mut key, mut data) = (val(key), EMPTY);
        // SAFETY: the transaction is live; the key outlives the call; what is found borrows `self`.
        unsafe {
            let code = ffi::mdb_cursor_get(cursor, &raw mut key, &raw mut data, ffi::MDB_SET);
            Ok(if found(code)? { Some(bytes(&data)) } else { None })
        }
    }

    /// Moves the scan cursor of `dbi` and returns the entry there.
    pub fn step(&self, dbi: Dbi, step: Step<'_>) -> Result<Option<Found<'_>>, LmdbError> {
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
        let cursor = self.cursor(dbi, Role::Scan)?;
        // SAFETY: as in `find`.
        unsafe {
            let is_found = found(ffi::mdb_cursor_get(cursor, &raw mut key, &raw mut data, op))?;
            self.set_positioned(dbi, is_found);
            Ok(if is_found { Some((bytes(&key), bytes(&data))) } else { None })
        }
    }

    /// Opens a named database; without `create` it may be missing. The caller makes sure that no
    /// other transaction opens one at the same time.
    pub(super) fn open_database(&self, name: &str, create: bool) -> Result<Option<Dbi>, LmdbError> {
        let name = CString::new(name).map_err(|_| LmdbError(libc::EINVAL))?;
        let mut dbi = 0;
        let flags = if create { ffi::MDB_CREATE } else { 0 };
        // SAFETY: the transaction is live, and `name` outlives the call, which copies it.
        let code = unsafe { ffi::mdb_dbi_open(self.raw, name.as_ptr(), flags, &raw mut dbi) };
        Ok(found(code)?.then_some(dbi))
    }

    pub(super) fn commit(mut self) -> Result<(), LmdbError> {
        // SAFETY: the handle is live, and is not used after this: `commit` frees it, whatever it
        // returns, and `drop` finds it null.
        unsafe {
            self.cursors.get_mut().close();
            check(ffi::mdb_txn_commit(mem::replace(&mut self.raw, ptr::null_mut())))
        }
    }
}

impl Drop for Txn {
    fn drop(&mut self) {
        if self.raw.is_null() {
            return;
        }
        // SAFETY: the handle is live, reset or not; its cursors are closed before it.
        unsafe {
            self.cursors.get_mut().close();
            ffi::mdb_txn_abort(self.raw);
        }
    }
}

/// A read transaction, which can be moved to a newer snapshot.
pub struct ReadTxn(Txn);

// SAFETY: the environment is opened with NOTLS, so a read transaction and its cursors belong to
// the handle and not to a thread. It is not `Sync`, so one thread at a time uses it.
unsafe impl Send for ReadTxn {}

impl Deref for ReadTxn {
    type Target = Txn;
    fn deref(&self) -> &Txn {
        &self.0
    }
}

impl ReadTxn {
    pub(super) fn begin(environment: &Arc<Handle>) -> Result<Self, LmdbError> {
        Txn::begin(environment, ffi::MDB_RDONLY).map(Self)
    }

    /// Releases the snapshot, but keeps the handle. Only [`renew`](Self::renew) may follow.
    pub fn reset(&mut self) {
        self.0.cursors.get_mut().outdate();
        // SAFETY: the handle is live, and no slice of the snapshot is borrowed any more.
        unsafe { ffi::mdb_txn_reset(self.raw) }
    }

    /// Takes the newest snapshot, after [`reset`](Self::reset).
    pub fn renew(&mut self) -> Result<(), LmdbError> {
        // SAFETY: the handle is live and reset.
        check(unsafe { ffi::mdb_txn_renew(self.raw) })
    }

    /// The number of the commit that the snapshot shows.
    pub fn id(&self) -> usize {
        // SAFETY: the handle is live.
        unsafe { ffi::mdb_txn_id(self.raw) as usize }
    }

    /// A walk from the scan cursor's entry in `dbi`, forward or backward.
    pub fn walk(&self, dbi: Dbi, is_forward: bool) -> Result<Walk<'_>, LmdbError> {
        self.set_positioned(dbi, false);
        let cursor = self.cursor(dbi, Role::Scan)?;
        let op = if is_forward { ffi::MDB_NEXT } else { ffi::MDB_PREV };
        Ok(Walk { cursor, op, _txn: PhantomData })
    }

    /// Whether this transaction can use `dbi`: it cannot if `dbi` was opened after it began.
    pub fn knows(&self, dbi: Dbi) -> bool {
        let mut flags = 0;
        // SAFETY: the transaction is live; LMDB checks the number.
        unsafe { ffi::mdb_dbi_flags(self.raw, dbi, &raw mut flags) == ffi::MDB_SUCCESS }
    }
}

/// Steps from entry to entry.
pub struct Walk<'t> {
    cursor: *mut ffi::MDB_cursor,
    op: ffi::MDB_cursor_op,
    _txn: PhantomData<&'t ReadTxn>,
}

impl<'t> Walk<'t> {
    /// The next entry. Nothing else may have moved the scan cursor since the last step.
    #[inline]
    pub fn step(&mut self) -> Result<Option<Found<'t>>, LmdbError> {
        let (mut key, mut data) = (EMPTY, EMPTY);
        // SAFETY: the cursor lives as long as the transaction, which does not change under `'t`.
        unsafe {
            let code = ffi::mdb_cursor_get(self.cursor, &raw mut key, &raw mut data, self.op);
            Ok(if found(code)? { Some((bytes(&key), bytes(&data))) } else { None })
        }
    }
}

/// The write transaction. The raw pointer ties it to the thread that began it.
pub struct WriteTxn(Txn);

impl Deref for WriteTxn {
    type Target = Txn;
    fn deref(&self) -> &Txn {
        &self.0
    }
}

/// What [`WriteTxn::insert`] found.
pub enum Insert<'t> {
    /// Nothing; this is the room for the value, all of which must be filled.
    Vacant(&'t mut [u8]),
    /// An entry under that key.
    Occupied(Entry<'t>),
}

/// An entry that was found, to be changed. While it lives, nothing moves the point cursor away from
/// it:
///
/// ```compile_fail
/// # use tokaido_lmdb::{Dbi, LmdbError, WriteTxn};
/// # fn change(txn: &mut WriteTxn, dbi: Dbi) -> Result<(), LmdbError> {
/// let entry = txn.entry(dbi, b"k")?.unwrap();
/// txn.find(dbi, b"another")?;
/// entry.remove()
/// # }
/// ```
pub struct Entry<'t> {
    txn: &'t mut WriteTxn,
    dbi: Dbi,
    key: &'t [u8],
    value: ffi::MDB_val,
}

impl<'t> Entry<'t> {
    /// Its value.
    pub fn value(&self) -> &[u8] {
        // SAFETY: only the entry can write to the transaction, and it has not.
        unsafe { bytes(&self.value) }
    }

    /// Makes room for a new value of `len` bytes, all of which must be filled.
    pub fn overwrite(self, len: usize) -> Result<&'t mut [u8], LmdbError> {
        match self.txn.reserve(self.dbi, self.key, len, ffi::MDB_CURRENT)? {
            // SAFETY: as in `WriteTxn::insert`.
            (true, data) => Ok(unsafe { writable(&data) }),
            (false, _) => Err(LmdbError(ffi::MDB_KEYEXIST)),
        }
    }

    /// Removes it.
    pub fn remove(self) -> Result<(), LmdbError> {
        // SAFETY: the transaction is live; the point cursor is on the entry.
        check(unsafe { ffi::mdb_cursor_del(self.txn.cursor(self.dbi, Role::Point)?, 0) })?;
        self.txn.set_positioned(self.dbi, false);
        Ok(())
    }
}

impl WriteTxn {
    pub(super) fn begin(environment: &Arc<Handle>) -> Result<Self, LmdbError> {
        Txn::begin(environment, 0).map(Self)
    }

    /// The entry under `key`.
    pub fn entry<'t>(
        &'t mut self,
        dbi: Dbi,
        key: &'t [u8],
    ) -> Result<Option<Entry<'t>>, LmdbError> {
        let value = self.find(dbi, key)?.map(val);
        Ok(value.map(|value| Entry { txn: self, dbi, key, value }))
    }

    /// Makes room for a value of `len` bytes under `key`, if nothing is there. One search serves
    /// both results.
    pub fn insert<'t>(
        &'t mut self,
        dbi: Dbi,
        key: &'t [u8],
        len: usize,
    ) -> Result<Insert<'t>, LmdbError> {
        Ok(match self.reserve(dbi, key, len, ffi::MDB_NOOVERWRITE)? {
            // SAFETY: LMDB has reserved these bytes, on a page that belongs to this transaction,
            // where they stay until the next write, which needs `&mut self`.
            (true, data) => Insert::Vacant(unsafe { writable(&data) }),
            (false, value) => Insert::Occupied(Entry { txn: self, dbi, key, value }),
        })
    }

    /// Has LMDB reserve `len` bytes for a value, or returns the value that is in the way.
    fn reserve(
        &mut self,
        dbi: Dbi,
        key: &[u8],
        len: usize,
        flags: libc::c_uint,
    ) -> Result<(bool, ffi::MDB_val), LmdbError> {
        let (mut key, mut data) = (val(key), ffi::MDB_val { mv_size: len, ..EMPTY });
        let cursor = self.cursor(dbi, Role::Point)?;
        let flags = flags | ffi::MDB_RESERVE;
        // SAFETY: the transaction is live, and the key outlives the call. With CURRENT, which only
        // an `Entry` asks for, the point cursor is on the entry of that key.
        let code = unsafe { ffi::mdb_cursor_put(cursor, &raw mut key, &raw mut data, flags) };
        if code != ffi::MDB_KEYEXIST {
            check(code)?;
            self.set_positioned(dbi, false);
        }
        Ok((code != ffi::MDB_KEYEXIST, data))
    }

    /// Removes every entry of a database.
    pub fn clear(&mut self, dbi: Dbi) -> Result<(), LmdbError> {
        // SAFETY: the transaction is live; LMDB unsets the cursors in the database.
        check(unsafe { ffi::mdb_drop(self.raw, dbi, 0) })?;
        self.set_positioned(dbi, false);
        Ok(())
    }

    /// Opens a named database, if it exists.
    pub fn find_database(&mut self, name: &str) -> Result<Option<Dbi>, LmdbError> {
        self.open_database(name, false)
    }

    /// Opens a named database, and creates it if it does not exist.
    pub fn create_database(&mut self, name: &str) -> Result<Dbi, LmdbError> {
        self.open_database(name, true)?.ok_or(LmdbError(ffi::MDB_NOTFOUND))
    }

    /// Commits and syncs.
    pub fn commit(self) -> Result<(), LmdbError> {
        self.0.commit()
    }
}

/// The bytes that LMDB has reserved.
///
/// # Safety
/// `val` was filled by a put with RESERVE in a transaction that is borrowed for `'t`.
unsafe fn writable<'t>(val: &ffi::MDB_val) -> &'t mut [u8] {
    if val.mv_size == 0 {
        return &mut [];
    }
    // SAFETY: LMDB gives a pointer to that many bytes, and gives it to nobody else.
    unsafe { slice::from_raw_parts_mut(val.mv_data.cast::<u8>(), val.mv_size) }
}
