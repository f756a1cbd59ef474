//! LMDB's file, read without LMDB.
//!
//! LMDB trusts its pages: on a damaged one it may end the process. Whoever looks for damage reads
//! them here, with every number checked before it is used and no memory map that could be cut off.
//! It is LMDB's format of 64-bit little-endian machines, version 1, as far as a store uses it.

mod file;
mod finder;
mod page;
mod walk;

pub(in crate::tree) use file::{PageFile, PageFileError, PageSet, Root};
pub(in crate::tree) use finder::{Finder, Found};
pub(in crate::tree) use page::PageDamage;
pub(in crate::tree) use walk::{Entry, Walk};
