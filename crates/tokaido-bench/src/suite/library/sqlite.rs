//! SQLite: a table ordered by its key, all rows in one transaction, no journal and no sync.

use std::{
    ffi::{CStr, c_char, c_int, c_void},
    path::Path,
    ptr,
};

use super::{Found, bytes, c_path, check, functions, int};
use crate::suite::{
    companies::Rows,
    dictionary::{Dictionary, NOT_THERE},
};

type Database = *mut c_void;
type Statement = *mut c_void;

functions!(Library {
    sqlite3_libversion: fn() -> *const c_char;
    sqlite3_open_v2: fn(*const c_char, *mut Database, c_int, *const c_char) -> c_int;
    sqlite3_close: fn(Database) -> c_int;
    sqlite3_exec: fn(Database, *const c_char, *const c_void, *mut c_void, *mut *mut c_char) -> c_int;
    sqlite3_prepare_v2: fn(Database, *const c_char, c_int, *mut Statement, *mut *const c_char) -> c_int;
    sqlite3_bind_blob: fn(Statement, c_int, *const c_void, c_int, *const c_void) -> c_int;
    sqlite3_step: fn(Statement) -> c_int;
    sqlite3_reset: fn(Statement) -> c_int;
    sqlite3_finalize: fn(Statement) -> c_int;
    sqlite3_column_blob: fn(Statement, c_int) -> *const c_void;
    sqlite3_column_bytes: fn(Statement, c_int) -> c_int;
});

// From sqlite3.h.
const READ_ONLY: c_int = 1;
const READ_WRITE: c_int = 2;
const CREATE: c_int = 4;
const ROW: c_int = 100;
const DONE: c_int = 101;

/// As a length: up to the terminating zero.
const TO_ZERO: c_int = -1;

pub(super) fn find() -> Option<Found> {
    let library = Library::load(&["libsqlite3.so.0"])?;
    // SAFETY: it returns a text that is always valid.
    let version = unsafe { CStr::from_ptr((library.sqlite3_libversion)()) };
    let version = version.to_string_lossy().into_owned();
    Some(Found { name: "libsqlite3.so.0", version, kinds: vec![Box::new(library)] })
}

struct Opened<'a> {
    library: &'a Library,
    database: Database,
}

impl Drop for Opened<'_> {
    fn drop(&mut self) {
        // SAFETY: it was opened, even if that failed, and is closed once; statements have been finalized.
        unsafe { (self.library.sqlite3_close)(self.database) };
    }
}

struct Prepared<'a> {
    library: &'a Library,
    statement: Statement,
}

impl Drop for Prepared<'_> {
    fn drop(&mut self) {
        // SAFETY: it was prepared, and is finalized once.
        unsafe { (self.library.sqlite3_finalize)(self.statement) };
    }
}

impl Library {
    fn open(&self, path: &Path, flags: c_int) -> Result<Opened<'_>, String> {
        let path = c_path(path)?;
        let mut opened = Opened { library: self, database: ptr::null_mut() };
        // SAFETY: the path is zero-terminated.
        let code = unsafe {
            (self.sqlite3_open_v2)(path.as_ptr(), &raw mut opened.database, flags, ptr::null())
        };
        check(code == 0, "sqlite3_open_v2")?;
        Ok(opened)
    }
}

impl Opened<'_> {
    fn execute(&self, sql: &CStr) -> Result<(), String> {
        // SAFETY: the database is open, and the text is zero-terminated.
        let code = unsafe {
            (self.library.sqlite3_exec)(
                self.database,
                sql.as_ptr(),
                ptr::null(),
                ptr::null_mut(),
                ptr::null_mut(),
            )
        };
        check(code == 0, &sql.to_string_lossy())
    }

    fn prepare(&self, sql: &CStr) -> Result<Prepared<'_>, String> {
        let mut statement = ptr::null_mut();
        // SAFETY: as above.
        let code = unsafe {
            (self.library.sqlite3_prepare_v2)(
                self.database,
                sql.as_ptr(),
                TO_ZERO,
                &raw mut statement,
                ptr::null_mut(),
            )
        };
        check(code == 0, &sql.to_string_lossy())?;
        Ok(Prepared { library: self.library, statement })
    }
}

impl Prepared<'_> {
    /// Binds a parameter; the bytes must stay valid until the statement is reset.
    fn bind(&self, index: c_int, value: &[u8]) -> Result<(), String> {
        // SAFETY: the statement is prepared, and the caller keeps the bytes, so no copy is needed: a null function says so.
        let code = unsafe {
            (self.library.sqlite3_bind_blob)(
                self.statement,
                index,
                value.as_ptr().cast(),
                int(value),
                ptr::null(),
            )
        };
        check(code == 0, "sqlite3_bind_blob")
    }

    fn step(&self) -> c_int {
        // SAFETY: the statement is prepared.
        unsafe { (self.library.sqlite3_step)(self.statement) }
    }

    /// A column of the statement's current row.
    fn column(&self, index: c_int) -> &[u8] {
        // SAFETY: the statement is on a row, whose bytes stay valid until the next step.
        unsafe {
            let start = (self.library.sqlite3_column_blob)(self.statement, index);
            let len = (self.library.sqlite3_column_bytes)(self.statement, index);
            if start.is_null() { &[] } else { bytes(start, len as usize) }
        }
    }
}

impl Dictionary for Library {
    fn settings(&self) -> &'static str {
        "WITHOUT ROWID, one transaction, no journal"
    }

    fn write(&self, path: &Path, rows: &Rows) -> Result<(), String> {
        let opened = self.open(path, READ_WRITE | CREATE)?;
        opened.execute(
            c"PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN; DROP TABLE IF EXISTS list; \
              CREATE TABLE list (key BLOB PRIMARY KEY, value BLOB) WITHOUT ROWID",
        )?;
        let insert = opened.prepare(c"INSERT OR REPLACE INTO list VALUES (?, ?)")?;
        for (key, value) in rows {
            insert.bind(1, key)?;
            insert.bind(2, value)?;
            check(insert.step() == DONE, "INSERT")?;
            // SAFETY: the statement is prepared.
            unsafe { (self.sqlite3_reset)(insert.statement) };
        }
        opened.execute(c"COMMIT")
    }

    fn read_all(&self, path: &Path, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), String> {
        let opened = self.open(path, READ_ONLY)?;
        let select = opened.prepare(c"SELECT key, value FROM list")?;
        loop {
            match select.step() {
                ROW => visit(select.column(0), select.column(1)),
                code => return check(code == DONE, "SELECT"),
            }
        }
    }

    fn get(&self, path: &Path, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<(), String> {
        let opened = self.open(path, READ_ONLY)?;
        let select = opened.prepare(c"SELECT value FROM list WHERE key = ?")?;
        select.bind(1, key)?;
        check(select.step() == ROW, NOT_THERE)?;
        visit(select.column(0));
        Ok(())
    }
}
