//! The base: what the last checkpoint holds, in an LMDB file.
//!
//! It is read through views, which are LMDB's read transactions, and written by the checkpoint
//! alone, in one LMDB transaction each time. A store whose last process has left nothing in the log
//! is opened without LMDB, and its first records are read from the pages of the file.

mod contents;
mod copy;
pub(super) mod format;
#[cfg(any(test, feature = "fuzzing"))]
pub(super) mod fuzzing;
mod handle;
mod layer;
mod lmdb;
mod lmdb_base;
mod lmdb_view;
pub(super) mod long_key;
mod page_base;
pub(super) mod pages;
mod rescue;
mod view;

pub(super) use contents::{BaseContents, BaseOpenError, BaseOptions};
pub(super) use copy::{COPY_FILE, copy_beside, copy_still, remove_copy};
pub(super) use format::FORMAT_VERSION;
pub(super) use handle::Base;
pub(super) use layer::{Layer, LayerError};
pub(super) use lmdb_view::LmdbScan;
pub(super) use page_base::{PageDirectory, PageTree};
pub(super) use view::BaseView;

/// The file that LMDB keeps in the directory of a store.
pub(super) const DATA_FILE: &str = "data.mdb";
