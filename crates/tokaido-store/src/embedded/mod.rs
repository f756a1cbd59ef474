//! The front door for a Rust program that keeps its data in its own process: [`crate::open`].
//!
//! Where to look: `handle` for the store as such a program holds it, `database` for the calls of
//! one database, `pending` for transactions that are awaited later, `shared_writer` for how those who
//! write at the same time share one sync, with `job` for one transaction and `gate` for threads that
//! wait.

mod database;
mod gate;
mod handle;
mod job;
mod pending;
mod shared_writer;

pub use database::{Database, Scan};
pub use handle::{Embedded, open, open_with};
pub use pending::Pending;
