//! Errors with constant databases. Each message says what to do next.

use std::{io, path::PathBuf};

use super::format::FILE_LEN_MAX;

/// A file is not a cdb file, or is damaged or cut short.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no sound cdb file: {what} at byte {position}; make the file anew from its source")]
pub struct Damaged {
    /// What is wrong.
    pub what: &'static str,
    /// Where in the file, in bytes.
    pub position: u64,
}

/// A file could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The file is missing or cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is not a cdb file, or is damaged or cut short.
    #[error("{}: {source}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        source: Damaged,
    },
}

/// A file could not be made. The target is unchanged, except with [`MakeError::NotSynced`] and with
/// [`Temporary::None`](super::Temporary::None), which removes the old target at the start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MakeError {
    /// The file cannot be created or written.
    #[error("cannot write {}: {source}; the file was not made", path.display())]
    Io {
        /// The file that was written to: the temporary one, or the target.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file would be larger than the format allows. The record was not accepted; those before
    /// it were, and the file can be finished with them.
    #[error(
        "record {record} would make the file {len} bytes long, and the most is {len_max} \
         (the format has at most {FILE_LEN_MAX}); divide the records over several files"
    )]
    TooLarge {
        /// The record's number; the first is 1.
        record: u64,
        /// The length that the whole file would have with it.
        len: u64,
        /// The limit.
        len_max: u64,
    },
    /// The key is there already, and [`Duplicates::Refuse`](super::Duplicates::Refuse) was set. The
    /// record was not accepted.
    #[error(
        "record {record} has the key {key:?}, which is there already; remove one of the two, or \
         choose which to keep"
    )]
    Duplicate {
        /// The record's number; the first is 1.
        record: u64,
        /// The key, shortened, with replacement characters where it is not text.
        key: String,
    },
    /// The permissions are not valid for a file.
    #[error("{permissions:#o} are no permissions of a file; the most is 0o777")]
    BadPermissions {
        /// The permissions that were given.
        permissions: u32,
    },
    /// An earlier call failed, so the contents of the temporary file are unknown.
    #[error("an earlier write to {} failed; begin again", path.display())]
    Broken {
        /// The file that was written to.
        path: PathBuf,
    },
    /// The new file is in its place, but whether it stays there after a power failure is unknown.
    #[error(
        "{} is in its place, but its directory could not be synced ({source}); after a power \
         failure the old file may be there again",
        path.display()
    )]
    NotSynced {
        /// The target.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Maximum number of characters of a key that a message shows.
const SHOWN_KEY_LEN_MAX: usize = 60;

/// A key for a message: shortened, with replacement characters where it is not text.
#[must_use]
pub fn shown_key(key: &[u8]) -> String {
    // A character has at most 4 bytes; a key of megabytes need not be looked at as a whole.
    let start = &key[..key.len().min(4 * SHOWN_KEY_LEN_MAX)];
    let mut text: String = String::from_utf8_lossy(start).chars().take(SHOWN_KEY_LEN_MAX).collect();
    if text.len() < key.len() {
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_key_is_shortened_in_messages() {
        assert_eq!(shown_key("東京".as_bytes()), "東京");
        assert_eq!(shown_key(&[b'k'; 60]), "k".repeat(60));
        assert_eq!(shown_key(&[b'k'; 61]), "k".repeat(60) + "…");
        assert_eq!(shown_key(b"\xff"), "\u{fffd}");
    }
}
