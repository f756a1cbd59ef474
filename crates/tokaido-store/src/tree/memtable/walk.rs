//! A way along the list that fetches nodes before it comes to them.
//!
//! Each node of the list lies somewhere else in memory, and says only which comes next, so to follow it is to wait
//! for memory at every step. The leaves of the order index say which ones come after that.

use crate::Direction;

use super::{
    node::Node,
    order_index::{LeafCursor, OrderIndex},
};

/// Nodes that are fetched before the walk comes to them.
const NODES_AHEAD: usize = 8;

/// The newest version of a node is known once the node is there; it is fetched so many nodes ahead.
const VERSIONS_AHEAD: usize = 3;

/// A node of the list, or its end, from which one goes on in one direction.
pub(in crate::tree) struct Walk<'t> {
    order_index: &'t OrderIndex,
    direction: Direction,
    node: Option<&'t Node>,
    ahead: Option<Ahead<'t>>,
}

/// What was fetched, and where it goes on. Nodes that are inserted meanwhile make it inexact, which does no harm.
struct Ahead<'t> {
    cursor: LeafCursor<'t>,
    fetched: [Option<&'t Node>; NODES_AHEAD],
    steps: usize,
}

impl<'t> Walk<'t> {
    pub(super) fn new(
        order_index: &'t OrderIndex,
        node: Option<&'t Node>,
        direction: Direction,
    ) -> Self {
        Self { order_index, direction, node, ahead: None }
    }

    /// The node at which it stands.
    #[inline]
    pub(in crate::tree) fn node(&self) -> Option<&'t Node> {
        self.node
    }

    /// Goes on to the next node. Only who does so fetches more than one: a search for one node ends at the first.
    #[inline]
    pub(in crate::tree) fn step(&mut self) {
        let Some(node) = self.node else { return };
        let (order_index, direction) = (self.order_index, self.direction);
        let ahead = self.ahead.get_or_insert_with(|| Ahead::behind(order_index, node, direction));
        ahead.step();
        self.node = node.beside(direction);
    }
}

impl<'t> Ahead<'t> {
    /// Fetches the nodes that follow one.
    #[cold]
    fn behind(order_index: &'t OrderIndex, node: &Node, direction: Direction) -> Self {
        let cursor = order_index.cursor(&node.place(), direction);
        let mut ahead = Self { cursor, fetched: [None; NODES_AHEAD], steps: 0 };
        for _ in 0..NODES_AHEAD {
            ahead.step();
        }
        ahead
    }

    #[inline]
    fn step(&mut self) {
        let at = self.steps % NODES_AHEAD;
        if let Some(node) = self.fetched[(at + VERSIONS_AHEAD) % NODES_AHEAD] {
            node.prefetch_newest();
        }
        let next = self.cursor.next();
        next.inspect(|node| node.prefetch());
        self.fetched[at] = next;
        self.steps += 1;
    }
}
