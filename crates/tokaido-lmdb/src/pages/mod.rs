//! LMDB's file, read without LMDB.
//!
//! LMDB trusts its pages: on a damaged one it may end the process. Here every number is checked
//! before it is used, and there is no memory map that could be cut off. A check reads a store in this
//! way, and so does a `Reader`, for which LMDB would take too long to open.
//! It is LMDB's format of 64-bit little-endian machines, version 1, as far as a store uses it.

mod file;
mod finder;
mod page;
mod walk;

pub use file::{PageFile, PageFileError, PageSet, Root};
pub use finder::Finder;
pub use page::PageDamage;
pub use walk::{Entry, walk};
