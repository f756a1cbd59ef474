//! The seal: what a store that was closed says of itself, so that whoever opens it next need not
//! look at its log, nor open LMDB for a single record.
//!
//! Invariant: it is broken, durably, before anything is written to the base or the log. So a seal
//! that is there speaks the truth, whether or not it was synced itself. It stands in the file of the
//! store's lock, which every opening reads and nobody else writes.

mod file;
mod format;
#[cfg(any(test, feature = "fuzzing"))]
pub(super) mod fuzzing;

pub(super) use file::SealFile;
pub(super) use format::Seal;
