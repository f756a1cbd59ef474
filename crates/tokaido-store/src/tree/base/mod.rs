//! The base: what the last checkpoint holds, in an LMDB file.
//!
//! It is read through views, which are LMDB's read transactions, and written by the checkpoint
//! alone, in one LMDB transaction each time.

mod copy;
pub(super) mod format;
#[cfg(any(test, feature = "fuzzing"))]
pub(super) mod fuzzing;
mod layer;
mod lmdb;
pub(super) mod long_key;
mod open;
pub(super) mod pages;
mod rescue;
mod view;

pub(super) use copy::{copy_beside, copy_still};
pub(super) use format::FORMAT_VERSION;
pub(super) use layer::{Layer, LayerError};
pub(super) use lmdb::LmdbError;
pub(super) use open::{Base, BaseContents, BaseOpenError, BaseOptions};
pub(super) use view::{BaseScan, BaseView};

/// The file that LMDB keeps in the directory of a store.
pub(super) const DATA_FILE: &str = "data.mdb";
