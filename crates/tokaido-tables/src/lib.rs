//! Table databases: rows of columns, with secondary indexes that every write updates in its own
//! transaction, and queries over them. Built on what every transaction offers.
//!
//! A row is a record of bytes, `name NUL value NUL name NUL value`, so every protocol reads and writes
//! rows. [`TableStore`] sits between the store and its writers: in a table, each put, deletion,
//! rename or clear updates the entries of the indexes, too. An entry is an element of the database
//! itself, which no scan of keys shows. It has the expiry of its row, so that both expire at the
//! same moment. Entries are never authoritative: a query checks the row behind each one.
//! docs/file-format.md describes their form, byte by byte.

#![deny(missing_docs)]

mod bounds;
mod build;
mod command;
mod condition;
mod declaration;
mod entries;
mod error;
mod full_text;
mod indexing;
mod limits;
mod meta_search;
mod number;
mod plan;
mod query;
mod range;
mod row;
mod search;
mod sequence;
mod store;
mod text;
mod walk;
mod writer;

#[cfg(test)]
mod tests;

pub use bounds::Bounds;
pub use build::{set_index, set_index_all};
pub use command::{Command, Reply, add_number, put_cat};
pub use condition::{Condition, OPERATORS, Operator};
pub use declaration::{Index, IndexKind, IndexSetting, indexes};
pub use error::{QueryError, TableError};
pub use limits::{CONDITIONS_MAX, INDEXES_MAX, QUERIES_MAX, ROW_INDEX_BYTES_MAX, ROW_KEY_LEN_MAX};
pub use meta_search::{SetOperation, meta_search};
pub use query::{ORDERS, Order, OrderBy, Query};
pub use row::{Columns, Row};
pub use search::{Found, Wanted, search};
pub use sequence::next_unique_id;
pub use store::{TableStore, Tables};
