//! What a check has found.

use std::io;

use crate::{DatabaseStatistics, OpenError};

/// Maximum number of findings that a report lists; the others are counted.
pub const FINDINGS_MAX: usize = 100;

/// What is wrong with a store, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Finding {
    /// The log cannot be read beyond this point.
    #[error("log segment {segment}, byte {byte}: {what}")]
    Log {
        /// The number of the segment, which is the name of its file.
        segment: u64,
        /// The byte at which reading ended.
        byte: u64,
        /// What is wrong there.
        what: String,
    },
    /// A page of the base is damaged, or contradicts others.
    #[error("data.mdb, page {page}, {tree}: {what}")]
    Page {
        /// The number of the page. It begins at that many times the length of a page.
        page: u64,
        /// The tree that it belongs to.
        tree: String,
        /// What is wrong with it.
        what: String,
    },
    /// The operating system failed to read a page of the base, so its content is unknown.
    #[error("data.mdb, page {page}, {tree}: it could not be read: {what}")]
    Unread {
        /// The number of the page.
        page: u64,
        /// The tree that it belongs to.
        tree: String,
        /// The error of the operating system.
        what: String,
    },
    /// The directory of the base, or the catalog of databases, contradicts itself or the rest.
    #[error("data.mdb: {what}")]
    Directory {
        /// What is wrong.
        what: String,
    },
    /// A record cannot be read, or is not what it should be.
    #[error("{tree}, key {}: {what}", shown(key))]
    Record {
        /// The tree that it belongs to.
        tree: String,
        /// Its key.
        key: Vec<u8>,
        /// What is wrong with it.
        what: String,
    },
    /// The base's records do not match its statistics.
    #[error(
        "{tree}: its statistics say {} records, {} bytes of keys and {} of values, \
         but there are {}, {} and {}",
        recorded.records, recorded.key_bytes, recorded.value_bytes,
        counted.records, counted.key_bytes, counted.value_bytes
    )]
    Statistics {
        /// The tree that they belong to.
        tree: String,
        /// What the statistics say.
        recorded: DatabaseStatistics,
        /// What was counted.
        counted: DatabaseStatistics,
    },
    /// A record has an expiry, but no entry in the expiry index: nobody will see it once it has
    /// expired, but nothing will remove it.
    #[error(
        "{tree}, key {}: it expires at {expires_at_ms}, but is not in the expiry index",
        shown(key)
    )]
    ExpiryEntry {
        /// The database.
        tree: String,
        /// The record's key.
        key: Vec<u8>,
        /// Its expiry.
        expires_at_ms: u64,
    },
    /// A run, or a part of one, is damaged.
    #[error("runs: {what}")]
    Run {
        /// What is wrong.
        what: String,
    },
    /// Pages that belong to no tree and are not free either; or that are both.
    #[error("data.mdb: {what}")]
    Pages {
        /// What is wrong, and with how many pages.
        what: String,
    },
}

/// A key as text: quoted, with escapes, and shortened if it is long.
fn shown(key: &[u8]) -> String {
    const LEN_MAX: usize = 64;
    match key.len() {
        0..=LEN_MAX => format!("\"{}\"", key.escape_ascii()),
        len => format!("\"{}…\" ({len} bytes)", key[..LEN_MAX].escape_ascii()),
    }
}

/// The result of a check, whether or not the store is sound.
#[derive(Clone, Debug, Default)]
pub struct CheckReport {
    /// What is wrong; at most [`FINDINGS_MAX`].
    pub findings: Vec<Finding>,
    /// How many more findings there were.
    pub findings_more: u64,
    /// Creating the store was interrupted before anybody could write to it. That is no damage:
    /// opening it creates it anew.
    pub is_unfinished: bool,
    /// The contents of LMDB's file.
    pub base: BaseReport,
    /// The contents of the runs.
    pub runs: RunsReport,
    /// The contents of the log.
    pub log: LogReport,
    /// What these add up to, by database, in the order of their indexes. For a damaged store, what
    /// could be read.
    pub databases: Vec<DatabaseReport>,
    /// Entries of the expiry index that no record has any more. They are no damage: they are
    /// removed when they are due.
    pub expiry_entries_stale: u64,
}

/// The contents of LMDB's file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BaseReport {
    /// The last transaction in it.
    pub sequence: u64,
    /// Pages in use.
    pub pages: u64,
    /// Pages that later checkpoints may reuse.
    pub pages_free: u64,
    /// Length of a page, in bytes.
    pub page_len: u64,
}

/// The contents of the runs, which are to be merged into the base.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunsReport {
    /// How many there are.
    pub runs: u64,
    /// Bytes of their files.
    pub bytes: u64,
    /// Records and tombstones; a key in several runs counts several times.
    pub entries: u64,
}

/// The contents of the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogReport {
    /// Its segments.
    pub segments: u64,
    /// Transactions that are not in the base, up to the first damage.
    pub transactions: u64,
    /// Bytes of frames, up to the first damage.
    pub bytes: u64,
    /// Segment and byte where an interrupted write begins. That is no damage: it was not
    /// acknowledged, and opening the store cuts it off.
    pub torn_at: Option<(u64, u64)>,
    /// Whole transactions after the first damage. They cannot be applied, since those before them
    /// are missing.
    pub transactions_behind: u64,
}

/// The contents of a database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DatabaseReport {
    /// Its name.
    pub name: String,
    /// Its records, expired ones included.
    pub statistics: DatabaseStatistics,
    /// The elements of its collections, including those that are still to be removed.
    pub elements: DatabaseStatistics,
    /// How many of its records have an expiry.
    pub expiring: u64,
}

impl Finding {
    pub(super) fn record(tree: &str, key: &[u8], what: impl Into<String>) -> Self {
        Self::Record { tree: tree.to_owned(), key: key.to_vec(), what: what.into() }
    }
}

impl CheckReport {
    /// Whether nothing is wrong.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.findings.is_empty()
    }

    /// A part that could not be read, so that the rest says little about the store.
    pub(in crate::tree) fn unread(&self) -> Option<io::Error> {
        let is_unread = |finding: &&Finding| matches!(finding, Finding::Unread { .. });
        self.findings.iter().find(is_unread).map(|finding| io::Error::other(finding.to_string()))
    }

    pub(in crate::tree) fn add(&mut self, finding: Finding) {
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(finding);
        } else {
            self.findings_more += 1;
        }
    }

    pub(super) fn add_directory(&mut self, what: impl Into<String>) {
        self.add(Finding::Directory { what: what.into() });
    }
}

/// A store could not be checked, so nothing is known about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// There is nothing to check.
    #[error("there is no store in {}", directory.display())]
    NoStore {
        /// The directory.
        directory: std::path::PathBuf,
    },
    /// A process is writing to the store.
    #[error("{} is in use by another tokaido process; stop that one, or take a backup with `tokaido backup` and check that", directory.display())]
    Held {
        /// The store's directory.
        directory: std::path::PathBuf,
    },
    /// It cannot be read, or is of another version.
    #[error(transparent)]
    Open(#[from] OpenError),
}
