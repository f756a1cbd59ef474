//! A walk along the list that prefetches nodes before it reaches them.
//!
//! The nodes of the list are scattered in memory, and each knows only its neighbours, so following the links waits
//! for memory at every step. The leaves of the order index tell which nodes come later.

use crate::Direction;

use super::{
    node::Node,
    order_index::{LeafCursor, OrderIndex},
};

/// How many nodes ahead of the walk are prefetched.
const NODES_AHEAD: usize = 8;

/// How many nodes ahead newest versions are prefetched. Their address is known once the node is in the cache.
const VERSIONS_AHEAD: usize = 3;

/// A position in the list, at a node or at the end, that moves in one direction.
pub(in crate::tree) struct Walk<'t> {
    order_index: &'t OrderIndex,
    direction: Direction,
    node: Option<&'t Node>,
    ahead: Option<Ahead<'t>>,
}

/// What was prefetched, and where that continues. Nodes inserted meanwhile make it inexact, which does no harm.
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

    /// The current node.
    #[inline]
    pub(in crate::tree) fn node(&self) -> Option<&'t Node> {
        self.node
    }

    /// Moves to the next node. Only the first step starts prefetching: a search for a single node never steps.
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
    /// Prefetches the nodes that follow `node`.
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
