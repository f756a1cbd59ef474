//! Errors, one enum per kind of operation. Each message says what to do next.

use std::{
    io,
    path::{Path, PathBuf},
};

use crate::{limits, tree};

/// A store could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process (or another handle in this one) has locked the directory.
    #[error("{} is in use by another tokaido process; stop that one, or connect to it instead", directory.display())]
    Locked {
        /// The store's directory.
        directory: PathBuf,
    },
    /// The directory cannot be created, read or written.
    #[error("cannot open the store in {}: {source}; check that the directory exists and that this user may write to it", directory.display())]
    Io {
        /// The store's directory.
        directory: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The directory holds a store whose format version this program does not know.
    #[error("the store in {} has format version {found}, this program knows version {known}; use a tokaido that knows it, or dump and load", directory.display())]
    Version {
        /// The store's directory.
        directory: PathBuf,
        /// The version found.
        found: u32,
        /// The version this program writes.
        known: u32,
    },
    /// The files are there, but are not a store, or are damaged.
    #[error("the store in {0} is damaged: {what}; `tokaido check {0}` says what can be read, and with --salvage NEW saves it; or restore a backup", directory.display())]
    Damaged {
        /// The store's directory.
        directory: PathBuf,
        /// What is wrong.
        what: String,
    },
}

impl OpenError {
    /// A system error about the store in `directory`.
    pub(crate) fn io(directory: &Path) -> impl Fn(io::Error) -> Self {
        |source| Self::Io { directory: directory.to_owned(), source }
    }

    /// The store in `directory` is damaged; `what` says how.
    pub(crate) fn damaged(directory: &Path, what: &dyn ToString) -> Self {
        Self::Damaged { directory: directory.to_owned(), what: what.to_string() }
    }

    /// The base in `directory` has the unknown format version `found`.
    pub(crate) fn version(directory: &Path, found: u32) -> Self {
        Self::Version { directory: directory.to_owned(), found, known: tree::FORMAT_VERSION }
    }

    /// The log in `directory` has the unknown format version `found`.
    pub(crate) fn log_version(directory: &Path, found: u32) -> Self {
        Self::Version { directory: directory.to_owned(), found, known: tree::LOG_VERSION }
    }
}

/// A database name was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DatabaseError {
    /// The name has characters or a length that names must not have.
    #[error("bad database name {name:?}: use 1 to {max} of a-z A-Z 0-9 _ - . with a letter, digit or _ first", max = limits::DATABASE_NAME_LEN_MAX)]
    BadName {
        /// The name as it was given.
        name: String,
    },
    /// The store already has as many databases as it may.
    #[error(
        "the store has {max} databases, which is the limit; put records of one kind into one database, with a prefix, drop databases that are not needed, or raise the limit"
    )]
    TooMany {
        /// The number it may have.
        max: usize,
    },
}

/// A read failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The key has no bytes, or too many.
    #[error("a key has 1 to {max} bytes, this one has {len}")]
    KeyLength {
        /// The length of the key that was given.
        len: usize,
        /// The length that it may have.
        max: usize,
    },
    /// The keys of the database have no order.
    #[error(
        "the database is a cache or a constant one, whose keys have no order: it can be gone through as a whole, but not in reverse or from a key on"
    )]
    Unordered,
    /// The record is of another kind than the operation needs.
    #[error(
        "the key holds a value of another kind; use the operations of that kind, or another key"
    )]
    OtherKind,
    /// The database is ordered, or cannot be read page by page.
    #[error("the database is gone through in the order of its keys, not page by page")]
    NoPages,
    /// A command on a cache reads more keys than can be tracked until it writes.
    #[error("one command on a cache may read {max} keys, this one wants more; split it")]
    TooManyReads {
        /// The number of keys that it may read.
        max: usize,
    },
    /// A scan cannot continue.
    #[error("the file of this database was replaced since the scan began; begin the scan again")]
    CursorLost,
    /// Stored data cannot be decoded.
    #[error(
        "a stored record is damaged: {what}; `tokaido check DATA --salvage NEW` saves what can be read; or restore a backup"
    )]
    Damaged {
        /// What is wrong.
        what: String,
    },
    /// The engine failed.
    #[error("reading failed: {message}")]
    Engine {
        /// What the engine said.
        message: String,
    },
}

impl ReadError {
    #[cold]
    pub(crate) fn damaged(what: impl Into<String>) -> Self {
        Self::Damaged { what: what.into() }
    }
}

/// A write failed. The transaction may continue, but must not be committed as if the write had
/// happened; callers roll it back.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The read that is part of the write failed.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The operation is for bytes, and the record is of another kind.
    #[error("the key holds a hash, list, set, sorted set or stream, where a string is needed")]
    WrongKind,
    /// The value is too long.
    #[error("a value has at most {max} bytes, this one has {len}; split it over several keys")]
    ValueLength {
        /// The length of the value that was given.
        len: usize,
        /// The length that it may have.
        max: usize,
    },
    /// A field of a hash, or a member of a set or a sorted set, is too long.
    #[error(
        "a field or a member has at most {max} bytes, this one has {len}; put what is longer into the value of a field, or under a key of its own"
    )]
    FieldLength {
        /// The length of the text that was given.
        len: usize,
        /// The length that it may have.
        max: usize,
    },
    /// The record is longer than this cache accepts.
    #[error(
        "this cache takes records of at most {max} bytes, this one has {len}; raise its `bytes_max`, lower its `shards`, or split the value over several keys"
    )]
    RecordTooLarge {
        /// The bytes the record would take, with its header.
        len: usize,
        /// The bytes a record may take: half of a shard.
        max: usize,
    },
    /// The transaction writes more than a transaction may.
    #[error(
        "one transaction may write {writes_max} records and {bytes_max} bytes, this one wants more; split the work"
    )]
    TransactionTooLarge {
        /// The number of records that it may write.
        writes_max: usize,
        /// The number of bytes of keys and values that it may write.
        bytes_max: usize,
    },
    /// The database is a read-only file.
    #[error(
        "a constant database (cdb) is not written to; make a new file with `tokaido cdb make`, and rename it over the one that is served"
    )]
    ReadOnly,
    /// The database holds records of bytes only.
    #[error(
        "this holds values of bytes only: put hashes, lists, sets, sorted sets and streams into a database of the tree engine"
    )]
    BytesOnly,
    /// The record has the id of a collection that belongs to another key.
    #[error(
        "the collection belongs to another key: rename that key, or copy the elements to a new collection"
    )]
    ForeignCollection,
    /// The transaction creates more collections than a transaction may.
    #[error("one transaction may make {max} collections; split the work", max = limits::TRANSACTION_COLLECTIONS_MAX)]
    TooManyCollections,
    /// The record changed between read and write, on every attempt.
    #[error("others changed the record each time it was to be written; try again")]
    Raced,
    /// The name is invalid, or there are too many databases.
    #[error(transparent)]
    Name(#[from] DatabaseError),
    /// The database no longer exists.
    #[error("the database was dropped meanwhile; ask for it by its name again")]
    Dropped,
    /// The database is a mounted one.
    #[error(
        "a cache or constant database cannot be dropped: take it out of [databases] in the configuration"
    )]
    Mounted,
    /// Another writer exists: a store has one at a time.
    #[error("the store has a writer already; wait until it is dropped")]
    WriterBusy,
    /// After an earlier failure, it is unknown what is on disk.
    #[error(
        "the store refuses writes since an earlier failure ({why}); restart it, so that it reads again what is on disk"
    )]
    Poisoned {
        /// The failure that came first.
        why: String,
    },
    /// The engine failed.
    #[error("writing failed: {message}")]
    Engine {
        /// What the engine said.
        message: String,
    },
}

/// A transaction was not committed, except for [`CommitError::Undetermined`].
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommitError {
    /// Another transaction changed what this one read; run it again from the top.
    #[error("the transaction collided with another one; run it again")]
    Conflict,
    /// The disk is full. Nothing was committed; writes succeed again once there is space.
    #[error("the disk is full: nothing was written; free some space and try again")]
    DiskFull,
    /// Writing failed. Nothing was committed.
    #[error("the commit failed, nothing was written: {message}")]
    Failed {
        /// What the system or the engine said.
        message: String,
    },
    /// Syncing failed, so what is on disk is unknown. The store refuses writes from here on.
    #[error(
        "syncing to disk failed ({message}): it is unknown whether this was written, and the store refuses writes until it is restarted"
    )]
    Undetermined {
        /// What the system or the engine said.
        message: String,
    },
}

/// [`crate::transact`] failed: the body returned an error, or the store did.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransactError<E> {
    /// The body's own error. Nothing was committed.
    #[error(transparent)]
    Body(E),
    /// The transaction could not begin or be rolled back.
    #[error(transparent)]
    Write(WriteError),
    /// The transaction could not be committed.
    #[error(transparent)]
    Commit(CommitError),
}
