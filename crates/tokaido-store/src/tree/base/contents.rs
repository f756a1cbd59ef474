//! What a base holds as a whole, and how it is opened.

use std::io;

use crate::{DatabaseStatistics, ReadError};

use super::{lmdb::LmdbError, page_base::PageDirectory};

#[derive(Clone, Copy)]
pub(in crate::tree) struct BaseOptions {
    pub size_max: usize,
    pub views_max: u32,
}

/// What a base holds as a whole.
pub(in crate::tree) struct BaseContents {
    /// The last transaction in it.
    pub sequence: u64,
    /// Its trees.
    pub trees: Vec<(u32, DatabaseStatistics)>,
}

impl From<&PageDirectory> for BaseContents {
    fn from(directory: &PageDirectory) -> Self {
        let trees = directory.trees.iter().map(|tree| (tree.tree, tree.statistics)).collect();
        Self { sequence: directory.sequence, trees }
    }
}

#[derive(Debug)]
pub(in crate::tree) enum BaseOpenError {
    Io(io::Error),
    Lmdb(LmdbError),
    Version(u32),
    Damaged(&'static str),
}

impl From<LmdbError> for BaseOpenError {
    fn from(error: LmdbError) -> Self {
        Self::Lmdb(error)
    }
}

impl From<io::Error> for BaseOpenError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Of a base that is opened when somebody first reads from it.
impl From<BaseOpenError> for ReadError {
    fn from(error: BaseOpenError) -> Self {
        match error {
            // What LMDB says when it opens a file, and not the system, is said of the file.
            BaseOpenError::Lmdb(error) if error.is_of_file() => {
                Self::Damaged { what: error.to_string() }
            }
            BaseOpenError::Lmdb(error) => error.into(),
            BaseOpenError::Io(error) => Self::Engine { message: error.to_string() },
            BaseOpenError::Damaged(what) => Self::Damaged { what: what.to_owned() },
            BaseOpenError::Version(_) => {
                Self::Damaged { what: "the version of the base has changed".to_owned() }
            }
        }
    }
}

impl From<BaseOpenError> for io::Error {
    fn from(error: BaseOpenError) -> Self {
        match error {
            BaseOpenError::Io(error) => error,
            BaseOpenError::Lmdb(error) => error.into(),
            error @ (BaseOpenError::Damaged(_) | BaseOpenError::Version(_)) => {
                Self::other(ReadError::from(error))
            }
        }
    }
}
