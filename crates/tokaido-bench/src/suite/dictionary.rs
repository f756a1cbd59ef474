//! The seam for files of keys and values that are used in process: peers are behind it, and ours.

use std::{path::Path, time::Duration};

use super::companies::Rows;

/// A kind of file of keys and values.
pub trait Dictionary {
    /// Its kind, and with what settings it is used.
    fn settings(&self) -> &str;

    /// Whether it is written once, and never changed.
    fn is_constant(&self) -> bool {
        false
    }

    /// Whether it is measured by opening it for some records, and not only when it stays open.
    fn is_opened_often(&self) -> bool {
        true
    }

    /// Makes it anew at `path`, puts all rows, and closes it. Nothing is synced.
    ///
    /// # Errors
    /// What the library says.
    fn write(&self, path: &Path, rows: &Rows) -> Result<(), String>;

    /// Opens it, gives every record to `visit`, in the library's own order and by its fastest way, and closes it.
    ///
    /// # Errors
    /// What the library says.
    fn read_all(&self, path: &Path, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), String>;

    /// Opens it, gives the value of one key to `visit`, and closes it.
    ///
    /// # Errors
    /// What the library says, or that the key is not there.
    fn get(&self, path: &Path, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<(), String>;

    /// Opens it for long, and makes it where there is none; it is tuned to so many records. What is put is synced so often, a
    /// time of zero being each time, or never. `None` if it is not measured so.
    ///
    /// # Errors
    /// What the library says.
    fn keep_open(
        &self,
        _path: &Path,
        _records: u64,
        _sync: Option<Duration>,
    ) -> Option<Result<Box<dyn OpenDictionary>, String>> {
        None
    }
}

/// A file of keys and values that stays open. It is closed with this value.
pub trait OpenDictionary {
    /// Puts records, in one transaction where there are any.
    ///
    /// # Errors
    /// What the library says.
    fn put(&mut self, rows: &[(&[u8], &[u8])]) -> Result<(), String>;

    /// Gives the value of a key to `visit`.
    ///
    /// # Errors
    /// What the library says, or that the key is not there.
    fn get(&mut self, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<(), String>;

    /// Gives records in the order of their keys to `visit`, from this key on, so many or all that come.
    ///
    /// # Errors
    /// What the library says, or that it is not measured so.
    fn scan(
        &mut self,
        _from: &[u8],
        _count: u64,
        _visit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<(), String> {
        Err("its records are not read in order".to_owned())
    }
}

/// For an error: a key that was put is not there.
pub const NOT_THERE: &str = "a key that was put is not there";
