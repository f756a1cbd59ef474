//! The memtable as a whole, and the handle of its one writer.

use std::{hash::BuildHasher, iter, ops::Bound, ptr::NonNull, sync::Arc};

use crate::Direction;

use super::{
    arena::{Arena, Cursor},
    index::Index,
    list::List,
    node::{Node, Place, Seen, TOMBSTONE, Version},
    sync::{AtomicUsize, Ordering},
    walk::Walk,
};

/// The minimum capacity of a version. A short record that grows within its transaction, as a
/// counter does, then stays next to its key.
const CAPACITY_MIN: usize = 24;

/// Every write since the last checkpoint; readers share it.
pub(in crate::tree) struct Memtable {
    arena: Arena,
    index: Index,
    list: List,
    trees: Trees,
    hasher: foldhash::fast::RandomState,
}

// SAFETY: the pointers lead into the arena, which is part of the table. Readers follow them by
// atomic loads that pair with the writer's stores. There is only one writer (`MemtableWriter`
// cannot be cloned). It changes nothing that a published link leads to, except for atomics and for
// versions whose sequence no reader may see yet.
unsafe impl Send for Memtable {}
// SAFETY: as above.
unsafe impl Sync for Memtable {}

/// Which trees may have nodes; many trees share a bit. A memtable seldom has nodes of the expiry
/// index or the catalog. With this, sweeping the one or reading the other does not need the order.
#[derive(Default)]
struct Trees {
    bits: AtomicUsize,
}

impl Trees {
    fn bit(tree: u32) -> usize {
        1 << (tree % usize::BITS)
    }

    /// Only the writer calls this, before any reader may see what it writes.
    fn add(&self, tree: u32) {
        let bits = self.bits.load(Ordering::Relaxed);
        if bits & Self::bit(tree) == 0 {
            self.bits.store(bits | Self::bit(tree), Ordering::Release);
        }
    }

    fn lacks(&self, tree: u32) -> bool {
        self.bits.load(Ordering::Acquire) & Self::bit(tree) == 0
    }
}

/// The right to write to a memtable.
pub(in crate::tree) struct MemtableWriter {
    table: Arc<Memtable>,
    cursor: Cursor,
    recent: Recent,
}

/// The node found or written last. The next call is often for the same key, or for the one that
/// was added after it, and then needs no lookup.
#[derive(Default)]
struct Recent {
    node: Option<NonNull<Node>>,
    /// Whether the call before that was for the node added just before this one.
    is_in_turn: bool,
}

impl Recent {
    #[inline]
    fn find(&mut self, place: &Place<'_>) -> Option<NonNull<Node>> {
        let node = self.node?;
        // SAFETY: the node lies in the arena of the table, which the writer keeps beside `self`.
        if unsafe { node.as_ref() }.is_at(place) {
            return Some(node);
        }
        let next = self.following().filter(|_| self.is_in_turn)?;
        // SAFETY: as above.
        unsafe { next.as_ref() }.is_at(place).then(|| *self.node.insert(next))
    }

    /// The node that was added after this one.
    #[inline]
    fn following(&self) -> Option<NonNull<Node>> {
        // SAFETY: as above.
        NonNull::new(unsafe { self.node?.as_ref() }.chained())
    }

    #[inline]
    fn set(&mut self, node: NonNull<Node>) {
        self.is_in_turn = self.following() == Some(node);
        self.node = Some(node);
    }
}

// SAFETY: the pointers lead into the arena of `table`, which moves along with them.
unsafe impl Send for MemtableWriter {}

/// Where a write went.
pub(in crate::tree) struct Written {
    /// The node of the key.
    pub node: NonNull<Node>,
    /// Whether it is the transaction's first write to the key, which a rollback must know of.
    pub is_first: bool,
}

impl Memtable {
    /// Makes a table and its writer. About `len` nodes are expected.
    pub(in crate::tree) fn create(len: usize) -> MemtableWriter {
        let arena = Arena::default();
        let mut cursor = Cursor::new();
        let piece = arena.allocate(&mut cursor, Node::size(0));
        // SAFETY: the piece is new and has the size of such a node.
        let head = unsafe { Node::write(piece, &Place::new(0, &[])) };
        // As the head of the list it must not count as unlinked, as a new node does.
        // SAFETY: it was just written.
        unsafe { head.as_ref() }.set_next(None);
        let list = List::new(head);
        let hasher = foldhash::fast::RandomState::default();
        let table =
            Self { arena, index: Index::for_len(len), list, trees: Trees::default(), hasher };
        MemtableWriter { table: Arc::new(table), cursor, recent: Recent::default() }
    }

    #[inline]
    fn hash(&self, tree: u32, key: &[u8]) -> u64 {
        self.hasher.hash_one((tree, key))
    }

    /// The node of a key.
    #[inline]
    pub(in crate::tree) fn find(&self, tree: u32, key: &[u8]) -> Option<&Node> {
        self.index.find(self.hash(tree, key), &Place::new(tree, key))
    }

    /// The first node of the tree from `from` on, in that direction.
    pub(in crate::tree) fn seek(
        &self,
        tree: u32,
        from: Bound<&[u8]>,
        direction: Direction,
    ) -> Option<&Node> {
        if self.trees.lacks(tree) {
            return None;
        }
        let (found, place) = match (from, direction) {
            // Usually no node has that key, so there is no separate lookup for it.
            (Bound::Included(key), Direction::Backward) => {
                let node = self.list.last_to(&Place::new(tree, key));
                return node.filter(|node| node.tree() == tree);
            }
            (Bound::Included(key) | Bound::Excluded(key), _) => {
                (self.find_linked(tree, key), Place::new(tree, key))
            }
            (Bound::Unbounded, Direction::Forward) => (None, Place::new(tree, &[])),
            (Bound::Unbounded, Direction::Backward) => (None, Place::new(tree + 1, &[])),
        };
        let node = match found {
            Some(node) if matches!(from, Bound::Included(_)) => Some(node),
            Some(node) => node.beside(direction),
            None => self.list.seek(&place, direction),
        };
        node.filter(|node| node.tree() == tree)
    }

    /// The node of a key, to continue from in order. A node that the writer has added since the
    /// call to `order` has no neighbours yet; the caller does not see it anyway.
    fn find_linked(&self, tree: u32, key: &[u8]) -> Option<&Node> {
        self.list.order();
        self.find(tree, key).filter(|node| node.is_linked())
    }

    /// A walk from a node that [`seek`](Self::seek) has found.
    pub(in crate::tree) fn walk<'t>(
        &'t self,
        from: Option<&'t Node>,
        direction: Direction,
    ) -> Walk<'t> {
        self.list.walk(from, direction)
    }

    /// All nodes in order.
    pub(in crate::tree) fn nodes(&self) -> impl Iterator<Item = &Node> {
        let mut walk = self.walk(self.list.first(), Direction::Forward);
        iter::from_fn(move || {
            let node = walk.node()?;
            walk.step();
            Some(node)
        })
    }

    /// The number of nodes.
    pub(in crate::tree) fn len(&self) -> usize {
        self.list.len()
    }

    #[cfg(all(test, not(feature = "shuttle")))]
    pub(super) fn list_bytes(&self) -> usize {
        self.list.bytes()
    }

    /// Bytes of memory that the table takes.
    pub(in crate::tree) fn bytes(&self) -> usize {
        self.arena.bytes() + self.index.bytes() + self.list.bytes()
    }
}

impl MemtableWriter {
    pub(in crate::tree) fn table(&self) -> &Arc<Memtable> {
        &self.table
    }

    /// The node of a key.
    #[inline]
    pub(in crate::tree) fn find(&mut self, tree: u32, key: &[u8]) -> Option<NonNull<Node>> {
        let place = Place::new(tree, key);
        self.recent.find(&place).or_else(|| self.look_up(self.table.hash(tree, key), &place))
    }

    /// Finds a node in the index.
    #[inline]
    fn look_up(&mut self, hash: u64, place: &Place<'_>) -> Option<NonNull<Node>> {
        let found = NonNull::from(self.table.index.find(hash, place)?);
        self.recent.set(found);
        Some(found)
    }

    /// Writes the record that `parts` make up, or a tombstone for `None`, under a key, as
    /// transaction `sequence`. A transaction has one version of a key: its later writes replace
    /// its first. `inspect` gets what this table held before.
    pub(in crate::tree) fn write(
        &mut self,
        tree: u32,
        key: &[u8],
        parts: Option<[&[u8]; 2]>,
        sequence: u64,
        inspect: impl FnOnce(Option<Seen<'_>>),
    ) -> Written {
        let place = Place::new(tree, key);
        let node = self.recent.find(&place).unwrap_or_else(|| {
            let hash = self.table.hash(tree, key);
            self.look_up(hash, &place).unwrap_or_else(|| self.insert(hash, &place))
        });
        // SAFETY: the node lies in the arena of `table`, which `self` keeps.
        inspect(unsafe { node.as_ref() }.latest());
        // SAFETY: as above.
        let newest = unsafe { node.as_ref() }.newest();
        // SAFETY: it is null or lies in the same arena. Only the writer changes it, and not while
        // `own` is in use.
        let own = unsafe { newest.as_ref() }.filter(|version| version.sequence == sequence);
        let is_first = own.is_none();
        let len = parts.map_or(0, |[head, tail]| head.len() + tail.len());
        match own {
            Some(own) if len <= own.capacity as usize => {
                // SAFETY: the version has room for `len` bytes, and its sequence is not published,
                // so no reader looks at them.
                unsafe { fill(newest, parts) }
            }
            _ => {
                let older = own.map_or(newest, |own| own.older);
                let version = self.version(sequence, older, parts, len);
                // SAFETY: as above.
                unsafe { node.as_ref() }.set_newest(version);
            }
        }
        Written { node, is_first }
    }

    /// Adds a node for a key that has none.
    fn insert(&mut self, hash: u64, place: &Place<'_>) -> NonNull<Node> {
        let table = &*self.table;
        table.trees.add(place.tree);
        let piece = table.arena.allocate(&mut self.cursor, Node::size(place.key.len()));
        // SAFETY: the piece is new and has the size of such a node; keys are far below 64 KiB.
        let node = unsafe { Node::write(piece, place) };
        let len = table.list.len();
        table.index.insert(hash, node, len, |node| table.hash(node.tree(), node.key()));
        // SAFETY: it is a new node of this table's arena.
        unsafe { table.list.add(node) };
        self.recent.set(node);
        node
    }

    fn version(
        &mut self,
        sequence: u64,
        older: *mut Version,
        parts: Option<[&[u8]; 2]>,
        len: usize,
    ) -> *mut Version {
        let capacity = len.max(CAPACITY_MIN).next_multiple_of(super::arena::ALIGN);
        let size = size_of::<Version>() + capacity;
        let piece = self.table.arena.allocate(&mut self.cursor, size).cast::<Version>();
        // SAFETY: the piece is new and has room for the struct and `capacity` bytes behind it.
        unsafe {
            piece.write(Version { sequence, older, len: 0, capacity: capacity as u32 });
            fill(piece.as_ptr(), parts);
        }
        piece.as_ptr()
    }

    /// Undoes what transaction `first` and those after it have written under a key. None of them
    /// is published.
    ///
    /// # Safety
    /// The node belongs to this table.
    pub(in crate::tree) unsafe fn take_back(&mut self, node: NonNull<Node>, first: u64) {
        // SAFETY: the caller vouches for the node. Its versions lie in the same arena, and only
        // the writer changes them.
        unsafe {
            let node = node.as_ref();
            let mut version = node.newest();
            while !version.is_null() && (*version).sequence >= first {
                version = (*version).older;
            }
            node.set_newest(version);
        }
    }
}

/// Fills a version with a record or a tombstone.
///
/// # Safety
/// The version has room for the parts, and no reader looks at it.
unsafe fn fill(version: *mut Version, parts: Option<[&[u8]; 2]>) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let Some([head, tail]) = parts else {
            (*version).len = TOMBSTONE;
            return;
        };
        let bytes = version.add(1).cast::<u8>();
        bytes.copy_from_nonoverlapping(head.as_ptr(), head.len());
        bytes.add(head.len()).copy_from_nonoverlapping(tail.as_ptr(), tail.len());
        (*version).len = (head.len() + tail.len()) as u32;
    }
}
