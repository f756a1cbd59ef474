//! The base: what the last checkpoint holds, in an LMDB file.
//!
//! It is read through views, which are LMDB's read transactions, and written by the checkpointer
//! alone, in LMDB transactions of some megabytes each. It names the runs before it, too.

mod copy;
pub(super) mod format;
#[cfg(any(test, feature = "fuzzing"))]
#[path = "../../../tests/checks/base.rs"]
pub(super) mod fuzzing;
mod handle;
mod layer;
pub(super) mod long_key;
mod memory;
mod rescue;
mod view;

pub(super) use copy::{COPY_FILE, copy_beside, copy_still, remove_copy};
pub(crate) use format::FORMAT_VERSION;
pub(super) use handle::{Base, BaseContents, BaseError, BaseOptions};
pub(super) use layer::Layer;
pub(super) use tokaido_lmdb::pages;
pub(super) use view::{BaseScan, BaseView, Stored};

/// The file that LMDB keeps in the directory of a store.
pub(super) const DATA_FILE: &str = "data.mdb";

/// The file in which LMDB lists its readers, beside that one.
pub(super) const LMDB_LOCK_FILE: &str = "lock.mdb";
