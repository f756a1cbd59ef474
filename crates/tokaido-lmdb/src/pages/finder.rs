//! Finding single keys without walking a tree.

use std::{
    borrow::Borrow,
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use super::{
    file::{PageFile, Root},
    page::{Page, PageDamage},
    walk::read_value,
};

/// Finds keys in the trees of a file. Caches the pages that it reads.
pub struct Finder<F> {
    file: F,
    pages: Mutex<HashMap<u64, Arc<Page>, foldhash::fast::RandomState>>,
}

/// A leaf, which has been found, but not read.
pub struct Leaf {
    /// The number of its page.
    pub page: u64,
    /// The first key that does not belong to it any more; `None` for the last leaf of a tree.
    pub end: Option<Vec<u8>>,
}

/// Maximum number of pages that a finder caches.
const FINDER_PAGES_MAX: usize = 4096;

impl<F: Borrow<PageFile>> Finder<F> {
    /// For the trees of `file`.
    pub fn new(file: F) -> Self {
        Self { file, pages: Mutex::default() }
    }

    /// The file.
    pub fn file(&self) -> &PageFile {
        self.file.borrow()
    }

    /// The value under `key` in a tree.
    pub fn find(&self, root: Root, key: &[u8]) -> Result<Option<Vec<u8>>, PageDamage> {
        let Some(mut number) = root.page else { return Ok(None) };
        for _ in 1..root.depth {
            let page = self.page(number, false)?;
            // The last child whose key is not above; the first one has no key.
            let above = page.partition(1, |found| found <= key)?;
            number = page.node(above - 1)?.number;
        }
        let page = self.page(number, true)?;
        let index = page.partition(0, |found| found < key)?;
        if index == page.nodes {
            return Ok(None);
        }
        let node = page.node(index)?;
        match node.key == key {
            true => read_value(self.file.borrow(), &node).map(|(value, _)| Some(value)),
            false => Ok(None),
        }
    }

    /// The leaf that `key` belongs to, whether it is there or not; `None` in a tree without pages. Reads only pages on the
    /// way to it.
    pub fn leaf(&self, root: Root, key: &[u8]) -> Result<Option<Leaf>, PageDamage> {
        let Some(mut number) = root.page else { return Ok(None) };
        let mut end = None;
        for _ in 1..root.depth {
            let page = self.page(number, false)?;
            let above = page.partition(1, |found| found <= key)?;
            if above < page.nodes {
                end = Some(page.node(above)?.key.to_vec());
            }
            number = page.node(above - 1)?.number;
        }
        Ok(Some(Leaf { page: number, end }))
    }

    fn page(&self, number: u64, is_leaf: bool) -> Result<Arc<Page>, PageDamage> {
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        let page = match pages.get(&number) {
            Some(page) => Arc::clone(page),
            None => {
                let page = Arc::new(Page::new(number, self.file.borrow().read_page(number)?)?);
                if pages.len() == FINDER_PAGES_MAX {
                    pages.clear();
                }
                pages.insert(number, Arc::clone(&page));
                page
            }
        };
        match page.is_leaf == is_leaf {
            true => Ok(page),
            false => Err(PageDamage::new(number, "it stands at a wrong depth")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::{Access, Environment, EnvironmentOptions, Insert};

    #[test]
    fn leaves_are_found_without_being_read() {
        let directory = tempfile::tempdir().unwrap();
        let options = EnvironmentOptions { map_size: 16 << 20, readers_max: 1, databases_max: 1 };
        // SAFETY: the directory is new.
        let environment =
            unsafe { Environment::open(directory.path(), &options, Access::Write) }.unwrap();
        let mut txn = environment.write().unwrap();
        let database = txn.create_database("tree").unwrap();
        for number in 0..20_000_u32 {
            let key = number.to_be_bytes();
            let Insert::Vacant(room) = txn.insert(database, &key, 100).unwrap() else {
                panic!("it is there already")
            };
            room.fill(1);
        }
        txn.commit().unwrap();
        let file = PageFile::open(&directory.path().join("data.mdb")).unwrap();
        let finder = Finder::new(file);
        let root = finder.find(finder.file().main(), b"tree").unwrap().unwrap();
        let root = Root::decode(&root).unwrap();
        assert!(root.depth > 2, "{root:?}");
        let mut pages = HashSet::new();
        let mut last: Option<Leaf> = None;
        for number in 0..20_000_u32 {
            let key = number.to_be_bytes();
            let leaf = finder.leaf(root, &key).unwrap().unwrap();
            if let Some(last) = last {
                let is_same = last.end.as_deref().is_none_or(|end| &key[..] < end);
                assert_eq!(is_same, leaf.page == last.page, "{number}");
            }
            finder.file().will_need(leaf.page);
            pages.insert(leaf.page);
            last = Some(leaf);
        }
        assert_eq!(pages.len() as u64, root.leaf_pages);
        assert!(last.is_some_and(|last| last.end.is_none()));
        assert!(finder.leaf(Root::default(), b"key").unwrap().is_none());
    }
}
