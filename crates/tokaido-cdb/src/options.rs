//! How a cdb file is made.

use std::path::PathBuf;

use super::format::FILE_LEN_MAX;

/// How [`Writer`](super::Writer) makes a file.
#[derive(Clone, Debug)]
pub struct Options {
    /// What to do with a key that was put before.
    pub duplicates: Duplicates,
    /// Where the file is built.
    pub temporary: Temporary,
    /// The file's permissions, such as `0o644`, whatever the umask. Without them it gets `0o666`
    /// less the umask.
    pub permissions: Option<u32>,
    /// Whether [`Writer::finish`](super::Writer::finish) waits until the file, and its name, are on
    /// disk. Without it, a power failure soon after may leave an empty file.
    pub sync: bool,
    /// Maximum length of the file with its hash tables, in bytes. More than [`FILE_LEN_MAX`] counts as that, and
    /// less than a file without records has (2048) as this.
    pub len_max: u64,
}

impl Default for Options {
    /// Keeps duplicates, builds beside the target, syncs.
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

/// What becomes of a record whose key was put before. All but [`Duplicates::Keep`] need to look for
/// the key, which costs some 20 bytes of memory for each record, and time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Duplicates {
    /// It is added, and nobody looks.
    #[default]
    Keep,
    /// It is added, and [`Put`](super::Put) tells (`cdb -w`).
    Report,
    /// It is an error (`cdb -e`).
    Refuse,
    /// It is added, and the earlier record is taken out of the file (`cdb -r`).
    Replace,
    /// It is added, and the earlier record is overwritten with zeros: a scan of the file still
    /// finds it, with an empty key (`cdb -0`).
    ZeroFill,
    /// It is left out (`cdb -u`).
    KeepFirst,
}

/// Where a file is built before it takes the target's place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Temporary {
    /// In a file of a new name in the target's directory.
    #[default]
    Beside,
    /// In this file, which must be in the same file system as the target. A file that is there is
    /// removed first.
    At(PathBuf),
    /// In the target itself, which is removed first: for a caller that renames the file. Readers
    /// refuse it until it is finished.
    None,
}
