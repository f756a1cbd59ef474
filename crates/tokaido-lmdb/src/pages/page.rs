//! One page: its header and its nodes.
//!
//! ```text
//! 0   page number   u64
//! 8   padding       u16
//! 10  flags         u16   1 branch, 2 leaf, 4 overflow, 8 meta
//! 12  lower, upper  u16 each: where the free space begins and ends; or pages of an overflow, u32
//! 16  offsets of the nodes, u16 each, in the order of their keys
//! ```
//! A node is u16 low and u16 high half of the value's length (in a branch: of the child's number),
//! u16 flags (in a branch: the child's top bits), u16 length of the key, the key, the value.

use std::io;

pub(super) const HEADER_LEN: usize = 16;
const NODE_LEN: usize = 8;

pub(super) const BRANCH: u16 = 0x01;
pub(super) const LEAF: u16 = 0x02;
pub(super) const OVERFLOW: u16 = 0x04;
pub(super) const META: u16 = 0x08;

/// The value is on overflow pages; the node has the number of the first.
pub(super) const BIG_DATA: u16 = 0x01;
/// The value is the root of another tree.
const SUB_DATA: u16 = 0x02;

/// Longest key that LMDB stores.
const KEY_LEN_MAX: usize = 511;

/// What is wrong with a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageDamage {
    /// The number of the page.
    pub page: u64,
    /// What is wrong with it.
    pub what: String,
    /// Whether the operating system failed to read it, so that its content is unknown.
    pub is_unread: bool,
}

impl PageDamage {
    pub(super) fn new(page: u64, what: impl Into<String>) -> Self {
        Self { page, what: what.into(), is_unread: false }
    }

    pub(super) fn unread(page: u64, error: &io::Error) -> Self {
        Self { page, what: error.to_string(), is_unread: true }
    }
}

/// A branch or a leaf whose bounds have been checked.
pub(super) struct Page {
    pub(super) number: u64,
    bytes: Vec<u8>,
    pub(super) is_leaf: bool,
    pub(super) nodes: usize,
}

/// A node as it is stored in its page.
pub(super) struct Node<'p> {
    pub(super) key: &'p [u8],
    /// The value, in a leaf. Empty in a branch.
    pub(super) data: &'p [u8],
    pub(super) flags: u16,
    /// In a branch, the number of the child; in a leaf, the length of the value.
    pub(super) number: u64,
}

impl Node<'_> {
    /// Whether the value is the root of another tree.
    pub(super) fn is_root(&self) -> bool {
        self.flags & SUB_DATA != 0
    }
}

pub(super) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

impl Page {
    pub(super) fn new(number: u64, bytes: Vec<u8>) -> Result<Self, PageDamage> {
        let damaged = |what: &str| PageDamage::new(number, what);
        let header = (|| {
            let (lower, upper) = (u16_at(&bytes, 12)?, u16_at(&bytes, 14)?);
            Some((u64_at(&bytes, 0)?, u16_at(&bytes, 10)?, lower as usize, upper as usize))
        })();
        let (own, flags, lower, upper) = header.ok_or_else(|| damaged("it is cut off"))?;
        if own != number {
            return Err(damaged("it has another page's number"));
        }
        let is_leaf = match flags {
            LEAF => true,
            BRANCH => false,
            _ => return Err(damaged("it is neither a branch nor a leaf")),
        };
        if lower < HEADER_LEN || lower > upper || upper > bytes.len() || lower % 2 != 0 {
            return Err(damaged("its free space has impossible bounds"));
        }
        let nodes = (lower - HEADER_LEN) / 2;
        if nodes == 0 || (!is_leaf && nodes < 2) {
            return Err(damaged("it has too few nodes"));
        }
        Ok(Self { number, bytes, is_leaf, nodes })
    }

    /// The node at `index`, which is below `nodes`.
    pub(super) fn node(&self, index: usize) -> Result<Node<'_>, PageDamage> {
        let node = self.take(index);
        node.ok_or_else(|| PageDamage::new(self.number, format!("its node {index} is damaged")))
    }

    /// The first index, starting at `from`, for whose key `is_before` is false. It must be true for
    /// all keys before that.
    pub(super) fn partition(
        &self,
        from: usize,
        is_before: impl Fn(&[u8]) -> bool,
    ) -> Result<usize, PageDamage> {
        let (mut low, mut high) = (from, self.nodes);
        while low < high {
            let middle = low.midpoint(high);
            match is_before(self.node(middle)?.key) {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        Ok(low)
    }

    fn take(&self, index: usize) -> Option<Node<'_>> {
        let offset = u16_at(&self.bytes, HEADER_LEN + 2 * index)? as usize;
        if offset < HEADER_LEN + 2 * self.nodes {
            return None;
        }
        let header = self.bytes.get(offset..offset + NODE_LEN)?;
        let half = |at| u16_at(header, at).map(u64::from);
        let (low, high, flags, key_len) = (half(0)?, half(2)?, half(4)?, half(6)? as usize);
        let rest = &self.bytes[offset + NODE_LEN..];
        let (key, rest) = rest.split_at_checked(key_len)?;
        if !self.is_leaf {
            let number = low | high << 16 | flags << 32;
            // The first key of a branch covers everything below the second.
            let is_right = key_len <= KEY_LEN_MAX && (index == 0 || key_len > 0);
            return is_right.then_some(Node { key, data: &[], flags: 0, number });
        }
        if key_len == 0 || key_len > KEY_LEN_MAX {
            return None;
        }
        let number = low | high << 16;
        let is_big = flags as u16 & BIG_DATA != 0;
        let len = if is_big { 8 } else { number as usize };
        Some(Node { key, data: rest.get(..len)?, flags: flags as u16, number })
    }
}
