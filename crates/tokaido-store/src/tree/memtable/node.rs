//! Nodes, one for each key, and their versions.

use std::{
    ptr::{self, NonNull},
    slice,
};

use crate::{
    Direction,
    tree::prefetch::{LINE_LEN, prefetch},
};

use super::sync::{AtomicPtr, Ordering};

/// Cache lines that a node with a short key and a short value takes.
const PREFETCHED_LINES: usize = 3;

/// A key. Its bytes follow the struct in the same piece of the arena, padded with zeros to a multiple
/// of eight.
#[repr(C)]
pub(in crate::tree) struct Node {
    /// The newest version; null after a rollback of the only one.
    versions: AtomicPtr<Version>,
    /// The next node in order; null for the last. The node itself while it is not linked.
    next: AtomicPtr<Node>,
    /// The previous node; null for the first. While the node is not linked, the one that was
    /// handed over before it.
    back: AtomicPtr<Node>,
    /// The next node of the same [chain](super::chain), or the node itself if it is the last; null
    /// if it is part of none.
    chained: AtomicPtr<Node>,
    tree: u32,
    key_len: u16,
}

/// What one transaction has written under a key. The stored record follows the struct.
#[repr(C)]
pub(super) struct Version {
    pub(super) sequence: u64,
    /// The previous version.
    pub(super) older: *mut Version,
    /// Bytes of the record; [`TOMBSTONE`] for a deletion.
    pub(super) len: u32,
    /// Bytes there is room for.
    pub(super) capacity: u32,
}

/// A length that no record has.
pub(super) const TOMBSTONE: u32 = u32::MAX;

/// What a reader finds under a key in the memtable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tree) enum Seen<'t> {
    /// This stored record.
    Record(&'t [u8]),
    /// The record was deleted: what older tables hold does not count.
    Deleted,
}

/// Bytes of a key's prefix.
const PREFIX_LEN: usize = WORD_LEN;

/// Bytes that are compared at once.
pub(super) const WORD_LEN: usize = 8;

/// The word of a key at `at`, as a number that sorts like its bytes, padded with zeros past the end of the key.
#[inline]
pub(super) fn word(key: &[u8], at: usize) -> u64 {
    let rest = key.get(at..).unwrap_or_default();
    match rest.first_chunk::<WORD_LEN>() {
        Some(word) => u64::from_be_bytes(*word),
        None => {
            let mut word = [0; WORD_LEN];
            word[..rest.len()].copy_from_slice(rest);
            u64::from_be_bytes(word)
        }
    }
}

/// A position in the order of nodes: by tree, then by key.
#[derive(Clone, Copy)]
pub(super) struct Place<'k> {
    pub(super) tree: u32,
    /// The first bytes of the key, padded with zeros if it is shorter. Most comparisons need no
    /// more.
    pub(super) prefix: u64,
    pub(super) key: &'k [u8],
}

impl<'k> Place<'k> {
    pub(super) fn new(tree: u32, key: &'k [u8]) -> Self {
        Self { tree, prefix: word(key, 0), key }
    }
}

impl Node {
    /// Bytes that a node takes.
    pub(super) fn size(key_len: usize) -> usize {
        size_of::<Self>() + key_len.next_multiple_of(PREFIX_LEN)
    }

    /// Writes a node without any links.
    ///
    /// # Safety
    /// `piece` has [`Node::size`] writable bytes, aligned for a pointer, and nothing else refers to
    /// them. The key has at most `u16::MAX` bytes.
    pub(super) unsafe fn write(piece: NonNull<u8>, place: &Place<'_>) -> NonNull<Self> {
        let node = piece.cast::<Self>();
        let header = Self {
            versions: AtomicPtr::new(ptr::null_mut()),
            next: AtomicPtr::new(node.as_ptr()),
            back: AtomicPtr::new(ptr::null_mut()),
            chained: AtomicPtr::new(ptr::null_mut()),
            tree: place.tree,
            key_len: place.key.len() as u16,
        };
        // SAFETY: both parts lie in the piece, which is large enough for them.
        unsafe {
            node.write(header);
            let key = node.add(1).cast::<u8>();
            if !place.key.is_empty() {
                let last_word = (place.key.len() - 1) / PREFIX_LEN;
                key.cast::<[u8; PREFIX_LEN]>().add(last_word).write([0; PREFIX_LEN]);
            }
            key.copy_from_nonoverlapping(NonNull::from(place.key).cast(), place.key.len());
        }
        node
    }

    /// Whether the node is linked into the list. Its neighbours are set then.
    pub(super) fn is_linked(&self) -> bool {
        // Acquire: pairs with the Release of `set_next`, before which `back` is set as well.
        !ptr::eq(self.next.load(Ordering::Acquire), self)
    }

    /// The node handed to the list before this one, while this one is not linked yet.
    pub(super) fn handed_before(&self) -> *mut Self {
        self.back.load(Ordering::Relaxed)
    }

    pub(super) fn set_handed_before(&self, node: *mut Self) {
        self.back.store(node, Ordering::Relaxed);
    }

    /// The same as the prefix of a [`Place`].
    #[inline]
    pub(super) fn prefix(&self) -> u64 {
        if self.key_len == 0 {
            return 0;
        }
        // SAFETY: `write` has put a key there, which is not empty, padded with zeros to a multiple
        // of eight. These bytes never change.
        u64::from_be_bytes(unsafe { *self.key_start().cast() })
    }

    pub(super) fn place(&self) -> Place<'_> {
        Place { tree: self.tree, prefix: self.prefix(), key: self.key() }
    }

    pub(in crate::tree) fn tree(&self) -> u32 {
        self.tree
    }

    fn key_start(&self) -> *const u8 {
        ptr::from_ref(self).wrapping_add(1).cast()
    }

    pub(in crate::tree) fn key(&self) -> &[u8] {
        // SAFETY: `write` has put the key there, and it never changes.
        unsafe { slice::from_raw_parts(self.key_start(), self.key_len as usize) }
    }

    /// The chain's owner has exclusive access, so the order of these accesses does not matter.
    pub(super) fn chained(&self) -> *mut Self {
        self.chained.load(Ordering::Relaxed)
    }

    pub(super) fn set_chained(&self, node: *mut Self) {
        self.chained.store(node, Ordering::Relaxed);
    }

    /// Prefetches the node and what most likely follows it: its first version.
    #[inline]
    pub(in crate::tree) fn prefetch(&self) {
        let start = ptr::from_ref(self).cast::<u8>();
        for line in 0..PREFETCHED_LINES {
            prefetch(start.wrapping_add(line * LINE_LEN));
        }
    }

    /// Prefetches the newest version, which lies elsewhere if the key was written again.
    #[inline]
    pub(in crate::tree) fn prefetch_newest(&self) {
        prefetch(self.newest());
    }

    /// The next node in that direction.
    #[inline]
    pub(in crate::tree) fn beside(&self, direction: Direction) -> Option<&Self> {
        match direction {
            Direction::Forward => self.next(),
            Direction::Backward => self.back(),
        }
    }

    /// The next node in order. This node was itself reached through the order.
    #[inline]
    pub(super) fn next(&self) -> Option<&Self> {
        // SAFETY: a link is null or leads to a node of the same arena, which lives as long as any
        // borrow of a node; Acquire pairs with the Release of `set_next`.
        unsafe { self.next.load(Ordering::Acquire).as_ref() }
    }

    pub(super) fn set_next(&self, next: Option<&Self>) {
        let next = next.map_or(ptr::null_mut(), |next| ptr::from_ref(next).cast_mut());
        self.next.store(next, Ordering::Release);
    }

    /// The previous node, like `next`. A reader that goes backwards may miss nodes that were linked
    /// after its snapshot, which it would not see anyway.
    pub(super) fn back(&self) -> Option<&Self> {
        // SAFETY: as in `next`.
        unsafe { self.back.load(Ordering::Acquire).as_ref() }
    }

    pub(super) fn set_back(&self, back: Option<&Self>) {
        let back = back.map_or(ptr::null_mut(), |back| ptr::from_ref(back).cast_mut());
        self.back.store(back, Ordering::Release);
    }

    /// Whether the node is before `place`. Usually the prefix decides.
    #[inline]
    pub(super) fn is_before(&self, place: &Place<'_>) -> bool {
        let own = (self.tree, self.prefix());
        own < (place.tree, place.prefix)
            || (own == (place.tree, place.prefix) && self.key() < place.key)
    }

    #[inline]
    pub(super) fn is_at(&self, place: &Place<'_>) -> bool {
        let key_len = self.key_len as usize;
        // The prefix holds all of a short key.
        key_len == place.key.len()
            && self.prefix() == place.prefix
            && self.tree == place.tree
            && (key_len <= PREFIX_LEN || self.key() == place.key)
    }

    /// The newest version.
    pub(super) fn newest(&self) -> *mut Version {
        self.versions.load(Ordering::Acquire)
    }

    pub(super) fn set_newest(&self, version: *mut Version) {
        self.versions.store(version, Ordering::Release);
    }

    /// Whether this table has at most one version of the key.
    pub(in crate::tree) fn is_first_version(&self) -> bool {
        let newest = self.newest();
        // SAFETY: as in `see`.
        newest.is_null() || unsafe { (*newest).older.is_null() }
    }

    /// What the newest version, published or not, holds.
    pub(in crate::tree) fn latest(&self) -> Option<Seen<'_>> {
        self.see(u64::MAX)
    }

    /// What a reader of the commits up to `sequence` finds; `None` if nothing had been written.
    #[inline]
    pub(in crate::tree) fn see(&self, sequence: u64) -> Option<Seen<'_>> {
        let mut version = self.newest();
        // SAFETY: versions live in the node's arena. One that a reader reaches was written before
        // it was linked. Its bytes do not change any more once its sequence is published, which
        // happens before any reader asks for that sequence.
        unsafe {
            while !version.is_null() {
                if (*version).sequence <= sequence {
                    return Some(Version::seen(version));
                }
                version = (*version).older;
            }
        }
        None
    }
}

impl<'t> Seen<'t> {
    /// The record, if it was not deleted.
    pub(in crate::tree) fn record(self) -> Option<&'t [u8]> {
        match self {
            Self::Record(stored) => Some(stored),
            Self::Deleted => None,
        }
    }
}

impl Version {
    /// # Safety
    /// The pointer leads to a version in an arena that lives as long as `'t`.
    unsafe fn seen<'t>(version: *const Self) -> Seen<'t> {
        // SAFETY: `len` bytes of the record follow the struct.
        unsafe {
            let len = (*version).len;
            if len == TOMBSTONE {
                return Seen::Deleted;
            }
            Seen::Record(slice::from_raw_parts(version.add(1).cast::<u8>(), len as usize))
        }
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::super::{
        Memtable,
        node::{Place, Seen},
    };

    /// A prefix is padded with zeros, which keys may contain as well.
    #[test]
    fn keys_that_differ_by_zeros_at_their_end_are_different() {
        let mut table = Memtable::create(0);
        let keys: Vec<Vec<u8>> =
            (0..20).map(|zeros| [&b"a"[..], &vec![0; zeros]].concat()).collect();
        for key in keys.iter().rev() {
            table.write(2, key, Some([key, b""]), 1, |_| {});
        }
        for key in &keys {
            let node = table.table().find(2, key).unwrap();
            assert_eq!(node.key(), key);
            assert_eq!(node.prefix(), Place::new(2, key).prefix);
            assert_eq!(node.latest(), Some(Seen::Record(key)));
        }
        assert!(table.table().find(2, &[0; 1]).is_none() && table.table().find(3, b"a").is_none());
        let in_order: Vec<&[u8]> = table.table().nodes().map(|node| node.key()).collect();
        assert_eq!(in_order, keys.iter().map(Vec::as_slice).collect::<Vec<_>>());
    }
}
