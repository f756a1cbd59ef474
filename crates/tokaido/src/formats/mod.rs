//! The text formats that `load` reads and `dump` writes, and those of `cdb`.

pub(crate) mod cdb_text;
mod columns;
mod csv;
mod format;
mod jsonl;
mod lines;
mod memcached;
mod pairs;
mod reader;
mod row;
mod tsv;
mod tyrant;
mod writer;

pub(crate) use format::Format;
pub(crate) use reader::{Options, ReadError, RowReader};
pub(crate) use row::Row;
pub(crate) use writer::{RowWriter, UnwritableRow};
