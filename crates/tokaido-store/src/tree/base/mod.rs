//! The base: what the last checkpoint holds, in an LMDB file.
//!
//! It is read through views, which are LMDB's read transactions, and written by the checkpoint
//! alone, in one LMDB transaction each time.

mod format;
#[cfg(any(test, feature = "fuzzing"))]
pub(super) mod fuzzing;
mod layer;
mod lmdb;
mod long_key;
mod open;
mod rescue;
mod view;

pub(super) use format::FORMAT_VERSION;
pub(super) use layer::{Layer, LayerError};
pub(super) use lmdb::LmdbError;
pub(super) use open::{Base, BaseContents, BaseOpenError, BaseOptions};
pub(super) use view::{BaseScan, BaseView};
