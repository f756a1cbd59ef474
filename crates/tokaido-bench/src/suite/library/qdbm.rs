//! QDBM: its hash, Depot, tuned to the number of records, and its B+ tree, Villa.

use std::{
    ffi::{c_char, c_int, c_void},
    path::Path,
    sync::Arc,
};

use super::{Found, bytes, c_path, check, functions, int, text_variable};
use crate::suite::{
    companies::Rows,
    dictionary::{Dictionary, NOT_THERE},
};

type Database = *mut c_void;
type Compare = unsafe extern "C" fn(*const c_char, c_int, *const c_char, c_int) -> c_int;

functions!(Library {
    dpopen: fn(*const c_char, c_int, c_int) -> Database;
    dpclose: fn(Database) -> c_int;
    dpput: fn(Database, *const c_char, c_int, *const c_char, c_int, c_int) -> c_int;
    dpget: fn(Database, *const c_char, c_int, c_int, c_int, *mut c_int) -> *mut c_char;
    dpiterinit: fn(Database) -> c_int;
    dpiternext: fn(Database, *mut c_int) -> *mut c_char;
    vlopen: fn(*const c_char, c_int, Compare) -> Database;
    vlclose: fn(Database) -> c_int;
    vlput: fn(Database, *const c_char, c_int, *const c_char, c_int, c_int) -> c_int;
    vlgetcache: fn(Database, *const c_char, c_int, *mut c_int) -> *const c_char;
    vlcurfirst: fn(Database) -> c_int;
    vlcurnext: fn(Database) -> c_int;
    vlcurkeycache: fn(Database, *mut c_int) -> *const c_char;
    vlcurvalcache: fn(Database, *mut c_int) -> *const c_char;
});

// From depot.h and villa.h, which have the same modes.
const READER: c_int = 1 << 0;
const WRITER: c_int = 1 << 1;
const CREATE: c_int = 1 << 2;
const TRUNCATE: c_int = 1 << 3;
const NO_LOCK: c_int = 1 << 4;
const OVERWRITE: c_int = 0;

/// Twice the number of records.
const BUCKETS: c_int = 5_000;

/// Stands for all bytes of a value.
const ALL: c_int = -1;

pub(super) fn find() -> Option<Found> {
    let library = Arc::new(Library::load(&["libqdbm.so.14", "/usr/lib/libqdbm.so.14"])?);
    // SAFETY: the header declares them with these types.
    let (version, compare) = unsafe {
        let version = text_variable(&library.library, c"dpversion");
        (version, **library.library.get::<*const Compare>(b"VL_CMPLEX\0").ok()?)
    };
    Some(Found {
        name: "libqdbm.so.14",
        version: version.unwrap_or_else(|| "unknown".to_owned()),
        kinds: vec![Box::new(Depot(Arc::clone(&library))), Box::new(Villa { library, compare })],
    })
}

struct Depot(Arc<Library>);

struct Villa {
    library: Arc<Library>,
    /// Orders keys by their bytes.
    compare: Compare,
}

/// A database, and the function that closes it.
struct Opened {
    database: Database,
    close: unsafe extern "C" fn(Database) -> c_int,
}

impl Opened {
    fn of(
        database: Database,
        close: unsafe extern "C" fn(Database) -> c_int,
        what: &str,
    ) -> Result<Self, String> {
        check(!database.is_null(), what)?;
        Ok(Self { database, close })
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        // SAFETY: it is open, and is closed once.
        unsafe { (self.close)(self.database) };
    }
}

impl Depot {
    fn open(&self, path: &Path, mode: c_int) -> Result<Opened, String> {
        let path = c_path(path)?;
        // SAFETY: the path is zero-terminated.
        let database = unsafe { (self.0.dpopen)(path.as_ptr(), mode, BUCKETS) };
        Opened::of(database, self.0.dpclose, "dpopen")
    }

    fn value(&self, opened: &Opened, key: &[u8], visit: impl FnOnce(&[u8])) -> Result<(), String> {
        let mut len = 0;
        // SAFETY: it is open, the length is that of the slice, and the value is ours until it is freed.
        unsafe {
            let value = (self.0.dpget)(
                opened.database,
                key.as_ptr().cast(),
                int(key),
                0,
                ALL,
                &raw mut len,
            );
            check(!value.is_null(), NOT_THERE)?;
            visit(bytes(value.cast(), len as usize));
            libc::free(value.cast());
        }
        Ok(())
    }
}

impl Dictionary for Depot {
    fn settings(&self) -> &'static str {
        "depot, bnum=5000"
    }

    fn write(&self, path: &Path, rows: &Rows) -> Result<(), String> {
        let opened = self.open(path, WRITER | CREATE | TRUNCATE)?;
        for (key, value) in rows {
            // SAFETY: the database is open, and the lengths are those of the slices.
            let is_put = unsafe {
                (self.0.dpput)(
                    opened.database,
                    key.as_ptr().cast(),
                    int(key),
                    value.as_ptr().cast(),
                    int(value),
                    OVERWRITE,
                )
            };
            check(is_put != 0, "dpput")?;
        }
        Ok(())
    }

    fn read_all(&self, path: &Path, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), String> {
        let opened = self.open(path, READER | NO_LOCK)?;
        // SAFETY: the database is open; each key is ours until it is freed.
        unsafe {
            check((self.0.dpiterinit)(opened.database) != 0, "dpiterinit")?;
            loop {
                let mut len = 0;
                let key = (self.0.dpiternext)(opened.database, &raw mut len);
                if key.is_null() {
                    return Ok(());
                }
                let found = bytes(key.cast(), len as usize);
                let visited = self.value(&opened, found, |value| visit(found, value));
                libc::free(key.cast());
                visited?;
            }
        }
    }

    fn get(&self, path: &Path, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<(), String> {
        let opened = self.open(path, READER | NO_LOCK)?;
        self.value(&opened, key, visit)
    }
}

impl Villa {
    fn open(&self, path: &Path, mode: c_int) -> Result<Opened, String> {
        let path = c_path(path)?;
        // SAFETY: the path is zero-terminated, and the function is the library's own.
        let database = unsafe { (self.library.vlopen)(path.as_ptr(), mode, self.compare) };
        Opened::of(database, self.library.vlclose, "vlopen")
    }
}

impl Dictionary for Villa {
    fn settings(&self) -> &'static str {
        "villa"
    }

    fn write(&self, path: &Path, rows: &Rows) -> Result<(), String> {
        let opened = self.open(path, WRITER | CREATE | TRUNCATE)?;
        for (key, value) in rows {
            // SAFETY: the database is open, and the lengths are those of the slices.
            let is_put = unsafe {
                (self.library.vlput)(
                    opened.database,
                    key.as_ptr().cast(),
                    int(key),
                    value.as_ptr().cast(),
                    int(value),
                    OVERWRITE,
                )
            };
            check(is_put != 0, "vlput")?;
        }
        Ok(())
    }

    fn read_all(&self, path: &Path, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), String> {
        let opened = self.open(path, READER | NO_LOCK)?;
        // SAFETY: the database is open; what the cursor shows stays valid until its next step.
        unsafe {
            let mut is_there = (self.library.vlcurfirst)(opened.database);
            while is_there != 0 {
                let (mut key_len, mut value_len) = (0, 0);
                let key = (self.library.vlcurkeycache)(opened.database, &raw mut key_len);
                let value = (self.library.vlcurvalcache)(opened.database, &raw mut value_len);
                check(!key.is_null() && !value.is_null(), "vlcurkeycache")?;
                visit(bytes(key.cast(), key_len as usize), bytes(value.cast(), value_len as usize));
                is_there = (self.library.vlcurnext)(opened.database);
            }
        }
        Ok(())
    }

    fn get(&self, path: &Path, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<(), String> {
        let opened = self.open(path, READER | NO_LOCK)?;
        let mut len = 0;
        // SAFETY: the database is open; the value stays valid until the next call.
        unsafe {
            let value = (self.library.vlgetcache)(
                opened.database,
                key.as_ptr().cast(),
                int(key),
                &raw mut len,
            );
            check(!value.is_null(), NOT_THERE)?;
            visit(bytes(value.cast(), len as usize));
        }
        Ok(())
    }
}
