//! An intrusive chain of nodes, in the order in which they were added. The links are in the nodes,
//! so a chain takes no memory, however long it becomes. A node is part of one chain at most.

use std::{
    iter,
    ptr::{self, NonNull},
};

use super::node::Node;

#[derive(Default)]
pub(in crate::tree) struct Chain {
    ends: Option<Ends>,
}

#[derive(Clone, Copy)]
struct Ends {
    first: NonNull<Node>,
    last: NonNull<Node>,
}

impl Chain {
    /// Appends a node, unless it is already part of a chain. Returns whether it did.
    ///
    /// # Safety
    /// The node lives at least as long as any chain that it becomes part of.
    pub(in crate::tree) unsafe fn push(&mut self, node: NonNull<Node>) -> bool {
        // SAFETY: guaranteed by the caller.
        let new = unsafe { node.as_ref() };
        if !new.chained().is_null() {
            return false;
        }
        // The last node points to itself.
        new.set_chained(node.as_ptr());
        self.append(&mut Self { ends: Some(Ends { first: node, last: node }) });
        true
    }

    /// All nodes.
    pub(in crate::tree) fn nodes(&self) -> impl Iterator<Item = NonNull<Node>> {
        iter::successors(self.behind(None), |node| self.behind(Some(*node)))
    }

    /// Moves all nodes of another chain to the end of this one.
    pub(in crate::tree) fn append(&mut self, later: &mut Self) {
        let Some(later) = later.ends.take() else { return };
        let first = match self.ends {
            Some(Ends { first, last }) => {
                // SAFETY: as `push` requires.
                unsafe { last.as_ref() }.set_chained(later.first.as_ptr());
                first
            }
            None => later.first,
        };
        self.ends = Some(Ends { first, last: later.last });
    }

    /// The node after the given one, or the first for `None`.
    pub(in crate::tree) fn behind(&self, node: Option<NonNull<Node>>) -> Option<NonNull<Node>> {
        let Some(node) = node else { return self.ends.map(|ends| ends.first) };
        // SAFETY: as `push` requires.
        let next = NonNull::new(unsafe { node.as_ref() }.chained())?;
        (next != node).then_some(next)
    }

    pub(in crate::tree) fn last(&self) -> Option<NonNull<Node>> {
        self.ends.map(|ends| ends.last)
    }

    /// Unlinks all nodes.
    pub(in crate::tree) fn clear(&mut self) {
        let mut at = self.behind(None);
        while let Some(node) = at {
            at = self.behind(at);
            // SAFETY: as `push` requires.
            unsafe { node.as_ref() }.set_chained(ptr::null_mut());
        }
        self.ends = None;
    }
}
