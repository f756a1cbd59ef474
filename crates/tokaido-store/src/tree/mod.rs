//! The durable engine: a log and a memtable before an LMDB file.
//!
//! A transaction writes into the memtable under a number that nobody sees yet. Committing a group appends its
//! operations to the log, syncs once, and publishes the numbers. A checkpoint writes a frozen memtable into the
//! base, in order, or into a run if the base is much larger, and removes its part of the log; runs are merged into
//! the base together. A read looks into the memtable, the frozen one, the runs, and the base.
//!
//! Where to look: docs/file-format.md for the files; `view` for reading them as one; `writer` and `transaction` for
//! the path of a write; `checkpointer` for the thread that writes the base, with `checkpoint`, `run_checkpoint`,
//! `merge` and `recount`; `statistics` for counting records, with `shadows`, without looking each of them up; `shared`
//! for what threads share: what is visible to snapshots, what is durable, and the signal to the checkpointer; `reader`
//! for reading the files of a store that nobody has open.
//!
//! No two modules here need each other: `open` and `upkeep` are above `store`, which is above
//! `writer` and `snapshot`, which are above `transaction`, `shared` and `view`; at the bottom are
//! `base`, `runs`, `log` and `memtable`, of which `base` knows how `runs` are listed.

mod base;
mod catalog;
mod checkpoint;
mod checkpointer;
mod collections;
mod disk;
mod durable;
mod expiring;
mod expiry;
mod files;
#[cfg(any(test, feature = "fuzzing"))]
#[path = "../../tests/checks/store.rs"]
pub(crate) mod fuzzing;
mod keyspaces;
mod live;
mod lock;
mod log;
mod memtable;
mod merge;
mod merge_pace;
mod names;
mod open;
mod options;
mod pace;
mod prefetch;
mod published;
mod read_ahead;
mod reader;
mod recount;
mod retired;
mod run_checkpoint;
mod runs;
mod shadows;
mod shared;
mod signal;
mod snapshot;
mod statistics;
mod store;
mod sweep;
mod tables;
mod totals;
mod transaction;
mod upkeep;
mod upkeep_requests;
mod usage;
mod view;
mod visible;
mod writer;
mod writer_state;

pub(crate) use base::FORMAT_VERSION;
pub(crate) use log::VERSION as LOG_VERSION;
pub use log::{DirectoryStorage, LogFile, LogStorage};
pub use open::{exists, open};
pub use options::{
    CHECKPOINT_PAGES_DEFAULT, CHECKPOINT_RETRY_DEFAULT, DATABASES_DEFAULT,
    ESTIMATED_FROM_RECORDS_DEFAULT, LOG_GROWTH_BYTES_DEFAULT, LOG_LEFT_BYTES_DEFAULT,
    MEMTABLE_BYTES_DEFAULT, Options, RUNS_BYTES_MIN_DEFAULT, RUNS_FROM_BYTES_DEFAULT,
    SIZE_MAX_DEFAULT, SNAPSHOTS_MAX_DEFAULT, SyncMode, SyncModeError, TRANSACTION_BYTES_DEFAULT,
    TRANSACTION_WRITES_DEFAULT,
};
pub use reader::{DatabaseReader, Reader, ReaderError};
pub use store::TreeStore;
pub use upkeep::{
    BackupReport, BaseReport, CheckError, CheckReport, CompactReport, Copier, DatabaseReport,
    FINDINGS_MAX, Finding, LogReport, RunsReport, SalvageReport, UpkeepError, backup, check,
    compact, restore, salvage,
};
