//! The active memtable, the frozen one, the runs and the base, read as one.

use std::{
    cell::RefCell,
    ops::{Bound, ControlFlow},
    ptr::NonNull,
    sync::Arc,
};

use crate::{DatabaseId, Direction, ReadError, limits};

use super::{
    base::{BaseView, Stored},
    disk::{Disk, DiskScan},
    memtable::{Memtable, Node, Seen, Walk},
    tables::Tables,
};

/// All records as of one commit.
pub(super) struct View {
    pub(super) tables: Arc<Tables>,
    pub(super) base: BaseView,
    /// Versions above this one are not seen.
    sequence: u64,
    /// Where the last search in each of the memtables ended.
    hints: [RefCell<Hint>; 2],
}

/// The position that a scan of one table has reached.
#[derive(Default)]
struct Hint {
    tree: u32,
    direction: Option<Direction>,
    /// `node` is the nearest one beyond this key.
    key: Vec<u8>,
    node: Option<NonNull<Node>>,
}

// SAFETY: a view keeps the tables of its hints, and any thread may use their nodes.
unsafe impl Send for Hint {}

/// What a hint says about the nearest node beyond a key.
enum Answer {
    /// It is this one, or there is none.
    At(Option<NonNull<Node>>),
    /// It is the one after this.
    Behind(NonNull<Node>),
    Unknown,
}

impl Hint {
    fn answer(&self, tree: u32, key: &[u8], direction: Direction) -> Answer {
        let is_of_scan = self.tree == tree && self.direction == Some(direction);
        if !is_of_scan || direction.is_before(key, &self.key) {
            return Answer::Unknown;
        }
        let Some(node) = self.node else { return Answer::At(None) };
        // SAFETY: as for `Send`.
        let found = unsafe { node.as_ref() }.key();
        match found == key {
            true => Answer::Behind(node),
            false if direction.is_before(key, found) => Answer::At(Some(node)),
            false => Answer::Unknown,
        }
    }

    /// Invalidates the hint: a node that was not visible before may lie in between.
    fn forget(&mut self) {
        self.direction = None;
    }

    fn remember(
        &mut self,
        tree: u32,
        key: &[u8],
        direction: Direction,
        node: Option<NonNull<Node>>,
    ) {
        self.tree = tree;
        self.direction = Some(direction);
        self.key.clear();
        self.key.extend_from_slice(key);
        self.node = node;
    }
}

/// The rest of a scan, once the memtables have no more entries.
fn scan_disk<'v>(
    scan: &mut DiskScan<'v, '_>,
    to: Bound<&[u8]>,
    direction: Direction,
    mut next: Option<Stored<'v>>,
    mut visit: impl FnMut(Stored<'v>) -> Result<ControlFlow<()>, ReadError>,
) -> Result<(), ReadError> {
    while let Some(entry) = next {
        if direction.is_past(entry.0, to) || visit(entry)?.is_break() {
            return Ok(());
        }
        next = scan.next(entry.0)?;
    }
    Ok(())
}

/// Refuses a key that no record of the keyspace can have.
#[inline]
pub(super) fn check_key(keyspace: DatabaseId, key: &[u8]) -> Result<(), ReadError> {
    keyspace.check_key(key, limits::KEY_LEN_MAX)
}

impl View {
    pub(super) fn new(tables: Arc<Tables>, base: BaseView, sequence: u64) -> Self {
        Self { tables, base, sequence, hints: Default::default() }
    }

    /// Releases the view. What is left of it can be reused for the next one.
    pub(super) fn release(mut self) -> BaseView {
        self.base.release();
        self.base
    }

    /// Sees the versions up to `sequence` from now on.
    pub(super) fn move_to(&mut self, sequence: u64) {
        if sequence != self.sequence {
            self.sequence = sequence;
            for hint in &mut self.hints {
                hint.get_mut().forget();
            }
        }
    }

    /// The stored record under `key`, expired or not.
    #[inline]
    pub(super) fn find(&self, tree: u32, key: &[u8]) -> Result<Option<&[u8]>, ReadError> {
        let node = self.tables.active.find(tree, key);
        match node.and_then(|node| node.see(self.sequence)) {
            Some(seen) => Ok(seen.record()),
            None => self.find_below(tree, key),
        }
    }

    /// Like [`find`](Self::find), below the active memtable.
    #[inline]
    pub(super) fn find_below(&self, tree: u32, key: &[u8]) -> Result<Option<&[u8]>, ReadError> {
        let node = self.tables.frozen.as_ref().and_then(|table| table.find(tree, key));
        match node.and_then(|node| node.see(self.sequence)) {
            Some(seen) => Ok(seen.record()),
            None => self.disk().find(tree, key),
        }
    }

    /// What is below the memtables.
    #[inline]
    pub(super) fn disk(&self) -> Disk<'_> {
        Disk { runs: &self.tables.runs, base: &self.base }
    }

    /// What the memtables know about a key, if anything: its stored record, or that it was
    /// deleted.
    pub(super) fn find_written(&self, tree: u32, key: &[u8]) -> Option<Option<&[u8]>> {
        let mut tables = self.tables.memtables();
        let seen = tables.find_map(|table| table.find(tree, key)?.see(self.sequence));
        seen.map(Seen::record)
    }

    /// Calls `visit` with the entries from `from` to `to`, until it breaks.
    pub(super) fn scan<'v>(
        &'v self,
        tree: u32,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        direction: Direction,
        mut visit: impl FnMut(Stored<'v>) -> Result<ControlFlow<()>, ReadError>,
    ) -> Result<(), ReadError> {
        let is_nearer = |a: &[u8], b: &[u8]| direction.is_before(a, b);
        let mut newer: [Option<Walk<'_>>; 2] = [None, None];
        for (i, (table, at)) in self.tables.memtables().zip(&mut newer).enumerate() {
            let node = self.hinted(i, table, tree, from, direction);
            *at = node.map(|node| table.walk(Some(node), direction));
        }
        let mut disk_scan = self.disk().scan(tree, from, to, direction)?;
        let mut on_disk = disk_scan.entry();
        loop {
            // The nearest key. If several layers have it, the newest one counts.
            let mut best: Option<&Node> = None;
            for node in newer.iter().flatten().filter_map(Walk::node) {
                if best.is_none_or(|nearest| is_nearer(node.key(), nearest.key())) {
                    best = Some(node);
                }
            }
            let (key, stored) = match (best, on_disk) {
                (None, None) => return Ok(()),
                (Some(node), None) => (node.key(), self.see(node)),
                (Some(node), Some((key, _))) if !is_nearer(key, node.key()) => {
                    (node.key(), self.see(node))
                }
                (_, Some((key, stored))) => (key, Some(stored)),
            };
            // Past the end there may be many deleted entries.
            if direction.is_past(key, to) {
                return Ok(());
            }
            if let Some(stored) = stored
                && visit((key, stored))?.is_break()
            {
                return Ok(());
            }
            // Every layer that is at this key moves on.
            for at in &mut newer {
                if let Some(walk) = at
                    && walk.node().is_some_and(|node| node.key() == key)
                    && !self.step(walk, tree)
                {
                    *at = None;
                }
            }
            if on_disk.is_some_and(|(found, _)| found == key) {
                on_disk = disk_scan.next(key)?;
                if newer.iter().all(Option::is_none) {
                    return scan_disk(&mut disk_scan, to, direction, on_disk, visit);
                }
            }
        }
    }

    /// Moves to the next node of the tree that the view sees. Returns whether there is one.
    #[inline]
    fn step(&self, walk: &mut Walk<'_>, tree: u32) -> bool {
        loop {
            walk.step();
            match walk.node() {
                Some(node) if node.tree() != tree => return false,
                Some(node) if node.see(self.sequence).is_none() => {}
                found => return found.is_some(),
            }
        }
    }

    /// Like [`first_node`](Self::first_node), without a search if a scan continues the last one.
    fn hinted<'v>(
        &'v self,
        i: usize,
        table: &'v Memtable,
        tree: u32,
        from: Bound<&[u8]>,
        direction: Direction,
    ) -> Option<&'v Node> {
        // In the writer's own view, a node may be added in between to the active memtable.
        let is_fixed = self.sequence != u64::MAX || i > 0;
        let Bound::Excluded(key) = from else {
            return self.first_node(table, tree, from, direction);
        };
        if !is_fixed {
            return self.first_node(table, tree, from, direction);
        }
        let mut hint = self.hints[i].borrow_mut();
        let found = match hint.answer(tree, key, direction) {
            // SAFETY: the node belongs to a table that this view keeps.
            Answer::At(node) => return node.map(|node| unsafe { node.as_ref() }),
            Answer::Behind(node) => {
                // SAFETY: as above.
                let node = unsafe { node.as_ref() };
                self.first_seen(node.beside(direction), tree, direction)
            }
            Answer::Unknown => self.first_node(table, tree, from, direction),
        };
        hint.remember(tree, key, direction, found.map(NonNull::from));
        found
    }

    /// The record of a node that this view sees; `None` if it was deleted.
    fn see<'v>(&self, node: &'v Node) -> Option<&'v [u8]> {
        node.see(self.sequence).and_then(Seen::record)
    }

    /// The nearest node of one table that this view sees.
    fn first_node<'v>(
        &self,
        table: &'v Memtable,
        tree: u32,
        from: Bound<&[u8]>,
        direction: Direction,
    ) -> Option<&'v Node> {
        let node = table.seek(tree, from, direction);
        self.first_seen(node, tree, direction)
    }

    /// The first node of the tree, from this one on, that the view sees.
    fn first_seen<'v>(
        &self,
        node: Option<&'v Node>,
        tree: u32,
        direction: Direction,
    ) -> Option<&'v Node> {
        let mut node = node.filter(|node| node.tree() == tree);
        while let Some(found) = node
            && found.see(self.sequence).is_none()
        {
            node = found.beside(direction).filter(|next| next.tree() == tree);
        }
        node
    }

    /// Whether nothing below the active memtable has the tree.
    pub(super) fn is_new(&self, tree: u32) -> bool {
        self.tables.frozen.is_none() && self.disk().lacks(tree)
    }
}
