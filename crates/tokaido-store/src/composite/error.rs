//! Why databases could not be mounted. Each message says what to do next.

use std::{io, path::PathBuf};

use crate::{DatabaseError, ReadError, cache, cdb, limits};

/// A database could not be mounted beside a store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MountError {
    /// The name has characters or a length that names must not have.
    #[error(transparent)]
    Name(#[from] DatabaseError),
    /// The name is used twice.
    #[error("database {name} is mounted twice; choose another name for one of the two")]
    Twice {
        /// The name.
        name: String,
    },
    /// The store has a database of that name, which would become inaccessible.
    #[error(
        "database {name} has {records} records in the store; choose another name, or delete those records first"
    )]
    Taken {
        /// The name.
        name: String,
        /// The number of records in the store's database.
        records: u64,
    },
    /// More databases are given than a store can mount.
    #[error("{count} databases are too many; at most {max} are mounted beside a store", max = limits::MOUNTS_MAX)]
    TooMany {
        /// The number that was given.
        count: usize,
    },
    /// A cache cannot be made with the given options.
    #[error("database {name}: {source}")]
    Cache {
        /// The database.
        name: String,
        /// What is wrong.
        source: cache::OptionsError,
    },
    /// A file cannot be served.
    #[error("database {name}: {source}")]
    Cdb {
        /// The database.
        name: String,
        /// What is wrong.
        source: cdb::OpenError,
    },
    /// The store's databases could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The thread that checks for replaced files cannot be started.
    #[error("cannot start the thread that looks after {}: {source}", path.display())]
    Thread {
        /// The first of the files.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}
