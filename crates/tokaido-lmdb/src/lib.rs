//! A small safe wrapper around LMDB with only what the store uses, and nothing of the store itself;
//! and [`pages`], which reads LMDB's file without LMDB.
//!
//! A transaction owns its cursors, and everything that reads borrows the transaction. So a slice
//! into a page cannot outlive the next write or the end of the transaction, as LMDB demands of its
//! callers. What it demands of them as users of the file is the contract of [`Environment::open`].

#![deny(missing_docs)]

mod cursors;
mod environment;
mod error;
pub mod pages;
mod read_ahead;
mod transaction;

pub use environment::{Access, Environment, EnvironmentOptions};
pub use error::LmdbError;
pub use transaction::{Entry, Insert, ReadTxn, Step, Txn, Walk, WriteTxn};

/// A named database of LMDB, as the environment numbers it.
pub type Dbi = lmdb_master_sys::MDB_dbi;

/// Longest key that LMDB accepts, in bytes.
pub const LMDB_KEY_LEN_MAX: usize = 511;
