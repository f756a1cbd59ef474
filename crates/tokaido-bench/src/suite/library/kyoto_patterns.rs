//! The loop patterns with Kyoto Cabinet's tree, through its C interface: `scripts/patterns/loops.lua`, step by step.

use std::{
    ffi::{CString, c_char, c_void},
    path::Path,
    ptr,
};

use super::{bytes, c_path, check, functions};

type Database = *mut c_void;
type Cursor = *mut c_void;

functions!(Library {
    kcdbnew: fn() -> Database;
    kcdbdel: fn(Database);
    kcdbopen: fn(Database, *const c_char, u32) -> i32;
    kcdbclose: fn(Database) -> i32;
    kcdbclear: fn(Database) -> i32;
    kcdbset: fn(Database, *const c_char, usize, *const c_char, usize) -> i32;
    kcdbadd: fn(Database, *const c_char, usize, *const c_char, usize) -> i32;
    kcdbreplace: fn(Database, *const c_char, usize, *const c_char, usize) -> i32;
    kcdbappend: fn(Database, *const c_char, usize, *const c_char, usize) -> i32;
    kcdbremove: fn(Database, *const c_char, usize) -> i32;
    kcdbincrint: fn(Database, *const c_char, usize, i64, i64) -> i64;
    kcdbcas: fn(Database, *const c_char, usize, *const c_char, usize, *const c_char, usize) -> i32;
    kcdbget: fn(Database, *const c_char, usize, *mut usize) -> *mut c_char;
    kcdbcursor: fn(Database) -> Cursor;
    kccurdel: fn(Cursor);
    kccurjump: fn(Cursor) -> i32;
    kccurjumpback: fn(Cursor) -> i32;
    kccurstepback: fn(Cursor) -> i32;
    kccurget: fn(Cursor, *mut usize, *mut *const c_char, *mut usize, i32) -> *mut c_char;
    kcfree: fn(*mut c_void);
});

// From kclangc.h.
const WRITER_CREATE_TRUNCATE: u32 = (1 << 1) | (1 << 2) | (1 << 3);

/// An open tree.
pub(in crate::suite) struct Patterns {
    library: Library,
    database: Database,
    state: u64,
}

impl Drop for Patterns {
    fn drop(&mut self) {
        // SAFETY: the database is freed once; closing one that was not opened does nothing.
        unsafe {
            (self.library.kcdbclose)(self.database);
            (self.library.kcdbdel)(self.database);
        }
    }
}

/// A function that takes a key and a value.
type Put = unsafe extern "C" fn(Database, *const c_char, usize, *const c_char, usize) -> i32;

impl Patterns {
    /// Creates a tree at `path`, with the library's defaults.
    pub(in crate::suite) fn open(path: &Path) -> Result<Self, String> {
        let library = Library::load(&["libkyotocabinet.so.16"]).ok_or("the library is gone")?;
        let path = [c_path(path)?.as_bytes(), b"#type=kct"].concat();
        let path = CString::new(path).map_err(|error| error.to_string())?;
        // SAFETY: a database is created, and opened at a zero-terminated path.
        unsafe {
            let database = (library.kcdbnew)();
            let patterns = Self { library, database, state: 0 };
            let open = patterns.library.kcdbopen;
            check(open(database, path.as_ptr(), WRITER_CREATE_TRUNCATE) != 0, "kcdbopen")?;
            Ok(patterns)
        }
    }

    /// Runs a pattern in the empty tree, and returns its sum.
    pub(in crate::suite) fn run(&mut self, pattern: &str, n: u64) -> Result<u64, String> {
        self.state = 88_675_123;
        match pattern.strip_prefix("wicked") {
            Some(iterations) => {
                let iterations: u64 = iterations.parse().map_err(|_| "no such pattern")?;
                Ok(self.wicked(n, iterations))
            }
            None => Ok(self.order(
                n,
                ["random", "both"].contains(&pattern),
                ["etc", "both"].contains(&pattern),
            )),
        }
    }

    /// Removes all records.
    pub(in crate::suite) fn clear(&mut self) -> Result<(), String> {
        // SAFETY: the database is open.
        check(unsafe { (self.library.kcdbclear)(self.database) } != 0, "kcdbclear")
    }

    fn draw(&mut self, n: u64) -> u64 {
        self.state = self.state * 16_807 % 2_147_483_647;
        self.state % n
    }

    fn put(&self, put: Put, key: &[u8], value: &[u8]) -> u64 {
        // SAFETY: the database is open, and the lengths are those of the slices.
        let code = unsafe {
            put(self.database, key.as_ptr().cast(), key.len(), value.as_ptr().cast(), value.len())
        };
        u64::from(code != 0)
    }

    fn remove(&self, key: &[u8]) -> u64 {
        // SAFETY: the database is open, and the length is that of the slice.
        u64::from(
            unsafe { (self.library.kcdbremove)(self.database, key.as_ptr().cast(), key.len()) }
                != 0,
        )
    }

    /// The result of `with` for a value; 0 if there is none.
    fn get(&self, key: &[u8], with: impl FnOnce(&[u8]) -> u64) -> u64 {
        let mut len = 0;
        // SAFETY: the database is open; the value is ours until it is freed.
        unsafe {
            let value =
                (self.library.kcdbget)(self.database, key.as_ptr().cast(), key.len(), &raw mut len);
            if value.is_null() {
                return 0;
            }
            let result = with(bytes(value.cast(), len));
            (self.library.kcfree)(value.cast());
            result
        }
    }

    fn len(&self, key: &[u8]) -> u64 {
        self.get(key, |value| value.len() as u64)
    }

    /// The total length of the record under a cursor, which then moves on if `step` is set.
    fn under(&self, cursor: Cursor, step: bool) -> Option<u64> {
        let (mut key_len, mut value, mut value_len) = (0, ptr::null(), 0);
        // SAFETY: the cursor exists; the key it returns is ours until it is freed.
        unsafe {
            let get = self.library.kccurget;
            let key =
                get(cursor, &raw mut key_len, &raw mut value, &raw mut value_len, step.into());
            if key.is_null() {
                return None;
            }
            (self.library.kcfree)(key.cast());
        }
        Some((key_len + value_len) as u64)
    }

    fn scan(&self) -> u64 {
        let mut sum = 0;
        // SAFETY: the database is open; the cursor is deleted after the scan.
        unsafe {
            let cursor = (self.library.kcdbcursor)(self.database);
            (self.library.kccurjump)(cursor);
            while let Some(len) = self.under(cursor, true) {
                sum += len;
            }
            (self.library.kccurjumpback)(cursor);
            while let Some(len) = self.under(cursor, false) {
                sum += len;
                (self.library.kccurstepback)(cursor);
            }
            (self.library.kccurdel)(cursor);
        }
        sum
    }

    fn order(&mut self, n: u64, is_random: bool, has_etc: bool) -> u64 {
        let mut sum = 0;
        let mut each = |this: &mut Self, step: &dyn Fn(&Self, &[u8]) -> u64| {
            for i in 1..=n {
                let number = if is_random { this.draw(n) + 1 } else { i };
                sum += step(this, number.to_string().as_bytes());
            }
        };
        each(self, &|this, key| {
            this.put(this.library.kcdbset, key, key);
            0
        });
        if has_etc {
            each(self, &|this, key| this.put(this.library.kcdbadd, key, key));
            each(self, &|this, key| {
                this.put(this.library.kcdbappend, key, key);
                0
            });
        }
        each(self, &Self::len);
        let scanned = if has_etc { self.scan() } else { 0 };
        each(self, &Self::remove);
        sum + scanned
    }

    fn wicked(&mut self, n: u64, iterations: u64) -> u64 {
        let mut sum = 0;
        // SAFETY: the database is open; the cursor is deleted at the end.
        let cursor = unsafe {
            let cursor = (self.library.kcdbcursor)(self.database);
            (self.library.kccurjump)(cursor);
            cursor
        };
        for _ in 0..n * iterations {
            let key = (self.draw(n) + 1).to_string();
            let key = key.as_bytes();
            sum += match self.draw(12) {
                0 => {
                    self.put(self.library.kcdbset, key, key);
                    0
                }
                1 => self.put(self.library.kcdbadd, key, key),
                2 => self.put(self.library.kcdbreplace, key, key),
                3 => {
                    self.put(self.library.kcdbappend, key, key);
                    0
                }
                4 => {
                    let by = self.draw(10) as i64;
                    self.increment(&[b"#", key].concat(), by)
                }
                5 => self.compare_and_set(key),
                6 => self.remove(key),
                7 => self.get(key, |value| {
                    self.put(self.library.kcdbset, key, &[value, b"+"].concat());
                    0
                }),
                8 => {
                    if self.under(cursor, true).is_none() {
                        // SAFETY: the cursor exists.
                        unsafe { (self.library.kccurjump)(cursor) };
                    }
                    0
                }
                _ => self.len(key),
            };
        }
        // SAFETY: the cursor is not used any more.
        unsafe { (self.library.kccurdel)(cursor) };
        sum
    }

    fn increment(&self, key: &[u8], by: i64) -> u64 {
        let increment = self.library.kcdbincrint;
        // SAFETY: the database is open, and the length is that of the slice.
        let sum = unsafe { increment(self.database, key.as_ptr().cast(), key.len(), by, 0) };
        u64::try_from(sum).unwrap_or(0)
    }

    fn compare_and_set(&self, key: &[u8]) -> u64 {
        let (start, len) = (key.as_ptr().cast(), key.len());
        // SAFETY: the database is open, and the lengths are those of the slice.
        let code =
            unsafe { (self.library.kcdbcas)(self.database, start, len, start, len, start, len) };
        u64::from(code != 0)
    }
}
