//! The durable engine: a log and a memtable before an LMDB file.
//!
//! A transaction writes into the memtable under a number that nobody sees yet. Committing a group
//! appends its operations to the log, syncs once, and publishes the numbers. A checkpoint moves a
//! frozen memtable into the base, in order, and drops its part of the log. A read looks into the
//! memtable, the frozen one, and the base.
//!
//! Where to look: docs/file-format.md for the files; `view` for reading the three as one; `writer`
//! and `transaction` for the way of a write; `checkpoint` for the way into the base; `accounts` for
//! how records are counted without looking each of them up.

mod accounts;
mod backup;
mod base;
mod catalog;
mod check;
mod checkpoint;
mod compact;
mod expiry;
mod files;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
mod lock;
mod log;
mod memtable;
mod open;
mod options;
mod prefetch;
mod salvage;
mod seal;
mod shared;
mod snapshot;
mod store;
mod transaction;
mod usage;
mod view;
mod writer;

pub use backup::{BackupError, BackupReport, RestoreError, backup, restore};
pub use check::{
    BaseReport, CheckError, CheckReport, DatabaseReport, FINDINGS_MAX, Finding, LogReport, check,
};
pub use compact::{CompactError, CompactReport, compact};
pub use log::{DirectoryStorage, LogFile, LogStorage};
pub use open::{exists, open};
pub use options::{
    CHECKPOINT_RETRY_DEFAULT, LOG_GROWTH_BYTES_DEFAULT, LOG_LEFT_BYTES_DEFAULT,
    MEMTABLE_BYTES_DEFAULT, Options, SIZE_MAX_DEFAULT, SNAPSHOTS_MAX_DEFAULT, SyncMode,
    SyncModeError, TRANSACTION_BYTES_DEFAULT, TRANSACTION_WRITES_DEFAULT,
};
pub use salvage::{SalvageError, SalvageReport, salvage};
pub use store::TreeStore;
