//! The nodes in order: a skip list (Pugh, "Skip lists: a probabilistic alternative to balanced
//! trees", 1990), as in LevelDB, with a way back on the lowest level.
//!
//! Finding a node's place costs more than the rest of a write, and points need no order. So the
//! writer only hands new nodes over, and whoever next asks for an order links them: a scan, or the
//! checkpoint, which gets by with one sort. One thread links at a time; readers go on meanwhile.

use std::{
    cmp::Ordering as Order,
    ptr::{self, NonNull},
};

use crate::tree::prefetch::prefetch;

use super::{
    node::{HEIGHT_MAX, Node, Place},
    sync::{AtomicPtr, AtomicUsize, Mutex, Ordering, PoisonError},
};

/// How many nodes ahead of the one that is linked are fetched from memory.
const PREFETCH_DISTANCE: usize = 8;

/// Room for sorting more nodes than this is given back afterwards.
const SORTING_KEPT_MAX: usize = 1024;

pub(super) struct List {
    /// The list begins at a node that has no key and every level.
    head: NonNull<Node>,
    /// The newest of the nodes that are not linked; each leads to the one before it.
    unlinked: AtomicPtr<Node>,
    /// How many nodes the writer has handed over.
    added: AtomicUsize,
    /// How many of them are linked.
    linked: AtomicUsize,
    /// The right to link.
    splice: Mutex<Splice>,
}

/// Where the last node was linked: on each level the node before it, or that node. Most nodes
/// belong near the last one, and then need no search from the top.
struct Splice {
    previous: [NonNull<Node>; HEIGHT_MAX],
    /// Room for the nodes that are sorted, kept from one time to the next.
    sorting: Vec<Unlinked>,
}

/// A node to be sorted, with what most comparisons need, so that they do not go to the node.
struct Unlinked {
    tree: u32,
    prefix: u64,
    node: NonNull<Node>,
}

// SAFETY: the pointers lead to nodes, which any thread may use.
unsafe impl Send for Splice {}

impl List {
    pub(super) fn new(head: NonNull<Node>) -> Self {
        Self {
            head,
            unlinked: AtomicPtr::new(ptr::null_mut()),
            added: AtomicUsize::new(0),
            linked: AtomicUsize::new(0),
            splice: Mutex::new(Splice { previous: [head; HEIGHT_MAX], sorting: Vec::new() }),
        }
    }

    fn head(&self) -> &Node {
        // SAFETY: the head lies in the memtable's arena, as the list itself is part of it.
        unsafe { self.head.as_ref() }
    }

    /// The number of nodes, linked or not.
    pub(super) fn len(&self) -> usize {
        self.added.load(Ordering::Acquire)
    }

    /// Hands a new node over, to be linked when an order is asked for. Only the writer calls this.
    ///
    /// # Safety
    /// The node lies in the arena of this list, and was not handed over before.
    pub(super) unsafe fn add(&self, node: NonNull<Node>) {
        let mut newest = self.unlinked.load(Ordering::Relaxed);
        loop {
            // SAFETY: the caller's.
            unsafe { node.as_ref() }.set_handed_before(newest);
            // Release: who takes the node finds it written. It fails when a reader has just taken
            // all that were there.
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

    /// Links what was added before the call. Every way into the order begins with it.
    #[inline]
    pub(super) fn order(&self) {
        if self.linked.load(Ordering::Acquire) < self.len() {
            self.link_all();
        }
    }

    #[cold]
    fn link_all(&self) {
        let splice: &mut Splice = &mut self.splice.lock().unwrap_or_else(PoisonError::into_inner);
        let mut nodes = std::mem::take(&mut splice.sorting);
        // Acquire: pairs with `add`.
        let mut next = self.unlinked.swap(ptr::null_mut(), Ordering::Acquire);
        while let Some(node) = NonNull::new(next) {
            // SAFETY: nodes live as long as the list.
            let found = unsafe { node.as_ref() };
            let Place { tree, prefix, .. } = found.place();
            nodes.push(Unlinked { tree, prefix, node });
            next = found.handed_before();
        }
        // Oldest first: keys that came in order are sorted already.
        nodes.reverse();
        // SAFETY: as above.
        let key = |unlinked: &Unlinked| unsafe { unlinked.node.as_ref() }.key();
        nodes.sort_unstable_by(|a, b| {
            (a.tree, a.prefix).cmp(&(b.tree, b.prefix)).then_with(|| key(a).cmp(key(b)))
        });
        for (i, Unlinked { node, .. }) in nodes.iter().enumerate() {
            if let Some(ahead) = nodes.get(i + PREFETCH_DISTANCE) {
                prefetch(ahead.node.as_ptr());
            }
            // SAFETY: as above.
            self.find(splice, &unsafe { node.as_ref() }.place());
            self.link(splice, *node);
        }
        // Release: who sees the number finds the links. Only the holder of the lock writes it.
        let linked = self.linked.load(Ordering::Relaxed) + nodes.len();
        self.linked.store(linked, Ordering::Release);
        nodes.clear();
        nodes.shrink_to(SORTING_KEPT_MAX);
        splice.sorting = nodes;
    }

    /// The first node.
    pub(super) fn first(&self) -> Option<&Node> {
        self.order();
        self.head().next_at(0)
    }

    /// The first node at or after `place`.
    pub(super) fn at_or_after(&self, place: &Place<'_>) -> Option<&Node> {
        self.order();
        self.before(place).next_at(0)
    }

    /// The last node before `place`.
    pub(super) fn last_before(&self, place: &Place<'_>) -> Option<&Node> {
        self.order();
        self.unless_head(self.before(place))
    }

    fn unless_head<'l>(&'l self, node: &'l Node) -> Option<&'l Node> {
        (!ptr::eq(node, self.head())).then_some(node)
    }

    /// The last linked node before `place`, or the head.
    fn before(&self, place: &Place<'_>) -> &Node {
        let mut node = self.head();
        for level in (0..HEIGHT_MAX).rev() {
            while let Some(next) = node.next_at(level)
                && next.compare(place) == Order::Less
            {
                node = next;
            }
        }
        node
    }

    /// Moves the splice to where `place` belongs. It is not in the list.
    fn find(&self, splice: &mut Splice, place: &Place<'_>) {
        // SAFETY: the splice holds nodes of this list.
        let node = |at: NonNull<Node>| -> &Node { unsafe { at.as_ref() } };
        let is_before =
            |at: NonNull<Node>| at == self.head || node(at).compare(place) == Order::Less;
        let is_within = |level: usize, at: NonNull<Node>| {
            is_before(at)
                && node(at).next_at(level).is_none_or(|next| next.compare(place) == Order::Greater)
        };
        // Up to the lowest level on which the place lies where the last node was linked. On the
        // levels above it lies there as well or further on, since their steps are longer.
        let mut level = 0;
        while level < HEIGHT_MAX && !is_within(level, splice.previous[level]) {
            level += 1;
        }
        let mut at = if level < HEIGHT_MAX { splice.previous[level] } else { self.head };
        for below in (0..level).rev() {
            while let Some(next) = node(at).next_at(below)
                && next.compare(place) == Order::Less
            {
                at = NonNull::from(next);
            }
            splice.previous[below] = at;
        }
    }

    /// Links a node where the splice is, and moves the splice behind it.
    fn link(&self, splice: &mut Splice, node: NonNull<Node>) {
        // SAFETY: the node and those of the splice live as long as the list.
        unsafe {
            let new = node.as_ref();
            let previous = splice.previous[0];
            let next = previous.as_ref().next_at(0);
            // The way back first: with its next node on the lowest level a node counts as linked.
            new.set_back((previous != self.head).then_some(previous.as_ref()));
            for level in 0..new.height() {
                let previous = splice.previous[level].as_ref();
                new.set_next_at(level, previous.next_at(level));
                previous.set_next_at(level, Some(new));
                splice.previous[level] = node;
            }
            if let Some(next) = next {
                next.set_back(Some(new));
            }
        }
    }
}

/// Gives new nodes their heights: each level holds a quarter of the nodes of the one below.
pub(super) struct Heights {
    random: u64,
}

impl Heights {
    pub(super) fn new() -> Self {
        Self { random: 0x9e37_79b9_7f4a_7c15 }
    }

    pub(super) fn next(&mut self) -> usize {
        // xorshift64, Marsaglia 2003.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (1 + self.random.trailing_zeros() as usize / 2).min(HEIGHT_MAX)
    }
}
