//! The hash index: from a key to its node.
//!
//! It uses open addressing with linear probing. The writer fills empty slots and, when the table is
//! half full, publishes one several times as large. Old tables stay for readers still using them.
//! A slot holds the node's address and, in the 16 bits that addresses leave free, a part of the
//! hash.

use std::ptr::{self, NonNull};

use crate::tree::prefetch::{LINE_LEN, prefetch};

use super::{
    node::{Node, Place},
    sync::{AtomicPtr, AtomicUsize, Mutex, Ordering, PoisonError},
};

/// The minimum number of slots of a table that is written to. It is small where tests must see the
/// table grow and each step is expensive.
const SLOTS_MIN: usize = if cfg!(any(miri, feature = "shuttle")) { 1 << 2 } else { 1 << 10 };

/// Slots of a table for no nodes: most stores opened for reading are not written to.
const SLOTS_OF_NONE: usize = 2;

/// The factor by which a full table grows. Each size takes its memory from another place, so there
/// should be few sizes.
const GROWTH: usize = 4;
const TAG_SHIFT: u32 = 48;
const ADDRESS_MASK: usize = (1 << TAG_SHIFT) - 1;

/// When the table grows, nodes are prefetched this many slots ahead of the one being moved. At most
/// half of the slots are full.
const PREFETCH_DISTANCE: usize = 16;

/// The content of a slot: a node and a part of its hash in one pointer, or null if it is empty.
type Entry = *mut Node;

/// The node of a slot; null for an empty one.
fn node_of(entry: Entry) -> *const Node {
    entry.map_addr(|address| address & ADDRESS_MASK)
}

struct Slots {
    slots: Box<[AtomicPtr<Node>]>,
}

pub(super) struct Index {
    current: AtomicPtr<Slots>,
    /// All tables that were ever current, to be freed with the index. They are boxed to stay in
    /// place when the vector grows.
    #[expect(clippy::vec_box, reason = "readers point to the tables")]
    tables: Mutex<Vec<Box<Slots>>>,
    /// Bytes of all tables.
    bytes: AtomicUsize,
}

impl Slots {
    fn new(len: usize) -> Box<Self> {
        let slots = (0..len).map(|_| AtomicPtr::new(ptr::null_mut())).collect();
        Box::new(Self { slots })
    }

    fn bytes(&self) -> usize {
        self.slots.len() * size_of::<AtomicPtr<Node>>()
    }

    /// The slots in probe order.
    #[inline]
    fn probe(&self, hash: u64) -> impl Iterator<Item = &AtomicPtr<Node>> {
        let mask = self.slots.len() - 1;
        let start = hash as usize & mask;
        (0..self.slots.len()).map(move |i| &self.slots[(start + i) & mask])
    }

    fn insert(&self, hash: u64, entry: Entry) {
        let empty = self.probe(hash).find(|slot| slot.load(Ordering::Relaxed).is_null());
        // Release: a reader that sees the entry also sees the node's contents.
        empty.expect("the table is at most half full").store(entry, Ordering::Release);
    }
}

impl Index {
    /// An index that holds up to `len` nodes without growing.
    pub(super) fn for_len(len: usize) -> Self {
        let mut slots = Slots::new(match len {
            0 => SLOTS_OF_NONE,
            len => SLOTS_MIN.max((len * 2 + 1).next_power_of_two()),
        });
        let current = AtomicPtr::new(&raw mut *slots);
        let bytes = AtomicUsize::new(slots.bytes());
        Self { current, tables: Mutex::new(vec![slots]), bytes }
    }

    fn current(&self) -> &Slots {
        // SAFETY: `tables` keeps every table that was ever current as long as the index lives.
        unsafe { &*self.current.load(Ordering::Acquire) }
    }

    #[inline]
    pub(super) fn find(&self, hash: u64, place: &Place<'_>) -> Option<&Node> {
        let tag = (hash >> TAG_SHIFT) as usize;
        for slot in self.current().probe(hash) {
            let entry = slot.load(Ordering::Acquire);
            if entry.is_null() {
                return None;
            }
            if entry.addr() >> TAG_SHIFT == tag {
                // SAFETY: `insert` put the address of a node there; nodes live as long as the
                // memtable, of which this index is a part.
                let node = unsafe { &*node_of(entry) };
                // Its version most likely begins there. The key is still on its way meanwhile.
                prefetch(ptr::from_ref(node).cast::<u8>().wrapping_add(LINE_LEN));
                if node.is_at(place) {
                    return Some(node);
                }
            }
        }
        None
    }

    /// Adds a node that is not there yet. `len` is the number of nodes so far. Only the writer
    /// calls this.
    pub(super) fn insert(
        &self,
        hash: u64,
        node: NonNull<Node>,
        len: usize,
        hash_of: impl Fn(&Node) -> u64,
    ) {
        if len * 2 >= self.current().slots.len() {
            self.grow(hash_of);
        }
        let node = node.as_ptr();
        assert!(node.addr() <= ADDRESS_MASK, "an address of more than 48 bits");
        let tag = (hash >> TAG_SHIFT << TAG_SHIFT) as usize;
        self.current().insert(hash, node.map_addr(|address| address | tag));
    }

    #[cold]
    fn grow(&self, hash_of: impl Fn(&Node) -> u64) {
        let old = self.current();
        let mut new = Slots::new(SLOTS_MIN.max(old.slots.len() * GROWTH));
        for (i, slot) in old.slots.iter().enumerate() {
            if let Some(ahead) = old.slots.get(i + PREFETCH_DISTANCE) {
                prefetch(node_of(ahead.load(Ordering::Relaxed)));
            }
            let entry = slot.load(Ordering::Relaxed);
            if !entry.is_null() {
                // SAFETY: as in `find`.
                let node = unsafe { &*node_of(entry) };
                new.insert(hash_of(node), entry);
            }
        }
        self.current.store(&raw mut *new, Ordering::Release);
        self.bytes.fetch_add(new.bytes(), Ordering::Relaxed);
        self.tables.lock().unwrap_or_else(PoisonError::into_inner).push(new);
    }

    /// Bytes of the tables.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }
}
