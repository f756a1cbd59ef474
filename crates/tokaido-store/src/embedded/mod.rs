//! The API for a Rust program that embeds the store: [`crate::open`].
//!
//! Where to look: `handle` for the handle that such a program holds, `database` for operations on
//! one database, `pending` for transactions that are awaited later, `shared_writer` for how
//! concurrent writers share one sync, with `job` for one transaction and `gate` for waiting
//! threads.

mod database;
mod gate;
mod handle;
mod job;
mod pending;
mod shared_writer;

pub use database::{Database, Scan};
pub use handle::{Embedded, open, open_with};
pub use pending::Pending;
