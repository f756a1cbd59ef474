//! RocksDB, with its defaults.

use std::{
    ffi::{CStr, c_char, c_void},
    path::Path,
    ptr,
    sync::Arc,
    time::{Duration, Instant},
};

use super::{Found, bytes, c_path, functions};
use crate::suite::{
    companies::Rows,
    dictionary::{Dictionary, NOT_THERE, OpenDictionary},
};

type Database = *mut c_void;
type Options = *mut c_void;
type Batch = *mut c_void;
type Iterator = *mut c_void;
type Pinned = *mut c_void;
/// Where the text of an error is stored.
type Error = *mut *mut c_char;

functions!(Library {
    rocksdb_options_create: fn() -> Options;
    rocksdb_options_destroy: fn(Options);
    rocksdb_options_set_create_if_missing: fn(Options, u8);
    rocksdb_readoptions_create: fn() -> Options;
    rocksdb_readoptions_destroy: fn(Options);
    rocksdb_writeoptions_create: fn() -> Options;
    rocksdb_writeoptions_destroy: fn(Options);
    rocksdb_writeoptions_set_sync: fn(Options, u8);
    rocksdb_open: fn(Options, *const c_char, Error) -> Database;
    rocksdb_close: fn(Database);
    rocksdb_writebatch_create: fn() -> Batch;
    rocksdb_writebatch_destroy: fn(Batch);
    rocksdb_writebatch_clear: fn(Batch);
    rocksdb_writebatch_put: fn(Batch, *const c_char, usize, *const c_char, usize);
    rocksdb_write: fn(Database, Options, Batch, Error);
    rocksdb_flush_wal: fn(Database, u8, Error);
    rocksdb_get_pinned: fn(Database, Options, *const c_char, usize, Error) -> Pinned;
    rocksdb_pinnableslice_value: fn(Pinned, *mut usize) -> *const c_char;
    rocksdb_pinnableslice_destroy: fn(Pinned);
    rocksdb_create_iterator: fn(Database, Options) -> Iterator;
    rocksdb_iter_destroy: fn(Iterator);
    rocksdb_iter_seek: fn(Iterator, *const c_char, usize);
    rocksdb_iter_next: fn(Iterator);
    rocksdb_iter_valid: fn(Iterator) -> u8;
    rocksdb_iter_key: fn(Iterator, *mut usize) -> *const c_char;
    rocksdb_iter_value: fn(Iterator, *mut usize) -> *const c_char;
    rocksdb_iter_get_error: fn(Iterator, Error);
    rocksdb_free: fn(*mut c_void);
});

/// Names of the library, and the version of each: it reports its version only to C++.
const NAMES: [(&str, &str); 2] = [("librocksdb.so.7.8", "7.8"), ("librocksdb.so.9.10", "9.10")];

pub(super) fn find() -> Option<Found> {
    NAMES.iter().find_map(|&(name, version)| {
        let library = Arc::new(Library::load(&[name])?);
        let version = version.to_owned();
        Some(Found { name, version, kinds: vec![Box::new(RocksDb(library))] })
    })
}

struct RocksDb(Arc<Library>);

impl Library {
    /// The result of `call`, unless it leaves an error text.
    fn checked<T>(&self, call: impl FnOnce(Error) -> T) -> Result<T, String> {
        let mut error: *mut c_char = ptr::null_mut();
        let result = call(&raw mut error);
        if error.is_null() {
            return Ok(result);
        }
        // SAFETY: it is a text that belongs to the caller, who frees it.
        unsafe {
            let text = CStr::from_ptr(error).to_string_lossy().into_owned();
            (self.rocksdb_free)(error.cast());
            Err(text)
        }
    }

    fn open(self: &Arc<Self>, path: &Path, sync: Option<Duration>) -> Result<Opened, String> {
        let path = c_path(path)?;
        // SAFETY: the options exist while the database is opened, which copies them.
        let database = unsafe {
            let options = (self.rocksdb_options_create)();
            (self.rocksdb_options_set_create_if_missing)(options, 1);
            let database = self.checked(|error| (self.rocksdb_open)(options, path.as_ptr(), error));
            (self.rocksdb_options_destroy)(options);
            database?
        };
        // SAFETY: these create values that belong to the caller.
        unsafe {
            let write = (self.rocksdb_writeoptions_create)();
            let is_each = sync.is_some_and(|sync| sync.is_zero());
            (self.rocksdb_writeoptions_set_sync)(write, u8::from(is_each));
            Ok(Opened {
                library: Arc::clone(self),
                database,
                read: (self.rocksdb_readoptions_create)(),
                write,
                batch: (self.rocksdb_writebatch_create)(),
                sync: sync.filter(|sync| !sync.is_zero()),
                synced: Instant::now(),
            })
        }
    }
}

struct Opened {
    library: Arc<Library>,
    database: Database,
    read: Options,
    write: Options,
    batch: Batch,
    /// The interval of log syncs, and the time of the last one, unless each write is synced, or none.
    sync: Option<Duration>,
    synced: Instant,
}

impl Drop for Opened {
    fn drop(&mut self) {
        let library = &self.library;
        // SAFETY: what was created is freed once.
        unsafe {
            (library.rocksdb_writebatch_destroy)(self.batch);
            (library.rocksdb_writeoptions_destroy)(self.write);
            (library.rocksdb_readoptions_destroy)(self.read);
            (library.rocksdb_close)(self.database);
        }
    }
}

impl OpenDictionary for Opened {
    fn put(&mut self, rows: &[(&[u8], &[u8])]) -> Result<(), String> {
        let library = &self.library;
        // SAFETY: the database and the batch exist; the lengths are those of the slices, which the batch copies.
        unsafe {
            (library.rocksdb_writebatch_clear)(self.batch);
            for (key, value) in rows {
                let (key_at, value_at) = (key.as_ptr().cast(), value.as_ptr().cast());
                (library.rocksdb_writebatch_put)(
                    self.batch,
                    key_at,
                    key.len(),
                    value_at,
                    value.len(),
                );
            }
            let (database, write, batch) = (self.database, self.write, self.batch);
            library.checked(|error| (library.rocksdb_write)(database, write, batch, error))?;
            if self.sync.is_some_and(|sync| self.synced.elapsed() >= sync) {
                self.synced = Instant::now();
                library.checked(|error| (library.rocksdb_flush_wal)(database, 1, error))?;
            }
        }
        Ok(())
    }

    fn get(&mut self, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<(), String> {
        let library = &self.library;
        // SAFETY: the database exists; what is found stays valid until it is destroyed.
        unsafe {
            let (database, read, get) = (self.database, self.read, library.rocksdb_get_pinned);
            let found = library
                .checked(|error| get(database, read, key.as_ptr().cast(), key.len(), error))?;
            if found.is_null() {
                return Err(NOT_THERE.to_owned());
            }
            let mut len = 0;
            let value = (library.rocksdb_pinnableslice_value)(found, &raw mut len);
            visit(bytes(value.cast(), len));
            (library.rocksdb_pinnableslice_destroy)(found);
        }
        Ok(())
    }

    fn scan(
        &mut self,
        from: &[u8],
        count: u64,
        visit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<(), String> {
        let library = &self.library;
        // SAFETY: the database exists; what an iterator returns stays valid until it moves.
        unsafe {
            let iterator = (library.rocksdb_create_iterator)(self.database, self.read);
            (library.rocksdb_iter_seek)(iterator, from.as_ptr().cast(), from.len());
            let mut left = count;
            while left > 0 && (library.rocksdb_iter_valid)(iterator) != 0 {
                let (mut key_len, mut value_len) = (0, 0);
                let key = (library.rocksdb_iter_key)(iterator, &raw mut key_len);
                let value = (library.rocksdb_iter_value)(iterator, &raw mut value_len);
                visit(bytes(key.cast(), key_len), bytes(value.cast(), value_len));
                (library.rocksdb_iter_next)(iterator);
                left -= 1;
            }
            let ended = library.checked(|error| (library.rocksdb_iter_get_error)(iterator, error));
            (library.rocksdb_iter_destroy)(iterator);
            ended
        }
    }
}

impl Dictionary for RocksDb {
    fn settings(&self) -> &'static str {
        "its defaults"
    }

    /// It creates threads, and several files.
    fn is_opened_often(&self) -> bool {
        false
    }

    fn write(&self, path: &Path, rows: &Rows) -> Result<(), String> {
        let rows: Vec<_> = rows.iter().map(|(key, value)| (&key[..], &value[..])).collect();
        self.0.open(path, None)?.put(&rows)
    }

    fn read_all(&self, path: &Path, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), String> {
        self.0.open(path, None)?.scan(b"", u64::MAX, visit)
    }

    fn get(&self, path: &Path, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<(), String> {
        self.0.open(path, None)?.get(key, visit)
    }

    fn keep_open(
        &self,
        path: &Path,
        _records: u64,
        sync: Option<Duration>,
    ) -> Option<Result<Box<dyn OpenDictionary>, String>> {
        Some(self.0.open(path, sync).map(|opened| Box::new(opened) as Box<_>))
    }
}
