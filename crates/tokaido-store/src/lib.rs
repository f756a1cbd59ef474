//! Named databases of ordered keys in one directory, with transactions across all of them. This is
//! the storage of Tokaido, and an embedded store for any Rust program.
//!
//! ```
//! use tokaido_store::{ScanRange, WriteOperations};
//!
//! # let directory = tempfile::tempdir()?;
//! let store = tokaido_store::open(directory.path())?;
//! let hits = store.database("hits")?;
//!
//! hits.put("/index", "1")?; // On disk when it returns.
//! assert_eq!(hits.get("/index")?.as_deref(), Some(&b"1"[..]));
//!
//! // A transaction, across any databases: all of it happens, or none of it.
//! let count = store.transact(|tx| {
//!     tx.increment(hits.id(), b"/about", 1)?;
//!     tx.increment(hits.id(), b"/index", 1)
//! })?;
//! assert_eq!(count, 2);
//!
//! for entry in hits.scan(ScanRange::prefix(b"/"))? {
//!     let (page, count) = entry?;
//!     println!("{} {}", page.escape_ascii(), count.escape_ascii());
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What it promises
//!
//! - A write is on stable storage when the call returns, unless the store was [opened](open_with)
//!   with another [`SyncMode`](tree::SyncMode). Threads that write at the same time share syncs.
//! - A transaction happens as a whole or not at all, even after an error, a panic, a killed process
//!   or a power failure.
//! - A snapshot is a view of all databases as of one commit. Readers never wait for the writer.
//! - Opening takes a fixed time plus the replay of a bounded log, however large the store is: some
//!   microseconds if the log is empty and only a few records are read. Data may be larger than
//!   memory.
//! - Keys are ordered as bytes. Records may expire. Everything has a [limit](limits), and exceeding
//!   one is an error.
//!
//! # Coming from another store
//!
//! | there | here |
//! |---|---|
//! | LMDB environment; QDBM, Tokyo or Kyoto Cabinet file | [`open`]: an [`Embedded`], a directory with many databases |
//! | `MDB_dbi`, one file for each database | [`Database`], by name |
//! | `mdb_txn_begin`, `tcbdbtranbegin`, `begin_transaction` | [`Embedded::transact`] with a closure |
//! | a commit by another thread, or in `async` code | [`Embedded::submit`], awaited later |
//! | `MDB_RDONLY` transaction | [`Embedded::snapshot`], or a plain [`Database::get`] |
//! | cursor, `curjump`, `iterinit` | [`Database::scan`] of a [`ScanRange`]; without copying, a [`Scanner`] on a snapshot |
//! | `MDB_NOOVERWRITE`, `putkeep`, `add`, `cas` | [`put_if`](WriteOperations::put_if) |
//! | `putcat`, `append`, `addint`, `increment` | [`WriteOperations`] |
//! | `MDB_NOSYNC`, `tcbdbsync`, `OAUTOSYNC` | [`tree::SyncMode`] |
//!
//! # Kinds of values
//!
//! A record holds bytes, or owns the elements of a collection: `tokaido-collections` builds hashes,
//! lists, sets and sorted sets on top.
//!
//! # Engines
//!
//! [`tree`] is the durable engine, behind [`open`]. [`cache`] holds records in memory, bounded in
//! bytes, and evicts those that are not used. [`cdb`] reads and writes constant databases. There is
//! an example of each in its crate's `examples/`. [`composite`] mounts caches and constant
//! databases beside a store, by name and behind the same traits.
//!
//! Protocols and scripts are written against traits, so that they run on any engine: a [`Store`]
//! hands out [`Snapshot`]s to readers and one [`Writer`] to the committer. [`ReadTransaction`] and
//! [`WriteTransaction`] are the operations on them. A server that batches writes itself uses these
//! traits; [`Embedded::store`] gives access to them.

#![deny(missing_docs)]

pub mod cache;
mod capabilities;
mod clock;
pub mod composite;
pub mod counter;
mod database;
mod embedded;
mod error;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
#[path = "../tests/checks/mod.rs"]
pub mod fuzzing;
mod group;
mod key_iterator;
pub mod limits;
mod mutex;
mod observer;
mod operations;
mod record;
mod scan;
mod store;
mod transact;
mod transaction;
pub mod tree;

pub use capabilities::Capabilities;
pub use clock::{Clock, SystemClock};
pub use database::{DatabaseId, DatabaseStatistics, Usage, check_database_name};
pub use embedded::{Database, Embedded, Pending, Scan, open, open_with};
pub use error::{CommitError, DatabaseError, OpenError, ReadError, TransactError, WriteError};
pub use group::{Group, GroupWriter};
pub use key_iterator::KeyIterator;
pub use observer::{Change, Observer, ObserverGuard, TransactionChanges, What};
pub use operations::{Condition, IncrementError, WriteOperations};
pub use record::{Amendment, CollectionId, Entry, Kind, Marks, NewRecord, Record};
pub use scan::{ScanRange, Scanner, prefix_end};
pub use store::{CommitNumber, Snapshot, Store, Writer};
pub use tokaido_cdb as cdb;
pub use transact::{transact, transact_in_place, transact_numbered, transact_unflushed};
pub use transaction::{Direction, ReadTransaction, WriteTransaction};
