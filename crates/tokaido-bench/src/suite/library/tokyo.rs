//! Tokyo Cabinet: a hash, tuned to the number of records, and a B+ tree.

use std::{
    ffi::{c_char, c_int, c_void},
    path::Path,
    sync::Arc,
    time::Duration,
};

use super::{Found, bytes, c_path, check, functions, int, text_variable};
use crate::suite::{
    companies::Rows,
    dictionary::{Dictionary, NOT_THERE, OpenDictionary},
};

type Database = *mut c_void;
type Cursor = *mut c_void;
type Text = *mut c_void;

functions!(Library {
    tchdbnew: fn() -> Database;
    tchdbdel: fn(Database);
    tchdbtune: fn(Database, i64, i8, i8, u8) -> bool;
    tchdbopen: fn(Database, *const c_char, c_int) -> bool;
    tchdbclose: fn(Database) -> bool;
    tchdbput: fn(Database, *const c_void, c_int, *const c_void, c_int) -> bool;
    tchdbget: fn(Database, *const c_void, c_int, *mut c_int) -> *mut c_void;
    tchdbiterinit: fn(Database) -> bool;
    tchdbiternext3: fn(Database, Text, Text) -> bool;
    tcxstrnew: fn() -> Text;
    tcxstrdel: fn(Text);
    tcxstrptr: fn(Text) -> *const c_void;
    tcxstrsize: fn(Text) -> c_int;
    tcbdbnew: fn() -> Database;
    tcbdbdel: fn(Database);
    tcbdbopen: fn(Database, *const c_char, c_int) -> bool;
    tcbdbclose: fn(Database) -> bool;
    tcbdbput: fn(Database, *const c_void, c_int, *const c_void, c_int) -> bool;
    tcbdbget3: fn(Database, *const c_void, c_int, *mut c_int) -> *const c_void;
    tcbdbcurnew: fn(Database) -> Cursor;
    tcbdbcurdel: fn(Cursor);
    tcbdbcurfirst: fn(Cursor) -> bool;
    tcbdbcurnext: fn(Cursor) -> bool;
    tcbdbcurkey3: fn(Cursor, *mut c_int) -> *const c_void;
    tcbdbcurval3: fn(Cursor, *mut c_int) -> *const c_void;
});

// From tchdb.h and tcbdb.h, which have the same modes.
const READER: c_int = 1 << 0;
const WRITER: c_int = 1 << 1;
const CREATE: c_int = 1 << 2;
const TRUNCATE: c_int = 1 << 3;
const NO_LOCK: c_int = 1 << 4;

/// Buckets per record, as its manual recommends.
const BUCKETS_PER_RECORD: i64 = 2;

/// Buckets for the list.
const BUCKETS: i64 = 5_000;

/// As a setting: the library's default.
const UNCHANGED: i8 = -1;

pub(super) fn find() -> Option<Found> {
    let library = Arc::new(Library::load(&["libtokyocabinet.so.9"])?);
    // SAFETY: the header declares it with this type.
    let version = unsafe { text_variable(&library.library, c"tcversion") };
    Some(Found {
        name: "libtokyocabinet.so.9",
        version: version.unwrap_or_else(|| "unknown".to_owned()),
        kinds: vec![Box::new(Hash(Arc::clone(&library))), Box::new(Tree(library))],
    })
}

struct Hash(Arc<Library>);

struct Tree(Arc<Library>);

/// A database, and the functions that close and free it.
struct Opened {
    database: Database,
    close: unsafe extern "C" fn(Database) -> bool,
    delete: unsafe extern "C" fn(Database),
}

impl Drop for Opened {
    fn drop(&mut self) {
        // SAFETY: the database is freed once; closing one that was not opened does nothing.
        unsafe {
            (self.close)(self.database);
            (self.delete)(self.database);
        }
    }
}

impl Hash {
    fn open(&self, path: &Path, mode: c_int, buckets: i64) -> Result<Opened, String> {
        let (library, path) = (&self.0, c_path(path)?);
        // SAFETY: a database is created, tuned before it is opened, and opened at a zero-terminated path.
        unsafe {
            let database = (library.tchdbnew)();
            let opened = Opened { database, close: library.tchdbclose, delete: library.tchdbdel };
            check((library.tchdbtune)(database, buckets, UNCHANGED, UNCHANGED, 0), "tchdbtune")?;
            check((library.tchdbopen)(database, path.as_ptr(), mode), "tchdbopen")?;
            Ok(opened)
        }
    }
}

impl Dictionary for Hash {
    fn settings(&self) -> &'static str {
        "hash, two buckets a record"
    }

    fn write(&self, path: &Path, rows: &Rows) -> Result<(), String> {
        let opened = self.open(path, WRITER | CREATE | TRUNCATE, BUCKETS)?;
        rows.iter().try_for_each(|(key, value)| put(self.0.tchdbput, &opened, key, value))
    }

    fn read_all(&self, path: &Path, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), String> {
        let library = &self.0;
        let opened = self.open(path, READER | NO_LOCK, BUCKETS)?;
        // SAFETY: it is open; the texts are created and deleted here, and hold the record until the next step.
        unsafe {
            check((library.tchdbiterinit)(opened.database), "tchdbiterinit")?;
            let (key, value) = ((library.tcxstrnew)(), (library.tcxstrnew)());
            let text =
                |text: Text| bytes((library.tcxstrptr)(text), (library.tcxstrsize)(text) as usize);
            while (library.tchdbiternext3)(opened.database, key, value) {
                visit(text(key), text(value));
            }
            (library.tcxstrdel)(key);
            (library.tcxstrdel)(value);
        }
        Ok(())
    }

    fn get(&self, path: &Path, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<(), String> {
        let opened = self.open(path, READER | NO_LOCK, BUCKETS)?;
        get_of_hash(&self.0, &opened, key, visit)
    }

    fn keep_open(
        &self,
        path: &Path,
        records: u64,
        sync: Option<Duration>,
    ) -> Option<Result<Box<dyn OpenDictionary>, String>> {
        if sync.is_some() {
            return None;
        }
        let buckets = records.cast_signed() * BUCKETS_PER_RECORD;
        let opened = self.open(path, WRITER | CREATE, buckets);
        let library = Arc::clone(&self.0);
        let put = library.tchdbput;
        let kept = |opened| Box::new(Kept { opened, library, put, get: get_of_hash }) as Box<_>;
        Some(opened.map(kept))
    }
}

/// A function that puts a record.
type Put = unsafe extern "C" fn(Database, *const c_void, c_int, *const c_void, c_int) -> bool;

/// Puts a record into a database of the function's kind.
fn put(function: Put, opened: &Opened, key: &[u8], value: &[u8]) -> Result<(), String> {
    let (start, of_value) = (key.as_ptr().cast(), value.as_ptr().cast());
    // SAFETY: the database is open, and the lengths are those of the slices.
    let is_put = unsafe { function(opened.database, start, int(key), of_value, int(value)) };
    check(is_put, "to put a record")
}

fn get_of_hash(
    library: &Library,
    opened: &Opened,
    key: &[u8],
    visit: &mut dyn FnMut(&[u8]),
) -> Result<(), String> {
    let mut len = 0;
    // SAFETY: the database is open; the value is ours until it is freed, and was allocated by malloc.
    unsafe {
        let value =
            (library.tchdbget)(opened.database, key.as_ptr().cast(), int(key), &raw mut len);
        check(!value.is_null(), NOT_THERE)?;
        visit(bytes(value, len as usize));
        libc::free(value);
    }
    Ok(())
}

fn get_of_tree(
    library: &Library,
    opened: &Opened,
    key: &[u8],
    visit: &mut dyn FnMut(&[u8]),
) -> Result<(), String> {
    let mut len = 0;
    // SAFETY: the database is open; the value stays valid until the next call.
    unsafe {
        let value =
            (library.tcbdbget3)(opened.database, key.as_ptr().cast(), int(key), &raw mut len);
        check(!value.is_null(), NOT_THERE)?;
        visit(bytes(value, len as usize));
    }
    Ok(())
}

/// One of the two functions above.
type Get = fn(&Library, &Opened, &[u8], &mut dyn FnMut(&[u8])) -> Result<(), String>;

/// A file that stays open.
struct Kept {
    opened: Opened,
    library: Arc<Library>,
    put: Put,
    get: Get,
}

impl OpenDictionary for Kept {
    fn put(&mut self, rows: &[(&[u8], &[u8])]) -> Result<(), String> {
        rows.iter().try_for_each(|(key, value)| put(self.put, &self.opened, key, value))
    }

    fn get(&mut self, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<(), String> {
        (self.get)(&self.library, &self.opened, key, visit)
    }
}

impl Tree {
    fn open(&self, path: &Path, mode: c_int) -> Result<Opened, String> {
        let (library, path) = (&self.0, c_path(path)?);
        // SAFETY: a database is created, and opened at a zero-terminated path.
        unsafe {
            let database = (library.tcbdbnew)();
            let opened = Opened { database, close: library.tcbdbclose, delete: library.tcbdbdel };
            check((library.tcbdbopen)(database, path.as_ptr(), mode), "tcbdbopen")?;
            Ok(opened)
        }
    }
}

impl Dictionary for Tree {
    fn settings(&self) -> &'static str {
        "B+ tree"
    }

    fn write(&self, path: &Path, rows: &Rows) -> Result<(), String> {
        let opened = self.open(path, WRITER | CREATE | TRUNCATE)?;
        rows.iter().try_for_each(|(key, value)| put(self.0.tcbdbput, &opened, key, value))
    }

    fn read_all(&self, path: &Path, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), String> {
        let library = &self.0;
        let opened = self.open(path, READER | NO_LOCK)?;
        // SAFETY: the database is open; what a cursor returns stays valid until its next step.
        unsafe {
            let cursor = (library.tcbdbcurnew)(opened.database);
            let mut is_there = (library.tcbdbcurfirst)(cursor);
            while is_there {
                let (mut key_len, mut value_len) = (0, 0);
                let key = (library.tcbdbcurkey3)(cursor, &raw mut key_len);
                let value = (library.tcbdbcurval3)(cursor, &raw mut value_len);
                if key.is_null() || value.is_null() {
                    break;
                }
                visit(bytes(key, key_len as usize), bytes(value, value_len as usize));
                is_there = (library.tcbdbcurnext)(cursor);
            }
            (library.tcbdbcurdel)(cursor);
        }
        Ok(())
    }

    fn get(&self, path: &Path, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<(), String> {
        let opened = self.open(path, READER | NO_LOCK)?;
        get_of_tree(&self.0, &opened, key, visit)
    }

    fn keep_open(
        &self,
        path: &Path,
        _: u64,
        sync: Option<Duration>,
    ) -> Option<Result<Box<dyn OpenDictionary>, String>> {
        if sync.is_some() {
            return None;
        }
        let opened = self.open(path, WRITER | CREATE);
        let library = Arc::clone(&self.0);
        let put = library.tcbdbput;
        let kept = |opened| Box::new(Kept { opened, library, put, get: get_of_tree }) as Box<_>;
        Some(opened.map(kept))
    }
}
