//! The base: an LMDB file with everything up to the last checkpoint.
//!
//! It is read through views, which are LMDB read transactions, and written only by the
//! checkpointer, in LMDB transactions of some megabytes each. It also lists the runs before it.

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
pub(super) mod roots;
mod view;

pub(super) use copy::{COPY_FILE, copy_beside, copy_still, remove_copy};
pub(crate) use format::FORMAT_VERSION;
pub(super) use format::Total;
pub(super) use handle::{Base, BaseContents, BaseError, BaseOptions};
pub(super) use layer::Layer;
pub(super) use tokaido_lmdb::pages;
pub(super) use view::{BaseScan, BaseView, Stored};

/// The file that LMDB keeps in the directory of a store.
pub(super) const DATA_FILE: &str = "data.mdb";

/// The file in which LMDB lists its readers, in the same directory.
pub(super) const LMDB_LOCK_FILE: &str = "lock.mdb";
