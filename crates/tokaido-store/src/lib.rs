//! Named databases of ordered keys in one directory, and one transaction over all of them: the
//! storage of Tokaido, and a library of its own for a Rust program that keeps its data in its own
//! process.
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
//! // A transaction, over any databases: all of it happens, or nothing.
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
//! - A transaction happens as a whole or not at all, whatever comes: an error, a panic, the end of
//!   the process, a power failure.
//! - A snapshot is a view of all databases at one commit. Readers never wait for the writer.
//! - Opening takes a fixed time and the replay of a bounded log, however large the store is; some
//!   microseconds if the log is empty and a few records are all that is read. Data may be larger
//!   than memory.
//! - Keys are ordered as bytes. Records may expire. Everything has a [limit](limits), and what goes
//!   over one gets an error.
//!
//! # For whoever comes from another store
//!
//! | there | here |
//! |---|---|
//! | LMDB environment; QDBM, Tokyo or Kyoto Cabinet file | [`open`] gives an [`Embedded`]: a directory with many databases |
//! | `MDB_dbi`, one file for each database | [`Database`], by name |
//! | `mdb_txn_begin`, `tcbdbtranbegin`, `begin_transaction` | [`Embedded::transact`] with a closure |
//! | a commit by another thread, or in `async` code | [`Embedded::submit`], awaited when it suits |
//! | `MDB_RDONLY` transaction | [`Embedded::snapshot`], or a plain [`Database::get`] |
//! | cursor, `curjump`, `iterinit` | [`Database::scan`] of a [`ScanRange`]; without copying, a [`Scanner`] on a snapshot |
//! | `MDB_NOOVERWRITE`, `putkeep`, `add`, `cas` | [`put_if`](WriteOperations::put_if) |
//! | `putcat`, `append`, `addint`, `increment` | [`WriteOperations`] |
//! | `MDB_NOSYNC`, `tcbdbsync`, `OAUTOSYNC` | [`tree::SyncMode`] |
//!
//! # Kinds of values
//!
//! A record holds bytes, or owns the elements of a collection: `tokaido-collections` makes hashes, lists, sets and sorted
//! sets of them.
//!
//! # Engines
//!
//! [`tree`] is the durable engine, behind [`open`]. [`cache`] holds records in memory, bounded in
//! bytes, and forgets what is not used. [`cdb`] reads and makes constant databases. There is an
//! example for each in `examples/`. [`composite`] mounts caches and constant databases beside a
//! store, by name and under the same traits.
//!
//! Protocols and scripts are written against traits, so that they run on any engine: a [`Store`]
//! gives [`Snapshot`]s to readers and one [`Writer`] to whoever commits; [`ReadTransaction`] and
//! [`WriteTransaction`] are what happens within. A server that batches writes itself uses those;
//! [`Embedded::store`] leads to them.

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
