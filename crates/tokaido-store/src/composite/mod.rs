//! Databases of other engines beside those of a store, behind the same traits: caches, which are
//! not transactional, and constant databases (cdb files), which are read-only.
//!
//! [`CompositeStore`] *mounts* them by name. All other databases are the inner store's. Access to
//! those costs one more comparison, or nothing more if nothing is mounted.
//!
//! ```
//! use tokaido_store::{
//!     NewRecord, Store, cache, composite::{CompositeStore, Mount, MountEngine}, transact, tree,
//! };
//!
//! let directory = tempfile::tempdir()?;
//! let store = tree::open(directory.path(), tree::Options::default())?;
//! let sessions = Mount {
//!     name: "sessions".to_owned(),
//!     engine: MountEngine::Cache(cache::Options { bytes_max: 1 << 20, ..Default::default() }),
//! };
//! let store = CompositeStore::new(Box::new(store), vec![sessions])?;
//! let (main, sessions) = (store.database("main")?, store.database("sessions")?);
//!
//! let mut writer = store.writer()?;
//! transact(&mut *writer, |tx| {
//!     tx.put(main, b"user", NewRecord::of(b"hiroshige"))?;
//!     tx.put(sessions, b"user", NewRecord::of(b"online"))
//! })?;
//! assert!(store.snapshot()?.get(sessions, b"user")?.is_some());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Where to look: `store` for the whole; `mounts` for what is mounted; `files` for constant
//! databases and their replacement; `transaction` for snapshots and writers, which ask `view` for
//! the engine behind a database.

mod error;
mod files;
mod mounts;
mod options;
mod store;
#[cfg(test)]
mod tests;
mod transaction;
mod view;

pub use error::MountError;
pub use mounts::{Mount, MountEngine};
pub use options::{LOOK_INTERVAL_DEFAULT, Options, SWEEP_RECORDS_DEFAULT};
pub use store::{CompositeStore, cache};
