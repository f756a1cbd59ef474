//! Nodes one behind the other, in the order in which they came. They are chained by themselves, so
//! that a chain takes no memory, however long it becomes. A node is part of one chain at most.

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
    /// Puts a node at the end, unless it is part of a chain. Tells whether it did.
    ///
    /// # Safety
    /// The node lives as long as any chain that it comes to.
    pub(in crate::tree) unsafe fn push(&mut self, node: NonNull<Node>) -> bool {
        // SAFETY: the caller's.
        let new = unsafe { node.as_ref() };
        if !new.chained().is_null() {
            return false;
        }
        // The last one leads to itself.
        new.set_chained(node.as_ptr());
        self.append(&mut Self { ends: Some(Ends { first: node, last: node }) });
        true
    }

    /// All nodes.
    pub(in crate::tree) fn nodes(&self) -> impl Iterator<Item = NonNull<Node>> {
        iter::successors(self.behind(None), |node| self.behind(Some(*node)))
    }

    /// Takes over all nodes of another chain, behind its own.
    pub(in crate::tree) fn append(&mut self, later: &mut Self) {
        let Some(later) = later.ends.take() else { return };
        let first = match self.ends {
            Some(Ends { first, last }) => {
                // SAFETY: by `push`.
                unsafe { last.as_ref() }.set_chained(later.first.as_ptr());
                first
            }
            None => later.first,
        };
        self.ends = Some(Ends { first, last: later.last });
    }

    /// The node behind one of the chain, or the first.
    pub(in crate::tree) fn behind(&self, node: Option<NonNull<Node>>) -> Option<NonNull<Node>> {
        let Some(node) = node else { return self.ends.map(|ends| ends.first) };
        // SAFETY: by `push`.
        let next = NonNull::new(unsafe { node.as_ref() }.chained())?;
        (next != node).then_some(next)
    }

    pub(in crate::tree) fn last(&self) -> Option<NonNull<Node>> {
        self.ends.map(|ends| ends.last)
    }

    /// Lets go of all nodes.
    pub(in crate::tree) fn clear(&mut self) {
        let mut at = self.behind(None);
        while let Some(node) = at {
            at = self.behind(at);
            // SAFETY: by `push`.
            unsafe { node.as_ref() }.set_chained(ptr::null_mut());
        }
        self.ends = None;
    }
}
