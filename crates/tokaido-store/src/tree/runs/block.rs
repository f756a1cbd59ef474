//! A block: some entries of one tree, in the order of their keys.

use std::cmp::Ordering;

use super::format::{BLOCK_HEAD_LEN, DELETED, ENTRY_HEAD_LEN, u16_at, u32_at};

/// The stored record of a key, or that it was deleted.
pub(in crate::tree) type Change<'v> = Option<&'v [u8]>;

/// A block that is being read.
#[derive(Clone, Copy)]
pub(super) struct Block<'v> {
    pub(super) tree: u32,
    pub(super) count: usize,
    bytes: &'v [u8],
}

impl<'v> Block<'v> {
    /// `None` if the bytes are not a block.
    pub(super) fn parse(bytes: &'v [u8]) -> Option<Self> {
        let head = bytes.first_chunk::<BLOCK_HEAD_LEN>()?;
        let (tree, count) = (u32_at(head, 4), u32_at(head, 8) as usize);
        let places_end = count.checked_mul(4)?.checked_add(BLOCK_HEAD_LEN)?;
        (count > 0 && places_end <= bytes.len()).then_some(Self { tree, count, bytes })
    }

    /// Whether its checksum is correct.
    pub(super) fn is_whole(&self) -> bool {
        crc32c::crc32c(&self.bytes[4..]) == u32_at(self.bytes, 0)
    }

    /// The entry at this place, which is below `count`; `None` if it is damaged.
    #[inline]
    pub(super) fn entry(&self, place: usize) -> Option<(&'v [u8], Change<'v>)> {
        let at = u32_at(self.bytes, BLOCK_HEAD_LEN + 4 * place) as usize;
        let (head, rest) = self.bytes.get(at..)?.split_first_chunk::<ENTRY_HEAD_LEN>()?;
        let (key, rest) = rest.split_at_checked(usize::from(u16_at(head, 0)))?;
        match u32_at(head, 2) {
            DELETED => Some((key, None)),
            len => Some((key, Some(rest.get(..len as usize)?))),
        }
    }

    /// The place of the first entry that is not before `key`, and whether it has that key.
    pub(super) fn search(&self, key: &[u8]) -> Option<(usize, bool)> {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.entry(middle)?.0.cmp(key) {
                Ordering::Less => low = middle + 1,
                Ordering::Equal => return Some((middle, true)),
                Ordering::Greater => high = middle,
            }
        }
        Some((low, false))
    }
}

/// A block that is being built.
#[derive(Default)]
pub(super) struct BlockBuilder {
    tree: u32,
    places: Vec<u32>,
    entries: Vec<u8>,
}

impl BlockBuilder {
    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    pub(super) fn tree(&self) -> u32 {
        self.tree
    }

    /// The length of the block, in bytes.
    pub(super) fn len(&self) -> usize {
        BLOCK_HEAD_LEN + 4 * self.places.len() + self.entries.len()
    }

    /// The length of an entry, in bytes.
    pub(super) fn entry_len(key: &[u8], change: Change<'_>) -> usize {
        4 + ENTRY_HEAD_LEN + key.len() + change.map_or(0, <[u8]>::len)
    }

    /// Appends an entry, of the same tree as those before it.
    pub(super) fn push(&mut self, tree: u32, key: &[u8], change: Change<'_>) {
        debug_assert!(self.is_empty() || self.tree == tree);
        self.tree = tree;
        self.places.push(self.entries.len() as u32);
        self.entries.extend_from_slice(&(key.len() as u16).to_le_bytes());
        let len = change.map_or(DELETED, |record| record.len() as u32);
        self.entries.extend_from_slice(&len.to_le_bytes());
        self.entries.extend_from_slice(key);
        self.entries.extend_from_slice(change.unwrap_or_default());
    }

    /// Appends the bytes of the block to `out`, and begins an empty one.
    pub(super) fn finish(&mut self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&self.tree.to_le_bytes());
        out.extend_from_slice(&(self.places.len() as u32).to_le_bytes());
        let head_len = (BLOCK_HEAD_LEN + 4 * self.places.len()) as u32;
        for place in &self.places {
            out.extend_from_slice(&(head_len + place).to_le_bytes());
        }
        out.extend_from_slice(&self.entries);
        let sum = crc32c::crc32c(&out[start + 4..]);
        out[start..start + 4].copy_from_slice(&sum.to_le_bytes());
        self.places.clear();
        self.entries.clear();
    }
}
