//! A small safe face of LMDB: only what the tree engine uses, and nothing of Tokaido.
//!
//! A transaction owns its cursors, and everything that reads borrows the transaction. So a slice
//! into a page cannot outlive the next write or the transaction's end, which is the rule that
//! LMDB asks its callers to keep.

mod cursors;
mod environment;
mod error;
mod transaction;

pub(super) use environment::{Environment, EnvironmentOptions};
pub(in crate::tree) use error::LmdbError;
pub(super) use transaction::{Insert, ReadTxn, Step, Walk, WriteTxn};

/// A named database of LMDB, as the environment numbers it.
pub(super) type Dbi = lmdb_master_sys::MDB_dbi;

/// Longest key that LMDB takes, in bytes.
pub(super) const LMDB_KEY_LEN_MAX: usize = 511;
