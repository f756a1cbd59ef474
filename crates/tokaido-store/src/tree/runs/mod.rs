//! Runs: what checkpoints have taken out of memtables and the base does not have yet, each a sorted file.
//!
//! A checkpoint of a store that is much larger than a memtable would change a page of the base for nearly every record.
//! So it writes the frozen memtable as one *run*: a file in the order of trees and keys that is never changed.
//! Readers look into the runs, the newest first, before they look into the base. Once the runs are a good part of the
//! base they are merged into it, together, so that each page that is changed takes many records with it.
//!
//! Which runs there are stands in the base (`base::format`), so a run comes and goes with a commit of LMDB's.
//! docs/file-format.md has the files, byte by byte.

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
