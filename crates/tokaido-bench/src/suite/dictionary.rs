//! The seam for files of keys and values that are used in process: peers are behind it, and ours.

use std::path::Path;

use super::companies::Rows;

/// A kind of file of keys and values.
pub trait Dictionary {
    /// Its kind, and with what settings it is used.
    fn settings(&self) -> &str;

    /// Whether it is written once, and never changed.
    fn is_constant(&self) -> bool {
        false
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
}

/// For an error: a key that was put is not there.
pub const NOT_THERE: &str = "a key that was put is not there";
