//! The nodes in order: a doubly linked list and an [order index](super::order_index) into it.
//!
//! Finding a node's place costs more than the rest of a write, and point lookups need no order. So
//! the writer only hands over new nodes. The next scan or checkpoint links them; a checkpoint gets
//! by with one sort. One thread links at a time, and readers carry on meanwhile.

use std::{
    array, iter,
    ptr::{self, NonNull},
};

use crate::{Direction, tree::prefetch::prefetch};

use super::{
    node::{Node, Place, WORD_LEN, word},
    order_index::{OrderIndex, Pages},
    sync::{AtomicPtr, AtomicUsize, Mutex, Ordering, PoisonError},
    walk::Walk,
};

/// How many nodes ahead of the one being linked are prefetched.
const PREFETCH_DISTANCE: usize = 8;

/// Capacity of the sort buffer beyond this many nodes is freed afterwards.
const SORTING_KEPT_MAX: usize = 1024;

pub(super) struct List {
    /// The sentinel at which the list begins. It has no key.
    head: NonNull<Node>,
    order_index: OrderIndex,
    /// The newest of the nodes that are not linked. Each points to the one before it.
    unlinked: AtomicPtr<Node>,
    /// How many nodes the writer has handed over.
    added: AtomicUsize,
    /// How many of them are linked.
    linked: AtomicUsize,
    /// Only the holder of this lock links nodes.
    linker: Mutex<Linker>,
}

/// The state of the thread that links.
struct Linker {
    pages: Pages,
    /// The sort buffer, kept from one time to the next.
    sorting: Vec<Unlinked>,
}

/// A node to be sorted, with what most comparisons need, so that they do not read the node. One word would
/// not be enough: the number of a collection is the first word of the keys of all its elements.
struct Unlinked {
    tree: u32,
    words: [u64; 3],
    node: NonNull<Node>,
}

// SAFETY: the pointers lead to nodes, which any thread may use.
unsafe impl Send for Linker {}

impl List {
    pub(super) fn new(head: NonNull<Node>) -> Self {
        let (order_index, pages) = OrderIndex::new();
        Self {
            head,
            order_index,
            unlinked: AtomicPtr::new(ptr::null_mut()),
            added: AtomicUsize::new(0),
            linked: AtomicUsize::new(0),
            linker: Mutex::new(Linker { pages, sorting: Vec::new() }),
        }
    }

    fn head(&self) -> &Node {
        // SAFETY: the head lies in the arena of the memtable that the list is part of.
        unsafe { self.head.as_ref() }
    }

    /// The number of nodes, linked or not.
    pub(super) fn len(&self) -> usize {
        self.added.load(Ordering::Acquire)
    }

    /// Bytes of memory that the order takes, without the nodes.
    pub(super) fn bytes(&self) -> usize {
        self.order_index.bytes()
    }

    /// Hands over a new node, to be linked when the order is needed. Only the writer calls this.
    ///
    /// # Safety
    /// The node lies in the arena of this list, and was not handed over before.
    pub(super) unsafe fn add(&self, node: NonNull<Node>) {
        let mut newest = self.unlinked.load(Ordering::Relaxed);
        loop {
            // SAFETY: guaranteed by the caller.
            unsafe { node.as_ref() }.set_handed_before(newest);
            // Release: the thread that takes the node sees its contents. The exchange fails when
            // a reader has just taken all nodes.
            let exchanged = self.unlinked.compare_exchange_weak(
                newest,
                node.as_ptr(),
                Ordering::Release,
                Ordering::Relaxed,
            );
            match exchanged {
                Ok(_) => break,
                Err(now) => newest = now,
            }
        }
        self.added.store(self.added.load(Ordering::Relaxed) + 1, Ordering::Release);
    }

    /// Links the nodes added before the call. Every access to the order begins with this.
    #[inline]
    pub(super) fn order(&self) {
        if self.linked.load(Ordering::Acquire) < self.len() {
            self.link_all();
        }
    }

    #[cold]
    fn link_all(&self) {
        let linker: &mut Linker = &mut self.linker.lock().unwrap_or_else(PoisonError::into_inner);
        let mut nodes = std::mem::take(&mut linker.sorting);
        nodes.reserve(self.len().saturating_sub(self.linked.load(Ordering::Relaxed)));
        // Acquire: pairs with `add`.
        let mut next = self.unlinked.swap(ptr::null_mut(), Ordering::Acquire);
        while let Some(node) = NonNull::new(next) {
            // SAFETY: nodes live as long as the list.
            let found = unsafe { node.as_ref() };
            let words = array::from_fn(|i| word(found.key(), i * WORD_LEN));
            nodes.push(Unlinked { tree: found.tree(), words, node });
            next = found.handed_before();
        }
        // Oldest first: keys that were added in order are sorted already.
        nodes.reverse();
        // SAFETY: as above.
        let key = |unlinked: &Unlinked| unsafe { unlinked.node.as_ref() }.key();
        nodes.sort_unstable_by(|a, b| {
            (a.tree, a.words).cmp(&(b.tree, b.words)).then_with(|| key(a).cmp(key(b)))
        });
        for (i, Unlinked { node, .. }) in nodes.iter().enumerate() {
            if let Some(ahead) = nodes.get(i + PREFETCH_DISTANCE) {
                prefetch(ahead.node.as_ptr());
            }
            // SAFETY: as above.
            self.link(&mut linker.pages, unsafe { node.as_ref() });
        }
        // Release: a thread that sees the number sees the links. Only the lock's holder writes it.
        let linked = self.linked.load(Ordering::Relaxed) + nodes.len();
        self.linked.store(linked, Ordering::Release);
        nodes.clear();
        nodes.shrink_to(SORTING_KEPT_MAX);
        linker.sorting = nodes;
    }

    /// The first node.
    pub(super) fn first(&self) -> Option<&Node> {
        self.order();
        self.head().next()
    }

    /// A walk that starts at a node.
    pub(super) fn walk<'l>(&'l self, from: Option<&'l Node>, direction: Direction) -> Walk<'l> {
        Walk::new(&self.order_index, from, direction)
    }

    /// Forward, the first node at or after `place`; backward, the last one before it.
    pub(super) fn seek(&self, place: &Place<'_>, direction: Direction) -> Option<&Node> {
        self.order();
        let before = self.before(place);
        match direction {
            Direction::Forward => before.next(),
            Direction::Backward => Some(before).filter(|node| !ptr::eq(*node, self.head())),
        }
    }

    /// The node at `place`, or the last one before it.
    pub(super) fn last_to(&self, place: &Place<'_>) -> Option<&Node> {
        self.order();
        let mut node = self.before(place);
        // Another thread may link nodes before the place meanwhile.
        while let Some(next) = node.next() {
            if next.is_at(place) {
                return Some(next);
            }
            if !next.is_before(place) {
                break;
            }
            node = next;
        }
        Some(node).filter(|node| !ptr::eq(*node, self.head()))
    }

    /// The last linked node before `place`, or the head.
    fn before(&self, place: &Place<'_>) -> &Node {
        let near = iter::successors(self.order_index.near(place), |node| node.back());
        let mut node = near.into_iter().find(|node| node.is_before(place)).unwrap_or(self.head());
        while let Some(next) = node.next()
            && next.is_before(place)
        {
            node = next;
        }
        node
    }

    /// Links a node where it belongs.
    fn link(&self, pages: &mut Pages, node: &Node) {
        let spot = self.order_index.find(pages, &node.place());
        let before = spot.before();
        let next = spot.behind().or_else(|| before.unwrap_or(self.head()).next());
        // The back link comes first: a node counts as linked once its `next` is set.
        node.set_back(before);
        node.set_next(next);
        before.unwrap_or(self.head()).set_next(Some(node));
        if let Some(next) = next {
            next.set_back(Some(node));
        }
        self.order_index.insert(pages, &spot, node);
    }
}

#[cfg(test)]
#[cfg(not(feature = "shuttle"))]
mod tests;
