//! The durable engine: an LMDB file, synced once for each group of transactions.
//!
//! Where to look: [`layout`](self) for what stands where in the file, `long_key` for keys that
//! LMDB would not take, `edit` for how one transaction of a group is taken back, `snapshot` and
//! `writer` for the two sides of the [`Store`](crate::Store) trait.

mod catalog;
mod edit;
mod expiry;
mod group;
mod layout;
mod lmdb;
mod long_key;
mod open;
mod options;
mod read;
mod snapshot;
mod store;
mod transaction;
mod writer;

pub use open::open;
pub use options::Options;
pub use store::TreeStore;
