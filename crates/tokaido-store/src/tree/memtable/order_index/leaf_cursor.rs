//! A cursor over the entries of the leaves, which finds nodes that a walk along the list has not reached.

use crate::Direction;

use super::{
    super::node::{Node, Place},
    IndexPage, OrderIndex,
};

/// A cursor over the entries of the leaves. It is as inexact as a search.
pub(in crate::tree::memtable) struct LeafCursor<'g> {
    direction: Direction,
    leaf: Option<&'g IndexPage>,
    /// How many entries of the leaf are before the cursor.
    index: usize,
}

impl OrderIndex {
    /// A cursor that starts at a place.
    pub(in crate::tree::memtable) fn cursor(
        &self,
        place: &Place<'_>,
        direction: Direction,
    ) -> LeafCursor<'_> {
        let (leaf, index) = self.descend(place, |_, _| {});
        leaf.beside(direction).inspect(|next| next.prefetch());
        LeafCursor { direction, leaf: Some(leaf), index }
    }
}

impl<'g> LeafCursor<'g> {
    /// The next node.
    #[inline]
    pub(in crate::tree::memtable) fn next(&mut self) -> Option<&'g Node> {
        loop {
            let leaf = self.leaf?;
            match self.direction {
                Direction::Forward if self.index < leaf.len() => {
                    self.index += 1;
                    return leaf.node(self.index - 1);
                }
                Direction::Backward if self.index > 0 => {
                    self.index -= 1;
                    return leaf.node(self.index);
                }
                _ => self.enter(leaf.beside(self.direction)),
            }
        }
    }

    fn enter(&mut self, leaf: Option<&'g IndexPage>) {
        self.leaf = leaf;
        let Some(leaf) = leaf else { return };
        self.index = if self.direction == Direction::Forward { 0 } else { leaf.len() };
        leaf.beside(self.direction).inspect(|next| next.prefetch());
    }
}
