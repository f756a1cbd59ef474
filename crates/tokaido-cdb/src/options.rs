//! Options for making a cdb file.

use std::path::PathBuf;

use super::format::FILE_LEN_MAX;

/// How [`Writer`](super::Writer) makes a file.
#[derive(Clone, Debug)]
pub struct Options {
    /// What to do with a key that was put before.
    pub duplicates: Duplicates,
    /// Where the file is built.
    pub temporary: Temporary,
    /// The file's permissions, such as `0o644`, regardless of the umask. By default they are
    /// `0o666` minus the umask.
    pub permissions: Option<u32>,
    /// Whether [`Writer::finish`](super::Writer::finish) waits until the file, and its name, are on
    /// disk. Without it, a power failure soon after may leave an empty file.
    pub sync: bool,
    /// Maximum length of the file with its hash tables, in bytes. Clamped to at least the length of
    /// a file without records (2048) and at most [`FILE_LEN_MAX`].
    pub len_max: u64,
}

impl Default for Options {
    /// Keeps duplicates, builds the file beside the target, syncs.
    fn default() -> Self {
        Self {
            duplicates: Duplicates::Keep,
            temporary: Temporary::Beside,
            permissions: None,
            sync: true,
            len_max: FILE_LEN_MAX,
        }
    }
}

/// What to do with a record whose key was put before. All but [`Duplicates::Keep`] have to look for
/// the key, which costs time and some 20 bytes of memory for each record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Duplicates {
    /// It is added, without looking for the key.
    #[default]
    Keep,
    /// It is added, and [`Put`](super::Put) reports it (`cdb -w`).
    Report,
    /// It is an error (`cdb -e`).
    Refuse,
    /// It is added, and the earlier record is removed from the file (`cdb -r`).
    Replace,
    /// It is added, and the earlier record is overwritten with zeros: a scan of the file still
    /// finds it, with an empty key (`cdb -0`).
    ZeroFill,
    /// It is left out (`cdb -u`).
    KeepFirst,
}

/// Where a file is built before it replaces the target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Temporary {
    /// In a file with a new name in the target's directory.
    #[default]
    Beside,
    /// In this file, which must be on the same file system as the target. An existing file there is
    /// removed first.
    At(PathBuf),
    /// In the target itself, which is removed first: for a caller that renames the file. Readers
    /// refuse it until it is finished.
    None,
}
