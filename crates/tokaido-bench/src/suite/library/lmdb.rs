//! LMDB, as its manual recommends for loads without sync: a writable map for writing, no locks for reading.

use std::{
    ffi::{CStr, c_char, c_int, c_uint, c_void},
    path::Path,
    ptr,
    sync::Arc,
    time::{Duration, Instant},
};

use super::{Found, bytes, c_path, functions};
use crate::suite::{
    companies::Rows,
    dictionary::{Dictionary, OpenDictionary},
};

#[repr(C)]
struct Value {
    len: usize,
    data: *const c_void,
}

type Environment = *mut c_void;
type Transaction = *mut c_void;
type Cursor = *mut c_void;

functions!(Library {
    mdb_version: fn(*mut c_int, *mut c_int, *mut c_int) -> *const c_char;
    mdb_strerror: fn(c_int) -> *const c_char;
    mdb_env_create: fn(*mut Environment) -> c_int;
    mdb_env_set_mapsize: fn(Environment, usize) -> c_int;
    mdb_env_open: fn(Environment, *const c_char, c_uint, c_uint) -> c_int;
    mdb_env_close: fn(Environment);
    mdb_env_sync: fn(Environment, c_int) -> c_int;
    mdb_txn_begin: fn(Environment, Transaction, c_uint, *mut Transaction) -> c_int;
    mdb_txn_commit: fn(Transaction) -> c_int;
    mdb_txn_abort: fn(Transaction);
    mdb_txn_reset: fn(Transaction);
    mdb_txn_renew: fn(Transaction) -> c_int;
    mdb_dbi_open: fn(Transaction, *const c_char, c_uint, *mut c_uint) -> c_int;
    mdb_drop: fn(Transaction, c_uint, c_int) -> c_int;
    mdb_put: fn(Transaction, c_uint, *mut Value, *mut Value, c_uint) -> c_int;
    mdb_get: fn(Transaction, c_uint, *mut Value, *mut Value) -> c_int;
    mdb_cursor_open: fn(Transaction, c_uint, *mut Cursor) -> c_int;
    mdb_cursor_get: fn(Cursor, *mut Value, *mut Value, c_int) -> c_int;
    mdb_cursor_close: fn(Cursor);
});

// From lmdb.h.
const NO_SUBDIRECTORY: c_uint = 0x4000;
const NO_SYNC: c_uint = 0x10000;
const READ_ONLY: c_uint = 0x20000;
const WRITE_MAP: c_uint = 0x80000;
const NO_LOCK: c_uint = 0x0040_0000;
const NO_THREAD_STORAGE: c_uint = 0x0020_0000;
const SET_RANGE: c_int = 17;
const NEXT: c_int = 8;
const NOT_FOUND: c_int = -30798;

const MODE: c_uint = 0o644;

/// Several times the size of the list.
const MAP_SIZE: usize = 64 << 20;

/// Size of the map per record of a growing store: several times what a record takes.
const MAP_PER_RECORD: u64 = 1_024;

pub(super) fn find() -> Option<Found> {
    let library = Library::load(&["liblmdb.so.0"])?;
    let (mut major, mut minor, mut patch) = (0, 0, 0);
    // SAFETY: it writes the three numbers.
    unsafe { (library.mdb_version)(&raw mut major, &raw mut minor, &raw mut patch) };
    Some(Found {
        name: "liblmdb.so.0",
        version: format!("{major}.{minor}.{patch}"),
        kinds: vec![Box::new(Lmdb(Arc::new(library)))],
    })
}

struct Lmdb(Arc<Library>);

impl Library {
    fn check(&self, code: c_int) -> Result<(), String> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: it returns a text for every code.
        let text = unsafe { CStr::from_ptr((self.mdb_strerror)(code)) };
        Err(text.to_string_lossy().into_owned())
    }

    /// Opens a file with a map of this size, and begins a transaction.
    fn open(
        self: &Arc<Self>,
        path: &Path,
        flags: c_uint,
        map_size: usize,
    ) -> Result<Opened, String> {
        let path = c_path(path)?;
        let mut opened = Opened {
            library: Arc::clone(self),
            environment: ptr::null_mut(),
            transaction: ptr::null_mut(),
            database: 0,
        };
        // SAFETY: each call gets what the previous ones created, and pointers to where results go.
        unsafe {
            self.check((self.mdb_env_create)(&raw mut opened.environment))?;
            self.check((self.mdb_env_set_mapsize)(opened.environment, map_size))?;
            let all = flags | NO_SUBDIRECTORY;
            self.check((self.mdb_env_open)(opened.environment, path.as_ptr(), all, MODE))?;
            self.check((self.mdb_txn_begin)(
                opened.environment,
                ptr::null_mut(),
                flags & READ_ONLY,
                &raw mut opened.transaction,
            ))?;
            self.check((self.mdb_dbi_open)(
                opened.transaction,
                ptr::null(),
                0,
                &raw mut opened.database,
            ))?;
        }
        Ok(opened)
    }
}

struct Opened {
    library: Arc<Library>,
    environment: Environment,
    transaction: Transaction,
    database: c_uint,
}

impl Opened {
    fn commit(&mut self) -> Result<(), String> {
        let transaction = std::mem::replace(&mut self.transaction, ptr::null_mut());
        // SAFETY: the transaction is active, and is not used afterwards.
        self.library.check(unsafe { (self.library.mdb_txn_commit)(transaction) })
    }

    fn put(&self, key: &[u8], of_key: &[u8]) -> Result<(), String> {
        let (mut key, mut of_key) = (value(key), value(of_key));
        let (key, of_key) = (&raw mut key, &raw mut of_key);
        let put = self.library.mdb_put;
        // SAFETY: the transaction is active; the lengths are those of the slices, which LMDB copies.
        self.library.check(unsafe { put(self.transaction, self.database, key, of_key, 0) })
    }

    fn get(&self, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<(), String> {
        let (mut key, mut found) = (value(key), empty());
        let get = self.library.mdb_get;
        // SAFETY: as above; what is found stays valid until the transaction ends.
        unsafe {
            let code = get(self.transaction, self.database, &raw mut key, &raw mut found);
            self.library.check(code)?;
            visit(bytes(found.data, found.len));
        }
        Ok(())
    }

    /// Scans from a key on, or from the first one.
    fn scan(
        &self,
        from: Option<&[u8]>,
        count: u64,
        visit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<(), String> {
        let library = &self.library;
        let mut cursor = ptr::null_mut();
        // SAFETY: as above; what a cursor returns stays valid until the transaction ends.
        unsafe {
            let code = (library.mdb_cursor_open)(self.transaction, self.database, &raw mut cursor);
            library.check(code)?;
            let (mut key, mut of_key) = (value(from.unwrap_or_default()), empty());
            let mut step = if from.is_some() { SET_RANGE } else { NEXT };
            let mut left = count;
            let code = loop {
                if left == 0 {
                    break 0;
                }
                match (library.mdb_cursor_get)(cursor, &raw mut key, &raw mut of_key, step) {
                    0 => visit(bytes(key.data, key.len), bytes(of_key.data, of_key.len)),
                    NOT_FOUND => break 0,
                    code => break code,
                }
                (step, left) = (NEXT, left - 1);
            };
            (library.mdb_cursor_close)(cursor);
            library.check(code)
        }
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        // SAFETY: what was created is freed once.
        unsafe {
            if !self.transaction.is_null() {
                (self.library.mdb_txn_abort)(self.transaction);
            }
            if !self.environment.is_null() {
                (self.library.mdb_env_close)(self.environment);
            }
        }
    }
}

fn value(bytes: &[u8]) -> Value {
    Value { len: bytes.len(), data: bytes.as_ptr().cast() }
}

fn empty() -> Value {
    Value { len: 0, data: ptr::null() }
}

impl Dictionary for Lmdb {
    fn settings(&self) -> &'static str {
        "WRITEMAP and NOSYNC to write, NOLOCK to read"
    }

    fn write(&self, path: &Path, rows: &Rows) -> Result<(), String> {
        let mut opened = self.0.open(path, NO_SYNC | WRITE_MAP, MAP_SIZE)?;
        // SAFETY: the transaction is active.
        self.0.check(unsafe { (self.0.mdb_drop)(opened.transaction, opened.database, 0) })?;
        rows.iter().try_for_each(|(key, value)| opened.put(key, value))?;
        opened.commit()
    }

    fn read_all(&self, path: &Path, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), String> {
        self.0.open(path, READ_ONLY | NO_LOCK, MAP_SIZE)?.scan(None, u64::MAX, visit)
    }

    fn get(&self, path: &Path, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<(), String> {
        self.0.open(path, READ_ONLY | NO_LOCK, MAP_SIZE)?.get(key, visit)
    }

    fn keep_open(
        &self,
        path: &Path,
        records: u64,
        sync: Option<Duration>,
    ) -> Option<Result<Box<dyn OpenDictionary>, String>> {
        Some(self.0.kept(path, records, sync).map(|kept| Box::new(kept) as Box<_>))
    }
}

/// A store that stays open. The transaction of `opened` is the one under way, and null between calls.
struct Kept {
    opened: Opened,
    /// A read transaction, which is renewed for each read, as the manual recommends.
    reader: Transaction,
    /// The interval of syncs, and the time of the last one.
    sync: Option<Duration>,
    synced: Instant,
}

impl Drop for Kept {
    fn drop(&mut self) {
        // SAFETY: it is ended once, and before its environment.
        unsafe { (self.opened.library.mdb_txn_abort)(self.reader) };
    }
}

impl Library {
    fn kept(
        self: &Arc<Self>,
        path: &Path,
        records: u64,
        sync: Option<Duration>,
    ) -> Result<Kept, String> {
        let map_size = (records * MAP_PER_RECORD) as usize + MAP_SIZE;
        let mut opened = self.open(path, NO_SYNC | WRITE_MAP | NO_THREAD_STORAGE, map_size)?;
        opened.commit()?;
        let mut reader = ptr::null_mut();
        // SAFETY: the environment is open, and a read-only transaction can be reset.
        unsafe {
            self.check((self.mdb_txn_begin)(
                opened.environment,
                ptr::null_mut(),
                READ_ONLY,
                &raw mut reader,
            ))?;
            (self.mdb_txn_reset)(reader);
        }
        Ok(Kept { opened, reader, sync, synced: Instant::now() })
    }
}

impl Kept {
    /// Reads in the read transaction.
    fn read(&mut self, read: impl FnOnce(&Opened) -> Result<(), String>) -> Result<(), String> {
        let library = Arc::clone(&self.opened.library);
        // SAFETY: the reader was reset, and will be again; nobody writes meanwhile, so its place is free.
        unsafe {
            library.check((library.mdb_txn_renew)(self.reader))?;
            self.opened.transaction = self.reader;
            let done = read(&self.opened);
            self.opened.transaction = ptr::null_mut();
            (library.mdb_txn_reset)(self.reader);
            done
        }
    }
}

impl OpenDictionary for Kept {
    fn put(&mut self, rows: &[(&[u8], &[u8])]) -> Result<(), String> {
        let Opened { library, environment, transaction, .. } = &mut self.opened;
        // SAFETY: the environment is open, and no transaction of `opened` is active.
        let code = unsafe {
            (library.mdb_txn_begin)(*environment, ptr::null_mut(), 0, &raw mut *transaction)
        };
        library.check(code)?;
        for (key, value) in rows {
            self.opened.put(key, value)?;
        }
        self.opened.commit()?;
        if self.sync.is_some_and(|sync| self.synced.elapsed() >= sync) {
            self.synced = Instant::now();
            let Opened { library, environment, .. } = &self.opened;
            // SAFETY: the environment is open. It is synced although it was opened without sync.
            library.check(unsafe { (library.mdb_env_sync)(*environment, 1) })?;
        }
        Ok(())
    }

    fn get(&mut self, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<(), String> {
        self.read(|opened| opened.get(key, visit))
    }

    fn scan(
        &mut self,
        from: &[u8],
        count: u64,
        visit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<(), String> {
        self.read(|opened| opened.scan(Some(from), count, visit))
    }
}
