//! Kyoto Cabinet: a hash and a tree, through its C interface, tuned to the number of records.

use std::{
    ffi::{CString, c_char, c_void},
    path::Path,
    sync::Arc,
};

use super::{Found, bytes, c_path, check, functions, text_variable};
use crate::suite::{
    companies::Rows,
    dictionary::{Dictionary, NOT_THERE},
};

type Database = *mut c_void;
type Visit = unsafe extern "C" fn(
    *const c_char,
    usize,
    *const c_char,
    usize,
    *mut usize,
    *mut c_void,
) -> *const c_char;

functions!(Library {
    kcdbnew: fn() -> Database;
    kcdbdel: fn(Database);
    kcdbopen: fn(Database, *const c_char, u32) -> i32;
    kcdbclose: fn(Database) -> i32;
    kcdbset: fn(Database, *const c_char, usize, *const c_char, usize) -> i32;
    kcdbget: fn(Database, *const c_char, usize, *mut usize) -> *mut c_char;
    kcdbiterate: fn(Database, Visit, *mut c_void, i32) -> i32;
    kcfree: fn(*mut c_void);
});

// From kclangc.h.
const READER: u32 = 1 << 0;
const WRITER: u32 = 1 << 1;
const CREATE: u32 = 1 << 2;
const TRUNCATE: u32 = 1 << 3;
const NO_LOCK: u32 = 1 << 6;

struct Kind {
    library: Arc<Library>,
    settings: &'static str,
    /// Appended to the path to select this kind.
    suffix: &'static str,
}

pub(super) fn find() -> Option<Found> {
    let library = Arc::new(Library::load(&["libkyotocabinet.so.16"])?);
    // SAFETY: the header declares it with this type.
    let version = unsafe { text_variable(&library.library, c"KCVERSION") };
    let kind = |settings, suffix| {
        Box::new(Kind { library: Arc::clone(&library), settings, suffix }) as Box<dyn Dictionary>
    };
    Some(Found {
        name: "libkyotocabinet.so.16",
        version: version.unwrap_or_else(|| "unknown".to_owned()),
        kinds: vec![
            // Twice as many buckets as records: the default is a million.
            kind("hash, bnum=5000", ".kch#type=kch#bnum=5000"),
            kind("tree, bnum=5000", ".kct#type=kct#bnum=5000"),
        ],
    })
}

impl Kind {
    fn open(&self, path: &Path, mode: u32) -> Result<Opened<'_>, String> {
        let path = [c_path(path)?.as_bytes(), self.suffix.as_bytes()].concat();
        let path = CString::new(path).map_err(|error| error.to_string())?;
        // SAFETY: a database is created, and opened at a zero-terminated path.
        unsafe {
            let opened = Opened { library: &self.library, database: (self.library.kcdbnew)() };
            let is_open = (self.library.kcdbopen)(opened.database, path.as_ptr(), mode) != 0;
            check(is_open, "kcdbopen")?;
            Ok(opened)
        }
    }
}

struct Opened<'a> {
    library: &'a Library,
    database: Database,
}

impl Drop for Opened<'_> {
    fn drop(&mut self) {
        // SAFETY: the database is freed once; closing one that was not opened does nothing.
        unsafe {
            (self.library.kcdbclose)(self.database);
            (self.library.kcdbdel)(self.database);
        }
    }
}

/// Passes on a record; a null pointer leaves the record unchanged.
unsafe extern "C" fn visit_record(
    key: *const c_char,
    key_len: usize,
    value: *const c_char,
    value_len: usize,
    _: *mut usize,
    visit: *mut c_void,
) -> *const c_char {
    // SAFETY: the library passes the bytes of a record, and the pointer it was given: see `read_all`.
    unsafe {
        let visit = &mut *visit.cast::<&mut dyn FnMut(&[u8], &[u8])>();
        visit(bytes(key.cast(), key_len), bytes(value.cast(), value_len));
    }
    std::ptr::null()
}

impl Dictionary for Kind {
    fn settings(&self) -> &str {
        self.settings
    }

    fn write(&self, path: &Path, rows: &Rows) -> Result<(), String> {
        let opened = self.open(path, WRITER | CREATE | TRUNCATE)?;
        for (key, value) in rows {
            // SAFETY: the database is open, and the lengths are those of the slices.
            let is_set = unsafe {
                (self.library.kcdbset)(
                    opened.database,
                    key.as_ptr().cast(),
                    key.len(),
                    value.as_ptr().cast(),
                    value.len(),
                )
            };
            check(is_set != 0, "kcdbset")?;
        }
        Ok(())
    }

    fn read_all(&self, path: &Path, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), String> {
        let opened = self.open(path, READER | NO_LOCK)?;
        let mut visit = visit;
        // SAFETY: the database is open; the function is called only during this call, with this pointer.
        let is_done = unsafe {
            (self.library.kcdbiterate)(opened.database, visit_record, (&raw mut visit).cast(), 0)
        };
        check(is_done != 0, "kcdbiterate")
    }

    fn get(&self, path: &Path, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<(), String> {
        let opened = self.open(path, READER | NO_LOCK)?;
        let mut len = 0;
        // SAFETY: the database is open; the value is ours until it is freed.
        unsafe {
            let value = (self.library.kcdbget)(
                opened.database,
                key.as_ptr().cast(),
                key.len(),
                &raw mut len,
            );
            check(!value.is_null(), NOT_THERE)?;
            visit(bytes(value.cast(), len));
            (self.library.kcfree)(value.cast());
        }
        Ok(())
    }
}
