//! The interface of key-value files that are used in process, for peers and for ours.

use std::{path::Path, time::Duration};

use super::companies::Rows;

/// A kind of key-value file.
pub trait Dictionary {
    /// Its kind, and the settings it is used with.
    fn settings(&self) -> &str;

    /// Whether it is written once and never changed.
    fn is_constant(&self) -> bool {
        false
    }

    /// Whether it is also measured by opening it for a few records, and not only when it stays open.
    fn is_opened_often(&self) -> bool {
        true
    }

    /// Creates it anew at `path`, puts all rows, and closes it. Nothing is synced.
    ///
    /// # Errors
    /// The library's error message.
    fn write(&self, path: &Path, rows: &Rows) -> Result<(), String>;

    /// Opens it, passes every record to `visit`, in the library's own order and in its fastest way, and closes it.
    ///
    /// # Errors
    /// The library's error message.
    fn read_all(&self, path: &Path, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), String>;

    /// Opens it, passes the value of one key to `visit`, and closes it.
    ///
    /// # Errors
    /// The library's error message, or that the key is missing.
    fn get(&self, path: &Path, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<(), String>;

    /// Opens or creates it to stay open, tuned to `_records` records. Writes are synced at intervals of `_sync`, zero being
    /// after each one and `None` never. Returns `None` if it is not measured like this.
    ///
    /// # Errors
    /// The library's error message.
    fn keep_open(
        &self,
        _path: &Path,
        _records: u64,
        _sync: Option<Duration>,
    ) -> Option<Result<Box<dyn OpenDictionary>, String>> {
        None
    }
}

/// A key-value file that stays open. Dropping this value closes it.
pub trait OpenDictionary {
    /// Puts records, in one transaction if the library has any.
    ///
    /// # Errors
    /// The library's error message.
    fn put(&mut self, rows: &[(&[u8], &[u8])]) -> Result<(), String>;

    /// Passes the value of a key to `visit`.
    ///
    /// # Errors
    /// The library's error message, or that the key is missing.
    fn get(&mut self, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<(), String>;

    /// Passes records to `visit` in key order, from `_from` on, until there are `_count` or no more.
    ///
    /// # Errors
    /// The library's error message, or that it is not measured like this.
    fn scan(
        &mut self,
        _from: &[u8],
        _count: u64,
        _visit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<(), String> {
        Err("its records are not read in order".to_owned())
    }
}

/// Error message: a key that was put is missing.
pub const NOT_THERE: &str = "a key that was put is not there";
