//! The Rust side of the mod_lua dialect: texts, forms, dates, values that requests leave for each other, and
//! files below the document root.

mod date;
mod files;
mod form;
mod text;
mod values;
mod wildcard;

pub(crate) use date::parse_date;
pub use files::{DocumentRoot, FileError};
pub(crate) use form::{pairs_of_arguments, pairs_of_form, pairs_of_multipart};
pub(crate) use text::{Operation, transform};
pub use values::SharedValues;
pub(crate) use values::StoredValue;
pub(crate) use wildcard::matches_wildcard;
