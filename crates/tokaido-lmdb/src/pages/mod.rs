//! LMDB's file, read without LMDB.
//!
//! LMDB trusts its pages: a damaged one may crash the process. Here every number is checked before
//! it is used, and there is no memory map, which a truncated file would cut off. A check reads a
//! store in this way, and so does a `Reader`, since LMDB would take too long to open. The format is
//! LMDB's for 64-bit little-endian machines, version 1, as far as a store uses it.

mod file;
mod finder;
mod page;
mod walk;

pub use file::{PageFile, PageFileError, PageSet, Root};
pub use finder::{Finder, Leaf};
pub use page::PageDamage;
pub use walk::{Entry, walk};
