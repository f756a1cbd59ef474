//! The storage of Tokaido: named databases of ordered keys, one transaction over all of them.
//!
//! Start with the traits: a [`Store`] gives [`Snapshot`]s to readers and one [`Writer`] to the
//! thread that commits. Both are used through [`ReadTransaction`] and [`WriteTransaction`], which
//! is all that protocols and scripts know of an engine. [`tree`] is the durable engine.
//!
//! ```
//! use tokaido_store::{NewRecord, Store, transact, tree};
//!
//! let directory = tempfile::tempdir()?;
//! let store = tree::open(directory.path(), tree::Options::default())?;
//! let main = store.database("main")?;
//!
//! let mut writer = store.writer()?;
//! transact(&mut *writer, |tx| tx.put(main, b"/index", NewRecord::of(b"1")))?;
//!
//! let mut snapshot = store.snapshot()?;
//! let record = snapshot.get(main, b"/index")?.expect("it was committed");
//! assert_eq!(record.value, b"1");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![deny(missing_docs)]

pub mod cache;
pub mod cdb;
mod clock;
mod database;
mod error;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
pub mod limits;
mod operations;
mod record;
mod scan;
mod store;
mod transaction;
pub mod tree;

pub use clock::{Clock, SystemClock};
pub use database::{DatabaseId, DatabaseStatistics, check_database_name};
pub use error::{CommitError, DatabaseError, OpenError, ReadError, TransactError, WriteError};
pub use operations::{
    Condition, IncrementError, WriteOperations, format_float, parse_float, parse_integer,
};
pub use record::{Entry, NewRecord, Record};
pub use scan::{ScanRange, Scanner};
pub use store::{CommitNumber, Snapshot, Store, Writer, transact};
pub use transaction::{Direction, ReadTransaction, WriteTransaction};
