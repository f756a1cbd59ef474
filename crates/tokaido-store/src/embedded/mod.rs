//! The front door for a Rust program that keeps its data in its own process: [`crate::open`].
//!
//! Where to look: `handle` for the store as such a program holds it, `database` for the calls of
//! one database, `group` for how threads that write at the same time share one sync.

mod database;
mod group;
mod handle;

pub use database::{Database, Scan};
pub use handle::{Embedded, open, open_with};
