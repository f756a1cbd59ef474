//! Walking a tree in order, and what is wrong on the way.

use std::ops::Range;

use super::{
    file::{PageFile, PageSet, Root},
    page::{BIG_DATA, Node, Page, PageDamage, u64_at},
};

/// An entry of a tree.
pub(in crate::tree) struct Entry {
    pub key: Vec<u8>,
    pub value: Vec<u8>,
    /// Whether the value is the root of another tree.
    pub is_root: bool,
}

/// The value of a leaf's node, and the pages that it has to itself.
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

/// A page on the way down, and the node to look at next.
struct Level {
    page: Page,
    number: u64,
    next: usize,
    /// Below which key everything under this page stands.
    end: Option<Vec<u8>>,
}

/// A walk over all entries of a tree. Where a page is damaged it goes on behind it.
pub(in crate::tree) struct Walk<'f> {
    file: &'f PageFile,
    root: Root,
    /// The root, until it is stepped on.
    begin: Option<u64>,
    levels: Vec<Level>,
    last_key: Vec<u8>,
    /// Below which key the page that comes next has none.
    floor: Option<Vec<u8>>,
    found: Root,
    is_damaged: bool,
    is_ended: bool,
}

impl<'f> Walk<'f> {
    pub(in crate::tree) fn new(file: &'f PageFile, root: Root) -> Self {
        Self {
            file,
            root,
            begin: root.page,
            levels: Vec::new(),
            last_key: Vec::new(),
            floor: None,
            found: Root {
                flags: root.flags,
                depth: root.depth,
                page: root.page,
                ..Root::default()
            },
            is_damaged: false,
            is_ended: false,
        }
    }

    /// Whether anything was wrong so far.
    pub(in crate::tree) fn is_damaged(&self) -> bool {
        self.is_damaged
    }

    /// The next entry. `pages` gets every page that is stepped on.
    pub(in crate::tree) fn next(
        &mut self,
        pages: &mut PageSet,
    ) -> Option<Result<Entry, PageDamage>> {
        let step = self.step(pages).transpose()?;
        self.is_damaged |= step.is_err();
        Some(step)
    }

    fn step(&mut self, pages: &mut PageSet) -> Result<Option<Entry>, PageDamage> {
        if let Some(page) = self.begin.take() {
            self.descend(page, None, pages)?;
        }
        while let Some(level) = self.levels.last_mut() {
            let index = level.next;
            if index == level.page.nodes {
                self.levels.pop();
                continue;
            }
            level.next += 1;
            if level.page.is_leaf {
                return self.entry(index, pages).map(Some);
            }
            let child = level.page.node(index)?.number;
            let end = match level.next < level.page.nodes {
                true => Some(level.page.node(level.next)?.key.to_vec()),
                false => level.end.clone(),
            };
            self.check_separator(index)?;
            self.descend(child, end, pages)?;
        }
        self.end()
    }

    /// The keys below a branch's node are not below the node's own.
    fn check_separator(&mut self, index: usize) -> Result<(), PageDamage> {
        let Some(level) = self.levels.last().filter(|_| index > 0) else { return Ok(()) };
        let key = level.page.node(index)?.key;
        if self.found.entries > 0 && !self.root.is_above(key, &self.last_key) {
            return Err(PageDamage::new(level.number, OUT_OF_ORDER));
        }
        self.floor = Some(key.to_vec());
        Ok(())
    }

    fn descend(
        &mut self,
        number: u64,
        end: Option<Vec<u8>>,
        pages: &mut PageSet,
    ) -> Result<(), PageDamage> {
        let page = Page::new(number, self.file.read_page(number)?)?;
        if !pages.insert(number) {
            return Err(PageDamage::new(number, "two places refer to it"));
        }
        let is_last = self.levels.len() + 1 == self.root.depth as usize;
        if page.is_leaf != is_last {
            return Err(PageDamage::new(number, "it stands at a wrong depth"));
        }
        match page.is_leaf {
            true => self.found.leaf_pages += 1,
            false => self.found.branch_pages += 1,
        }
        self.levels.push(Level { page, number, next: 0, end });
        Ok(())
    }

    fn entry(&mut self, index: usize, pages: &mut PageSet) -> Result<Entry, PageDamage> {
        let level = &self.levels[self.levels.len() - 1];
        let node = level.page.node(index)?;
        self.found.entries += 1;
        let is_above = |key, other: &[u8]| self.root.is_above(key, other);
        let is_right = level.end.as_ref().is_none_or(|end| is_above(end, node.key))
            && self.floor.as_ref().is_none_or(|floor| !is_above(floor, node.key))
            && (self.found.entries == 1 || is_above(node.key, &self.last_key));
        if !is_right {
            return Err(PageDamage::new(level.number, OUT_OF_ORDER));
        }
        self.floor = None;
        self.last_key.clear();
        self.last_key.extend_from_slice(node.key);
        let (value, own) = read_value(self.file, &node)?;
        if own.clone().any(|page| !pages.insert(page)) {
            return Err(PageDamage::new(own.start, "two places refer to it"));
        }
        self.found.overflow_pages += own.end - own.start;
        let is_root = node.is_root();
        Ok(Entry { key: node.key.to_vec(), value, is_root })
    }

    /// Compares what was found with what LMDB says, once. Where pages could not be read it differs
    /// anyhow.
    fn end(&mut self) -> Result<Option<Entry>, PageDamage> {
        if std::mem::replace(&mut self.is_ended, true) || self.is_damaged {
            return Ok(None);
        }
        if self.found != self.root {
            let Root { entries, .. } = self.root;
            let page = self.root.page.unwrap_or(0);
            let what = format!(
                "the tree from there has {} entries, its root says {entries}; or its pages are \
                 not as many as its root says",
                self.found.entries
            );
            return Err(PageDamage::new(page, what));
        }
        Ok(None)
    }
}
