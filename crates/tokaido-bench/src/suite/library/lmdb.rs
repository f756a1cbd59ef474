//! LMDB, as its manual has it for loads that need no sync: a writable map to write, no locks to read.

use std::{
    ffi::{CStr, c_char, c_int, c_uint, c_void},
    path::Path,
    ptr,
};

use super::{Found, bytes, c_path, functions};
use crate::suite::{companies::Rows, dictionary::Dictionary};

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
    mdb_txn_begin: fn(Environment, Transaction, c_uint, *mut Transaction) -> c_int;
    mdb_txn_commit: fn(Transaction) -> c_int;
    mdb_txn_abort: fn(Transaction);
    mdb_dbi_open: fn(Transaction, *const c_char, c_uint, *mut c_uint) -> c_int;
    mdb_drop: fn(Transaction, c_uint, c_int) -> c_int;
    mdb_put: fn(Transaction, c_uint, *mut Value, *mut Value, c_uint) -> c_int;
    mdb_get: fn(Transaction, c_uint, *mut Value, *mut Value) -> c_int;
    mdb_cursor_open: fn(Transaction, c_uint, *mut Cursor) -> c_int;
    mdb_cursor_get: fn(Cursor, *mut Value, *mut Value, c_int) -> c_int;
    mdb_cursor_close: fn(Cursor);
});

// Of lmdb.h.
const NO_SUBDIRECTORY: c_uint = 0x4000;
const NO_SYNC: c_uint = 0x10000;
const READ_ONLY: c_uint = 0x20000;
const WRITE_MAP: c_uint = 0x80000;
const NO_LOCK: c_uint = 0x0040_0000;
const NEXT: c_int = 8;
const NOT_FOUND: c_int = -30798;

const MODE: c_uint = 0o644;

/// Several times the size of the list.
const MAP_SIZE: usize = 64 << 20;

pub(super) fn find() -> Option<Found> {
    let library = Library::load(&["liblmdb.so.0"])?;
    let (mut major, mut minor, mut patch) = (0, 0, 0);
    // SAFETY: it writes the three numbers.
    unsafe { (library.mdb_version)(&raw mut major, &raw mut minor, &raw mut patch) };
    Some(Found {
        name: "liblmdb.so.0",
        version: format!("{major}.{minor}.{patch}"),
        kinds: vec![Box::new(library)],
    })
}

impl Library {
    fn check(&self, code: c_int) -> Result<(), String> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: it gives a text for every code.
        let text = unsafe { CStr::from_ptr((self.mdb_strerror)(code)) };
        Err(text.to_string_lossy().into_owned())
    }

    /// Opens a file and begins a transaction.
    fn open(&self, path: &Path, flags: c_uint) -> Result<Opened<'_>, String> {
        let path = c_path(path)?;
        let mut opened = Opened {
            library: self,
            environment: ptr::null_mut(),
            transaction: ptr::null_mut(),
            database: 0,
        };
        // SAFETY: each call has what the ones before have made, and pointers to where results go.
        unsafe {
            self.check((self.mdb_env_create)(&raw mut opened.environment))?;
            self.check((self.mdb_env_set_mapsize)(opened.environment, MAP_SIZE))?;
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

struct Opened<'a> {
    library: &'a Library,
    environment: Environment,
    transaction: Transaction,
    database: c_uint,
}

impl Opened<'_> {
    fn commit(mut self) -> Result<(), String> {
        let transaction = std::mem::replace(&mut self.transaction, ptr::null_mut());
        // SAFETY: the transaction is under way, and is not used behind it.
        self.library.check(unsafe { (self.library.mdb_txn_commit)(transaction) })
    }
}

impl Drop for Opened<'_> {
    fn drop(&mut self) {
        // SAFETY: what was made is ended once.
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

impl Dictionary for Library {
    fn settings(&self) -> &'static str {
        "WRITEMAP and NOSYNC to write, NOLOCK to read"
    }

    fn write(&self, path: &Path, rows: &Rows) -> Result<(), String> {
        let opened = self.open(path, NO_SYNC | WRITE_MAP)?;
        // SAFETY: the transaction is under way; lengths are those of the slices, which LMDB copies.
        unsafe {
            self.check((self.mdb_drop)(opened.transaction, opened.database, 0))?;
            for (key, of_key) in rows {
                let (mut key, mut of_key) = (value(key), value(of_key));
                self.check((self.mdb_put)(
                    opened.transaction,
                    opened.database,
                    &raw mut key,
                    &raw mut of_key,
                    0,
                ))?;
            }
        }
        opened.commit()
    }

    fn read_all(&self, path: &Path, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), String> {
        let opened = self.open(path, READ_ONLY | NO_LOCK)?;
        let mut cursor = ptr::null_mut();
        // SAFETY: as above; what a cursor gives stays until the transaction ends.
        unsafe {
            let code = (self.mdb_cursor_open)(opened.transaction, opened.database, &raw mut cursor);
            self.check(code)?;
            let code = loop {
                let (mut key, mut of_key) = (empty(), empty());
                match (self.mdb_cursor_get)(cursor, &raw mut key, &raw mut of_key, NEXT) {
                    0 => visit(bytes(key.data, key.len), bytes(of_key.data, of_key.len)),
                    NOT_FOUND => break 0,
                    code => break code,
                }
            };
            (self.mdb_cursor_close)(cursor);
            self.check(code)
        }
    }

    fn get(&self, path: &Path, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<(), String> {
        let opened = self.open(path, READ_ONLY | NO_LOCK)?;
        let (mut key, mut found) = (value(key), empty());
        // SAFETY: as above.
        unsafe {
            let code =
                (self.mdb_get)(opened.transaction, opened.database, &raw mut key, &raw mut found);
            self.check(code)?;
            visit(bytes(found.data, found.len));
        }
        Ok(())
    }
}
