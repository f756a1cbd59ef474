//! Walking a tree in order, and reporting damage on the way.

use std::ops::Range;

use super::{
    file::{PageFile, PageSet, Root},
    page::{BIG_DATA, Node, Page, PageDamage, u64_at},
};

/// An entry of a tree.
pub struct Entry {
    /// Its key.
    pub key: Vec<u8>,
    /// Its value.
    pub value: Vec<u8>,
    /// Whether the value is the root of another tree.
    pub is_root: bool,
}

/// Reads the value of a leaf's node; also returns its overflow pages.
pub(super) fn read_value(
    file: &PageFile,
    node: &Node<'_>,
) -> Result<(Vec<u8>, Range<u64>), PageDamage> {
    if node.flags & BIG_DATA == 0 {
        return Ok((node.data.to_vec(), 0..0));
    }
    let first = u64_at(node.data, 0).unwrap_or(u64::MAX);
    let (value, count) = file.read_overflow(first, node.number as usize)?;
    Ok((value, first..first + count))
}

const OUT_OF_ORDER: &str = "its keys are out of order";

/// Walks over all entries of a tree, in order, and passes each to `visit`, or the damage found.
/// Skips a damaged page and goes on after it. Adds every page that it visits to `pages`. Returns
/// whether nothing was wrong.
pub fn walk(
    file: &PageFile,
    root: Root,
    pages: &mut PageSet,
    visit: &mut dyn FnMut(Result<Entry, PageDamage>),
) -> bool {
    let Root { flags, depth, page, .. } = root;
    let found = Root { flags, depth, page, ..Root::default() };
    let (last_key, floor) = (Vec::new(), None);
    let mut walk = Walk { file, root, pages, visit, last_key, floor, found, is_sound: true };
    let walked = page.map_or(Ok(()), |page| walk.below(page, 1, None));
    walk.note(walked);
    if walk.is_sound {
        let compared = walk.compare_with_root();
        walk.note(compared);
    }
    walk.is_sound
}

struct Walk<'w> {
    file: &'w PageFile,
    root: Root,
    pages: &'w mut PageSet,
    visit: &'w mut dyn FnMut(Result<Entry, PageDamage>),
    last_key: Vec<u8>,
    /// The lower bound for the keys of the next page.
    floor: Option<Vec<u8>>,
    found: Root,
    is_sound: bool,
}

impl Walk<'_> {
    fn note(&mut self, walked: Result<(), PageDamage>) {
        if let Err(damage) = walked {
            self.is_sound = false;
            (self.visit)(Err(damage));
        }
    }

    /// Walks over a page and its descendants, all of whose keys must be below `end`.
    fn below(&mut self, number: u64, depth: u16, end: Option<&[u8]>) -> Result<(), PageDamage> {
        let page = Page::new(number, self.file.read_page(number)?)?;
        if !self.pages.insert(number) {
            return Err(PageDamage::new(number, "two places refer to it"));
        }
        if page.is_leaf != (depth == self.root.depth) {
            return Err(PageDamage::new(number, "it stands at a wrong depth"));
        }
        match page.is_leaf {
            true => self.found.leaf_pages += 1,
            false => self.found.branch_pages += 1,
        }
        for index in 0..page.nodes {
            let walked = match page.is_leaf {
                true => self.entry(&page, index, end),
                false => self.child(&page, index, depth, end),
            };
            self.note(walked);
        }
        Ok(())
    }

    /// Walks over the child of a branch's node. Its keys must not be below the node's own.
    fn child(
        &mut self,
        page: &Page,
        index: usize,
        depth: u16,
        end: Option<&[u8]>,
    ) -> Result<(), PageDamage> {
        let node = page.node(index)?;
        let end = match index + 1 < page.nodes {
            true => Some(page.node(index + 1)?.key),
            false => end,
        };
        if index > 0 {
            if self.found.entries > 0 && !self.root.is_above(node.key, &self.last_key) {
                return Err(PageDamage::new(page.number, OUT_OF_ORDER));
            }
            self.floor = Some(node.key.to_vec());
        }
        self.below(node.number, depth + 1, end)
    }

    fn entry(&mut self, page: &Page, index: usize, end: Option<&[u8]>) -> Result<(), PageDamage> {
        let node = page.node(index)?;
        self.found.entries += 1;
        let is_above = |key: &[u8], other: &[u8]| self.root.is_above(key, other);
        let is_right = end.is_none_or(|end| is_above(end, node.key))
            && self.floor.as_ref().is_none_or(|floor| !is_above(floor, node.key))
            && (self.found.entries == 1 || is_above(node.key, &self.last_key));
        if !is_right {
            return Err(PageDamage::new(page.number, OUT_OF_ORDER));
        }
        self.floor = None;
        self.last_key.clear();
        self.last_key.extend_from_slice(node.key);
        let (value, own) = read_value(self.file, &node)?;
        if own.clone().any(|page| !self.pages.insert(page)) {
            return Err(PageDamage::new(own.start, "two places refer to it"));
        }
        self.found.overflow_pages += own.end - own.start;
        (self.visit)(Ok(Entry { key: node.key.to_vec(), value, is_root: node.is_root() }));
        Ok(())
    }

    /// Compares the totals with those in the root. If pages could not be read, they differ anyway.
    fn compare_with_root(&self) -> Result<(), PageDamage> {
        if self.found == self.root {
            return Ok(());
        }
        let what = format!(
            "the tree from there has {} entries, its root says {}; or its pages are not as many as \
             its root says",
            self.found.entries, self.root.entries
        );
        Err(PageDamage::new(self.root.page.unwrap_or(0), what))
    }
}
