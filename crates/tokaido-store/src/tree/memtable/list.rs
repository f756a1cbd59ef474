//! The skip list: the nodes in order (Pugh, "Skip lists: a probabilistic alternative to balanced
//! trees", 1990), with one writer, as in LevelDB, and a way back on the lowest level.

use std::{cmp::Ordering as Order, ptr::NonNull};

use super::node::{HEIGHT_MAX, Node, Place};

/// The list begins at a node that has no key and every level.
pub(super) struct List {
    head: NonNull<Node>,
}

/// Where the writer linked its last node: on each level the node before it, and the one behind.
/// Most writes are near the last one, and then need no search from the top.
pub(super) struct Splice {
    previous: [NonNull<Node>; HEIGHT_MAX],
    random: u64,
}

impl List {
    pub(super) fn new(head: NonNull<Node>) -> Self {
        Self { head }
    }

    fn head(&self) -> &Node {
        // SAFETY: the head lies in the memtable's arena, as the list itself is part of it.
        unsafe { self.head.as_ref() }
    }

    /// The first node.
    pub(super) fn first(&self) -> Option<&Node> {
        self.head().next_at(0)
    }

    /// The last node before `place`, or the head.
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

    /// The first node at or after `place`.
    pub(super) fn at_or_after(&self, place: &Place<'_>) -> Option<&Node> {
        self.before(place).next_at(0)
    }

    /// The last node before `place`.
    pub(super) fn last_before(&self, place: &Place<'_>) -> Option<&Node> {
        let node = self.before(place);
        (!std::ptr::eq(node, self.head())).then_some(node)
    }

    pub(super) fn splice(&self) -> Splice {
        Splice { previous: [self.head; HEIGHT_MAX], random: 0x9e37_79b9_7f4a_7c15 }
    }

    /// Moves the splice to where `place` belongs. It is not in the list.
    pub(super) fn find(&self, splice: &mut Splice, place: &Place<'_>) {
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
    pub(super) fn link(&self, splice: &mut Splice, node: NonNull<Node>, height: usize) {
        // SAFETY: the node and those of the splice live as long as the list.
        unsafe {
            let new = node.as_ref();
            let previous = splice.previous[0];
            let next = previous.as_ref().next_at(0);
            new.set_back((previous != self.head).then_some(previous.as_ref()));
            for level in 0..height {
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

impl Splice {
    /// A height for a new node: each level holds a quarter of the one below.
    pub(super) fn height(&mut self) -> usize {
        // xorshift64, Marsaglia 2003.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (1 + self.random.trailing_zeros() as usize / 2).min(HEIGHT_MAX)
    }
}
