//! Runs: sorted files that checkpoints have written from memtables and that are not in the base yet.
//!
//! A checkpoint of a store that is much larger than a memtable would change a page of the base for nearly every record.
//! So it writes the frozen memtable as one *run*: a file in the order of trees and keys that never changes. Readers
//! look into the runs, the newest first, before the base. Once the runs are a considerable part of the base, they are
//! merged into it together, so that each changed page takes many records.
//!
//! The list of runs is in the base (`base::format`), so a run is added and removed with an LMDB
//! commit. docs/file-format.md describes the files, byte by byte.

mod block;
mod cursor;
mod directory;
mod filter;
mod format;
#[cfg(any(test, feature = "fuzzing"))]
#[path = "../../../tests/checks/runs.rs"]
pub(super) mod fuzzing;
mod merged;
mod run;
mod set;
#[cfg(test)]
mod tests;
mod writer;

pub(super) use cursor::{Change, Cursor};
pub(super) use directory::{RUNS_DIRECTORY, RunDirectory};
pub(super) use format::{RunEntry, RunList, key_hash};
pub(super) use merged::{Merged, MergedEntry};
pub(super) use run::{Run, RunError};
pub(super) use set::Runs;
pub(super) use writer::RunWriter;
