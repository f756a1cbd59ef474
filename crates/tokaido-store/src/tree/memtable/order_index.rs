//! The search tree of the list: a B-tree over its nodes (Bayer and McCreight, "Organization and
//! maintenance of large ordered indices", 1972).
//!
//! Only the linking thread inserts, and its searches are exact. Other threads search meanwhile and
//! may read a page whose entries are being moved, so what they find is a hint: some node of the
//! list, usually the one before the place. The list gives the exact answer. No page is freed while
//! the order index exists, and every node that an entry points to is linked.

use std::{
    array,
    cmp::Ordering::{Equal, Greater, Less},
    hint::select_unpredictable,
    ptr::{self, NonNull},
};

use crate::{
    Direction,
    tree::prefetch::{LINE_LEN, prefetch},
};

use super::{
    node::{Node, Place, WORD_LEN, word},
    sync::{AtomicPtr, AtomicU64, AtomicUsize, Ordering},
};

mod leaf_cursor;

pub(super) use leaf_cursor::LeafCursor;

/// Entries of a page.
const FANOUT: usize = if cfg!(any(miri, feature = "shuttle")) { 4 } else { 32 };

/// The maximum number of levels. All pages but the last of each level are at least half full, so
/// this is enough for more nodes than fit into memory.
const DEPTH_MAX: usize = if cfg!(any(miri, feature = "shuttle")) { 32 } else { 12 };

/// Stands for the tree of a page with nodes of several trees. No tree has that number.
const MIXED: u64 = u64::MAX;

/// Words that a page keeps of its *head*, the common prefix of its keys.
const HEAD_WORDS: usize = 4;

/// The maximum length of a head in bytes.
const HEAD_LEN: usize = HEAD_WORDS * WORD_LEN;

/// The part that all threads may follow.
pub(super) struct OrderIndex {
    root: AtomicPtr<IndexPage>,
    bytes: AtomicUsize,
}

/// The part that only the inserting thread uses. It owns all pages, and frees them when dropped.
pub(super) struct Pages {
    all: Vec<NonNull<IndexPage>>,
    /// The leaf that the last node went to. The next node often belongs there, too.
    last: NonNull<IndexPage>,
    /// The leaf at the end of the list.
    end: NonNull<IndexPage>,
}

// SAFETY: it owns the pages, as boxes would. They are made of atomics, and of pointers to nodes,
// which any thread may use.
unsafe impl Send for Pages {}

/// Where a node belongs: in a leaf, before the entry at that index.
pub(super) struct Spot {
    leaf: NonNull<IndexPage>,
    index: usize,
}

/// A page on one level of the tree.
#[repr(C, align(64))]
struct IndexPage {
    len: AtomicUsize,
    /// The neighbouring pages on its level.
    before: AtomicPtr<IndexPage>,
    behind: AtomicPtr<IndexPage>,
    /// The tree of all nodes of the page, or [`MIXED`].
    tree: AtomicU64,
    /// The children of a branch; a leaf has none.
    children: Option<Box<[AtomicPtr<IndexPage>; FANOUT]>>,
    /// The length in bytes of the head, unless the page is mixed.
    head_len: AtomicUsize,
    /// The head as words. Past its end, they hold the bytes of one of the keys.
    head: [AtomicU64; HEAD_WORDS],
    /// What follows the head in the nodes' keys, so that most comparisons need not read the nodes. Keys that are
    /// close to one another, like those of one collection, differ late.
    words: [AtomicU64; FANOUT],
    /// In a leaf, the nodes in order. In a branch, the first node below each child; a search never
    /// looks at that of the first child.
    nodes: [AtomicPtr<Node>; FANOUT],
}

/// An entry of a page: a node and the child that begins with it.
struct Entry<'n> {
    node: &'n Node,
    child: *mut IndexPage,
}

impl OrderIndex {
    pub(super) fn new() -> (Self, Pages) {
        let order_index = Self { root: AtomicPtr::default(), bytes: AtomicUsize::new(0) };
        let nowhere = NonNull::dangling();
        let mut pages = Pages { all: Vec::new(), last: nowhere, end: nowhere };
        let root = order_index.add_page(&mut pages, true);
        (pages.last, pages.end) = (root, root);
        order_index.root.store(root.as_ptr(), Ordering::Release);
        (order_index, pages)
    }

    /// Bytes of memory that the pages take.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// A node near the place, if there are any nodes.
    pub(super) fn near(&self, place: &Place<'_>) -> Option<&Node> {
        let (leaf, index) = self.descend(place, |_, _| {});
        // The caller looks at both sides of the place.
        if index < leaf.len() {
            leaf.node(index).inspect(|node| node.prefetch());
        }
        leaf.node(index.saturating_sub(1)).inspect(|node| node.prefetch())
    }

    /// Where `place` belongs. No node is at that place.
    pub(super) fn find(&self, pages: &Pages, place: &Place<'_>) -> Spot {
        pages.in_last(place).unwrap_or_else(|| {
            let (leaf, index) = self.descend(place, |_, _| {});
            Spot { leaf: NonNull::from(leaf), index }
        })
    }

    /// Inserts a linked node where it belongs.
    pub(super) fn insert(&self, pages: &mut Pages, spot: &Spot, node: &Node) {
        let leaf = spot.leaf();
        if leaf.len() < FANOUT {
            leaf.insert(spot.index, &Entry { node, child: ptr::null_mut() });
            pages.last = spot.leaf;
        } else {
            self.insert_splitting(pages, node);
        }
    }

    /// Descends to the leaf where a place belongs. `visit` gets each branch on the way, with the
    /// index of the child taken.
    fn descend<'g>(
        &'g self,
        place: &Place<'_>,
        mut visit: impl FnMut(&'g IndexPage, usize),
    ) -> (&'g IndexPage, usize) {
        // SAFETY: `new` has set it, and pages live as long as the order index is used.
        let mut page = unsafe { &*self.root.load(Ordering::Acquire) };
        while page.children.is_some() {
            let index = page.rank(1, place) - 1;
            let Some(child) = page.child(index) else { break };
            visit(page, index);
            page = child;
            page.prefetch();
        }
        (page, page.rank(0, place))
    }

    /// Like `insert`, for a full leaf.
    #[cold]
    fn insert_splitting(&self, pages: &mut Pages, node: &Node) {
        let mut path = [None; DEPTH_MAX];
        let mut depth = 0;
        let (mut page, mut index) = self.descend(&node.place(), |page, index| {
            path[depth] = Some((page, index));
            depth += 1;
        });
        let is_end = pages.end == NonNull::from(page);
        let mut entry = Entry { node, child: ptr::null_mut() };
        while page.len() == FANOUT {
            let right = self.add_page(pages, page.children.is_none());
            // SAFETY: pages live as long as the order index is used.
            let upper = unsafe { right.as_ref() };
            let is_upper = page.split(index, &entry, upper, is_end);
            page.set_behind(upper);
            if page.children.is_none() {
                pages.last = if is_upper { right } else { NonNull::from(page) };
                pages.end = if is_end { right } else { pages.end };
            }
            entry = Entry { node: upper.node(0).unwrap_or(node), child: right.as_ptr() };
            depth = depth.wrapping_sub(1);
            let Some((above, child)) = path.get(depth).copied().flatten() else {
                return self.grow(pages, &entry);
            };
            (page, index) = (above, child + 1);
        }
        page.insert(index, &entry);
    }

    /// Puts a new root above the one that was split.
    fn grow(&self, pages: &mut Pages, entry: &Entry<'_>) {
        let root = self.add_page(pages, false);
        // SAFETY: pages live as long as the order index is used.
        let page = unsafe { root.as_ref() };
        page.insert(0, &Entry { node: entry.node, child: self.root.load(Ordering::Relaxed) });
        page.insert(1, entry);
        self.root.store(root.as_ptr(), Ordering::Release);
    }

    fn add_page(&self, pages: &mut Pages, is_leaf: bool) -> NonNull<IndexPage> {
        let page = IndexPage::create(is_leaf);
        let children = if is_leaf { 0 } else { size_of::<[AtomicPtr<IndexPage>; FANOUT]>() };
        self.bytes.fetch_add(size_of::<IndexPage>() + children, Ordering::Relaxed);
        pages.all.push(page);
        page
    }
}

impl Pages {
    /// The spot of a place, if it is certain to be in the leaf of the last node.
    fn in_last(&self, place: &Place<'_>) -> Option<Spot> {
        // SAFETY: pages live as long as the order index is used.
        let leaf = unsafe { self.last.as_ref() };
        let index = leaf.rank(0, place);
        // After its last entry, the place may belong to the next leaf; before its first, to the previous.
        let is_there = index > 0 && (index < leaf.len() || self.last == self.end);
        is_there.then_some(Spot { leaf: self.last, index })
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        for page in &self.all {
            // SAFETY: it came from a box, and nobody follows pages once the list is gone.
            drop(unsafe { Box::from_raw(page.as_ptr()) });
        }
    }
}

impl Spot {
    fn leaf(&self) -> &IndexPage {
        // SAFETY: pages live as long as the order index is used.
        unsafe { self.leaf.as_ref() }
    }

    /// The node before the place.
    pub(super) fn before(&self) -> Option<&Node> {
        self.leaf().node(self.index.checked_sub(1)?)
    }

    /// The node after the place, if it is in the same leaf.
    pub(super) fn behind(&self) -> Option<&Node> {
        (self.index < self.leaf().len()).then(|| self.leaf().node(self.index))?
    }
}

impl IndexPage {
    fn create(is_leaf: bool) -> NonNull<Self> {
        let children = (!is_leaf).then(|| Box::new(array::from_fn(|_| AtomicPtr::default())));
        let page = Self {
            len: AtomicUsize::new(0),
            before: AtomicPtr::default(),
            behind: AtomicPtr::default(),
            tree: AtomicU64::new(MIXED),
            children,
            head_len: AtomicUsize::new(0),
            head: array::from_fn(|_| AtomicU64::default()),
            words: array::from_fn(|_| AtomicU64::default()),
            nodes: array::from_fn(|_| AtomicPtr::default()),
        };
        NonNull::from(Box::leak(Box::new(page)))
    }

    fn len(&self) -> usize {
        self.len.load(Ordering::Acquire)
    }

    fn node(&self, index: usize) -> Option<&Node> {
        // SAFETY: an entry is null or leads to a node of the list; Acquire pairs with the Release
        // of `put`.
        unsafe { self.nodes[index].load(Ordering::Acquire).as_ref() }
    }

    fn child(&self, index: usize) -> Option<&Self> {
        // SAFETY: as for nodes; pages live as long as the order index is used.
        unsafe { self.children.as_ref()?[index].load(Ordering::Acquire).as_ref() }
    }

    /// The next page on its level in that direction.
    fn beside(&self, direction: Direction) -> Option<&Self> {
        let next = match direction {
            Direction::Forward => &self.behind,
            Direction::Backward => &self.before,
        };
        // SAFETY: as for children.
        unsafe { next.load(Ordering::Acquire).as_ref() }
    }

    /// Links a new page after this one.
    fn set_behind(&self, new: &Self) {
        let own = ptr::from_ref(self).cast_mut();
        let new_pointer = ptr::from_ref(new).cast_mut();
        let behind = self.behind.load(Ordering::Relaxed);
        new.before.store(own, Ordering::Release);
        new.behind.store(behind, Ordering::Release);
        // SAFETY: as for children.
        if let Some(behind) = unsafe { behind.as_ref() } {
            behind.before.store(new_pointer, Ordering::Release);
        }
        self.behind.store(new_pointer, Ordering::Release);
    }

    /// Prefetches what a search needs.
    #[inline]
    fn prefetch(&self) {
        let start = ptr::from_ref(self).cast::<u8>();
        for line in (0..size_of::<Self>()).step_by(LINE_LEN) {
            prefetch(start.wrapping_add(line));
        }
    }

    /// How many entries are before `place`. Those below index `first` always count.
    #[inline]
    fn rank(&self, first: usize, place: &Place<'_>) -> usize {
        let (len, tree) = (self.len(), self.tree.load(Ordering::Relaxed));
        if tree == MIXED {
            return partition(first, len, |index| {
                self.node(index).is_some_and(|node| node.is_before(place))
            });
        }
        let head_len = self.head_len.load(Ordering::Relaxed);
        let head =
            tree.cmp(&u64::from(place.tree)).then_with(|| self.compare_head(head_len, place));
        match head {
            Less => len.max(first),
            Greater => first,
            Equal => {
                let wanted = word(place.key, head_len);
                partition(first, len, |index| {
                    let found = self.words[index].load(Ordering::Relaxed);
                    found < wanted
                        || (found == wanted
                            && self.node(index).is_some_and(|node| node.key() < place.key))
                })
            }
        }
    }

    /// Compares the head with the beginning of a key. A shorter key that is equal when padded with zeros counts
    /// as equal: what follows decides.
    #[inline]
    fn compare_head(&self, len: usize, place: &Place<'_>) -> std::cmp::Ordering {
        let mut left = len;
        for (i, own) in self.head.iter().enumerate() {
            if left == 0 {
                break;
            }
            let unused = (WORD_LEN - left.min(WORD_LEN)) * u8::BITS as usize;
            let own = own.load(Ordering::Relaxed) >> unused;
            let compared = own.cmp(&(word(place.key, i * WORD_LEN) >> unused));
            if compared.is_ne() {
                return compared;
            }
            left = left.saturating_sub(WORD_LEN);
        }
        Equal
    }

    /// Inserts an entry before the one at that index. There is room for it.
    fn insert(&self, index: usize, entry: &Entry<'_>) {
        let len = self.len();
        for at in (index..len).rev() {
            self.copy(at, self, at + 1);
        }
        let is_head_kept = self.admit(len, entry.node);
        self.put(index, entry);
        self.len.store(len + 1, Ordering::Release);
        if !is_head_kept {
            self.write_words();
        }
    }

    fn put(&self, index: usize, entry: &Entry<'_>) {
        self.write_word(index, entry.node);
        self.nodes[index].store(ptr::from_ref(entry.node).cast_mut(), Ordering::Release);
        if let Some(children) = &self.children {
            children[index].store(entry.child, Ordering::Release);
        }
    }

    fn write_word(&self, index: usize, node: &Node) {
        let word = word(node.key(), self.head_len.load(Ordering::Relaxed));
        self.words[index].store(word, Ordering::Relaxed);
    }

    fn write_words(&self) {
        for index in 0..self.len() {
            self.node(index).inspect(|node| self.write_word(index, node));
        }
    }

    /// Copies the entry `from` to the entry `to` of a page on the same level.
    fn copy(&self, from: usize, page: &Self, to: usize) {
        let word = self.words[from].load(Ordering::Relaxed);
        page.words[to].store(word, Ordering::Relaxed);
        let node = self.nodes[from].load(Ordering::Relaxed);
        page.nodes[to].store(node, Ordering::Release);
        if let (Some(own), Some(children)) = (&self.children, &page.children) {
            children[to].store(own[from].load(Ordering::Relaxed), Ordering::Release);
        }
    }

    /// Updates the tree and the head for a node that joins `len` others. Returns whether the head is as long as
    /// before, so that the words are still right.
    fn admit(&self, len: usize, node: &Node) -> bool {
        let (own, tree) = (self.tree.load(Ordering::Relaxed), u64::from(node.tree()));
        if len == 0 {
            self.tree.store(tree, Ordering::Relaxed);
            self.set_head(node.key(), node.key().len());
        } else if own != tree {
            self.tree.store(MIXED, Ordering::Relaxed);
        } else if self.compare_head(self.head_len.load(Ordering::Relaxed), &node.place()).is_ne()
            || node.key().len() < self.head_len.load(Ordering::Relaxed)
        {
            let Some(other) = self.node(0) else { return true };
            self.set_head(node.key(), common_len(node.key(), other.key()));
            return false;
        }
        true
    }

    fn set_head(&self, key: &[u8], len: usize) {
        self.head_len.store(len.min(HEAD_LEN), Ordering::Relaxed);
        for (i, own) in self.head.iter().enumerate() {
            own.store(word(key, i * WORD_LEN), Ordering::Relaxed);
        }
    }

    /// Recomputes tree, head and words from the nodes of the page. In a branch, the node of the first child need
    /// not be the smallest, so this looks at all of them.
    fn settle(&self) {
        let nodes = || (0..self.len()).filter_map(|index| self.node(index));
        let Some(first) = nodes().next() else { return };
        let is_mixed = nodes().any(|node| node.tree() != first.tree());
        let tree = if is_mixed { MIXED } else { u64::from(first.tree()) };
        self.tree.store(tree, Ordering::Relaxed);
        let common = nodes().map(|node| common_len(first.key(), node.key())).min();
        self.set_head(first.key(), common.unwrap_or(0));
        self.write_words();
    }

    /// Moves the upper half of a full page to an empty one and inserts an entry. Returns whether it
    /// went to the upper page. An entry at the end of the list goes there alone: more are likely to
    /// follow, and this page stays full.
    fn split(&self, index: usize, entry: &Entry<'_>, upper: &Self, is_end: bool) -> bool {
        let middle = if is_end && index == FANOUT { FANOUT } else { FANOUT / 2 };
        for at in middle..FANOUT {
            self.copy(at, upper, at - middle);
        }
        upper.len.store(FANOUT - middle, Ordering::Release);
        self.len.store(middle, Ordering::Release);
        for page in [self, upper] {
            page.settle();
        }
        let is_upper = index > middle || middle == FANOUT;
        let (page, index) = if is_upper { (upper, index - middle) } else { (self, index) };
        page.insert(index, entry);
        is_upper
    }
}

/// The length of the common prefix of two keys.
fn common_len(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).take_while(|(one, other)| one == other).count()
}

/// The first index from `first` on for which `is_before` is false, as it is for all later ones. The
/// result of each test is unpredictable, so the choice is made without a branch.
#[inline]
fn partition(first: usize, len: usize, is_before: impl Fn(usize) -> bool) -> usize {
    let (mut base, mut left) = (first, len.saturating_sub(first));
    while left > 1 {
        let half = left / 2;
        let middle = base + half;
        base = select_unpredictable(is_before(middle - 1), middle, base);
        left -= half;
    }
    base + usize::from(left == 1 && is_before(base))
}
