//! The base without LMDB: single records, read from the pages of its file.
//!
//! To open an LMDB environment takes as long as to read some fifty records in this way. Whoever
//! opens a store for less than that is spared it.

use std::{
    path::Path,
    sync::atomic::{AtomicU32, Ordering},
};

use crate::{DatabaseStatistics, ReadError};

use super::{
    DATA_FILE, long_key,
    pages::{Finder, Found, PageDamage, PageFile, Root},
};

/// Most records that are read from pages before LMDB is opened.
const PAGE_READS_MAX: usize = 64;

/// Longest record, or bucket of long keys, that is read from pages, in bytes: it is copied, and
/// LMDB would give it where it is.
const PAGE_READ_LEN_MAX: usize = 64 << 10;

/// What the directory of a base says at a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::tree) struct PageDirectory {
    pub store: u64,
    /// The last transaction that the base holds.
    pub sequence: u64,
    /// LMDB's number of the commit.
    pub commit: u64,
    /// As of [`PageFile::meta_crc`].
    pub meta_crc: u32,
    pub trees: Vec<PageTree>,
}

/// A tree of the engine, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::tree) struct PageTree {
    pub tree: u32,
    /// Of what is known of a root, only where it is counts.
    pub root: Root,
    pub statistics: DatabaseStatistics,
}

/// The base as of the commit that its file is at.
pub(super) struct PageBase {
    finder: Finder<PageFile>,
    trees: Vec<(u32, Root)>,
    pub(super) sequence: u64,
    reads: AtomicU32,
}

/// What pages say of a record.
pub(super) enum PageAnswer {
    Stored(Vec<u8>),
    Absent,
    /// It is for LMDB to answer.
    Unknown,
}

impl From<PageDamage> for ReadError {
    fn from(PageDamage { page, what, is_unread }: PageDamage) -> Self {
        let what = format!("page {page} of data.mdb: {what}");
        match is_unread {
            true => Self::Engine { message: what },
            false => Self::Damaged { what },
        }
    }
}

impl PageBase {
    /// Opens the base in the directory `path`, of which `directory` tells, if its file is at that
    /// commit.
    pub(super) fn open(path: &Path, directory: &PageDirectory) -> Option<Self> {
        let file = PageFile::open(&path.join(DATA_FILE)).ok()?;
        let is_at = (file.commit(), file.meta_crc()) == (directory.commit, directory.meta_crc);
        (is_at && file.damage().is_none()).then(|| Self {
            finder: Finder::new(file),
            trees: directory.trees.iter().map(|tree| (tree.tree, tree.root)).collect(),
            sequence: directory.sequence,
            reads: AtomicU32::new(0),
        })
    }

    pub(super) fn has(&self, tree: u32) -> bool {
        self.root(tree).is_some()
    }

    fn root(&self, tree: u32) -> Option<Root> {
        self.trees.iter().find(|(number, _)| *number == tree).map(|(_, root)| *root)
    }

    /// The stored record under `key`, for the first [`PAGE_READS_MAX`] who ask.
    pub(super) fn find(&self, tree: u32, key: &[u8]) -> Result<PageAnswer, ReadError> {
        let Some(root) = self.root(tree) else { return Ok(PageAnswer::Absent) };
        if self.reads.fetch_add(1, Ordering::Relaxed) as usize >= PAGE_READS_MAX {
            return Ok(PageAnswer::Unknown);
        }
        let found = self.finder.find(root, long_key::tree_key(key), PAGE_READ_LEN_MAX)?;
        Ok(match found {
            None => PageAnswer::Absent,
            Some(Found::TooLong) => PageAnswer::Unknown,
            Some(Found::Value(bytes)) if !long_key::is_long(key) => PageAnswer::Stored(bytes),
            Some(Found::Value(bytes)) => match long_key::find(&bytes, key)? {
                Some(stored) => PageAnswer::Stored(stored.to_vec()),
                None => PageAnswer::Absent,
            },
        })
    }
}
