//! Where the trees of the base begin, read from its file without LMDB.

use std::borrow::Borrow;

use tokaido_lmdb::pages::{Finder, PageFile, Root};

use crate::ReadError;

use super::format::{self, TreeEntry};

/// Where a named database of LMDB begins.
pub(in crate::tree) fn named<F: Borrow<PageFile>>(
    finder: &Finder<F>,
    name: &str,
) -> Result<Option<Root>, ReadError> {
    let Some(root) = finder.find(finder.file().main(), name.as_bytes())? else {
        return Ok(None);
    };
    Root::decode(&root).map(Some).ok_or_else(|| ReadError::damaged("the root of a tree"))
}

/// Where a tree of the engine begins; `None` if it is empty. The directory of the base begins at `directory`.
pub(in crate::tree) fn of_tree<F: Borrow<PageFile>>(
    finder: &Finder<F>,
    directory: Root,
    tree: u32,
) -> Result<Option<Root>, ReadError> {
    let Some(entry) = finder.find(directory, &format::tree_key(tree))? else {
        return Ok(None);
    };
    let entry = TreeEntry::decode(&entry).ok_or_else(|| ReadError::damaged("a tree's entry"))?;
    let root = named(finder, &format::slot_name(entry.slot as usize))?;
    root.map(Some).ok_or_else(|| ReadError::damaged("a tree without a slot"))
}
