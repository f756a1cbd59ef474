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
