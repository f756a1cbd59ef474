//! Finding single keys, without walking.

use std::{
    borrow::Borrow,
    cmp::Ordering,
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use super::{
    file::{PageFile, Root},
    page::{Page, PageDamage},
    walk::read_value,
};

/// Finds keys in the trees of a file. Keeps the pages it has come by.
pub(in crate::tree) struct Finder<F> {
    file: F,
    pages: Mutex<HashMap<u64, Arc<Page>, foldhash::fast::RandomState>>,
}

/// A value that was found.
pub(in crate::tree) enum Found {
    Value(Vec<u8>),
    /// It has more bytes than were asked for.
    TooLong,
}

/// Most pages that a finder keeps.
const FINDER_PAGES_MAX: usize = 4096;

impl<F: Borrow<PageFile>> Finder<F> {
    pub(in crate::tree) fn new(file: F) -> Self {
        Self { file, pages: Mutex::default() }
    }

    fn file(&self) -> &PageFile {
        self.file.borrow()
    }

    /// The value under `key` in a tree. One of more than `len_max` bytes is not read.
    pub(in crate::tree) fn find(
        &self,
        root: Root,
        key: &[u8],
        len_max: usize,
    ) -> Result<Option<Found>, PageDamage> {
        let Some(mut number) = root.page else { return Ok(None) };
        for _ in 1..root.depth {
            let page = self.page(number, false)?;
            // The last child whose key is not above; the first one has no key.
            let (mut low, mut high) = (1, page.nodes);
            while low < high {
                let middle = low.midpoint(high);
                match page.node(middle)?.key <= key {
                    true => low = middle + 1,
                    false => high = middle,
                }
            }
            number = page.node(low - 1)?.number;
        }
        let page = self.page(number, true)?;
        let (mut low, mut high) = (0, page.nodes);
        while low < high {
            let middle = low.midpoint(high);
            let node = page.node(middle)?;
            match node.key.cmp(key) {
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
                Ordering::Equal if node.number > len_max as u64 => return Ok(Some(Found::TooLong)),
                Ordering::Equal => {
                    let (bytes, _) = read_value(self.file(), &node)?;
                    return Ok(Some(Found::Value(bytes)));
                }
            }
        }
        Ok(None)
    }

    fn page(&self, number: u64, is_leaf: bool) -> Result<Arc<Page>, PageDamage> {
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        let page = match pages.get(&number) {
            Some(page) => Arc::clone(page),
            None => {
                let page = Arc::new(Page::new(number, self.file().read_page(number)?)?);
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
