//! A run that is being read.

use std::{cmp::Ordering, fs::File, io, path::Path};

use tokaido_cdb::Map;

use crate::{Direction, ReadError};

use super::{
    block::{Block, Change},
    cursor::{Cursor, Entry},
    filter,
    format::{
        FOOTER_LEN, Footer, INDEX_HEAD_LEN, RunEntry, damaged, key_hash, u16_at, u32_at, u64_at,
    },
};

/// A run that is read as a whole is requested in pieces of so many bytes, each while the one before it is read.
const AHEAD_BYTES: usize = 128 << 10;

/// A run cannot be opened.
#[derive(Debug, thiserror::Error)]
pub(in crate::tree) enum RunError {
    #[error("run {number} cannot be opened: {source}")]
    Io { number: u64, source: io::Error },
    #[error("run {number} is damaged: {what}")]
    Damaged { number: u64, what: &'static str },
}

/// The file of a run, mapped into memory. The file may be removed meanwhile.
pub(in crate::tree) struct Run {
    map: Map,
    footer: Footer,
    entry: RunEntry,
}

/// Where a block is, and its first entry.
pub(super) struct IndexEntry<'v> {
    at: u64,
    len: u32,
    pub(super) tree: u32,
    pub(super) key: &'v [u8],
}

impl IndexEntry<'_> {
    fn cmp(&self, tree: u32, key: &[u8]) -> Ordering {
        self.tree.cmp(&tree).then_with(|| self.key.cmp(key))
    }
}

impl Run {
    /// Opens the run that the base lists as `entry`, from the file `path`; `store` is the store's number. The contents
    /// are only verified when they are read, and may then turn out to be damaged.
    pub(in crate::tree) fn open(
        path: &Path,
        store: u64,
        entry: RunEntry,
    ) -> Result<Self, RunError> {
        let number = entry.number;
        let damaged = |what| RunError::Damaged { number, what };
        let io = |source: io::Error| match source.kind() {
            io::ErrorKind::NotFound => damaged("its file is not there"),
            _ => RunError::Io { number, source },
        };
        let file = File::open(path).map_err(io)?;
        if file.metadata().map_err(io)?.len() != entry.bytes || entry.bytes < FOOTER_LEN as u64 {
            return Err(damaged("its file has another length"));
        }
        let map = Map::new(&file, entry.bytes as usize).map_err(io)?;
        let footer = map.bytes().last_chunk().and_then(Footer::decode);
        let (footer, sum) = footer.ok_or(damaged("its footer cannot be read"))?;
        let is_named = (footer.store, footer.number, footer.entries, sum)
            == (store, number, entry.entries, entry.sum);
        if !is_named {
            return Err(damaged("it is another run than the base names"));
        }
        let places_end =
            footer.blocks.checked_mul(4).and_then(|len| len.checked_add(footer.places_at));
        if places_end.is_none_or(|end| end > entry.bytes) {
            return Err(damaged("its index is nowhere"));
        }
        Ok(Self { map, footer, entry })
    }

    /// Tells the operating system not to read pages ahead, since they would replace others where
    /// the store does not fit into memory.
    pub(in crate::tree) fn expect_random_reads(&self) {
        self.map.expect_random_reads();
    }

    pub(in crate::tree) fn entry(&self) -> RunEntry {
        self.entry
    }

    /// Reads the whole run and reports damage: all checksums must be correct, keys must be in order, and the filter must
    /// know them. It does not check records, since that depends on the kind of tree.
    pub(in crate::tree) fn verify(&self) -> Result<(), ReadError> {
        let Footer { index_at, places_at, blocks, index_sum, filter_sum, .. } = self.footer;
        let places_end = blocks.checked_mul(4).and_then(|len| places_at.checked_add(len));
        let index =
            places_end.and_then(|end| self.map.bytes().get(index_at as usize..end as usize));
        if index.is_none_or(|index| crc32c::crc32c(index) != index_sum) {
            return Err(self.index_damaged());
        }
        if crc32c::crc32c(self.filter()) != filter_sum {
            return Err(self.filter_damaged());
        }
        let mut cursor = Cursor::first(self)?;
        let (mut last, mut count) = (None, 0);
        while let Some(Entry { tree, key, .. }) = cursor.entry() {
            if last.is_some_and(|last| last >= (tree, key)) {
                return Err(self.block_damaged());
            }
            if !filter::may_have(self.filter(), key_hash(tree, key)) {
                return Err(self.filter_damaged());
            }
            last = Some((tree, key));
            count += 1;
            cursor.step(Direction::Forward)?;
        }
        if count != self.entry.entries {
            return Err(damaged(self.entry.number, "the number of entries"));
        }
        Ok(())
    }

    pub(super) fn blocks(&self) -> usize {
        self.footer.blocks as usize
    }

    fn index_damaged(&self) -> ReadError {
        damaged(self.entry.number, "the index")
    }

    fn filter_damaged(&self) -> ReadError {
        damaged(self.entry.number, "the filter")
    }

    pub(super) fn block_damaged(&self) -> ReadError {
        damaged(self.entry.number, "a block")
    }

    pub(super) fn index_entry(&self, block: usize) -> Result<IndexEntry<'_>, ReadError> {
        self.find_index_entry(block).ok_or_else(|| self.index_damaged())
    }

    fn find_index_entry(&self, block: usize) -> Option<IndexEntry<'_>> {
        let bytes = self.map.bytes();
        let place_at = (self.footer.places_at as usize).checked_add(block.checked_mul(4)?)?;
        let place = u32_at(bytes.get(place_at..place_at.checked_add(4)?)?, 0) as usize;
        let at = (self.footer.index_at as usize).checked_add(place)?;
        let (head, rest) = bytes.get(at..)?.split_first_chunk::<INDEX_HEAD_LEN>()?;
        let key = rest.get(..usize::from(u16_at(head, 16)))?;
        Some(IndexEntry { at: u64_at(head, 0), len: u32_at(head, 8), tree: u32_at(head, 12), key })
    }

    pub(super) fn block(&self, block: usize) -> Result<Block<'_>, ReadError> {
        let entry = self.index_entry(block)?;
        let (from, len) = (entry.at as usize, entry.len as usize);
        let bytes = from.checked_add(len).and_then(|to| self.map.bytes().get(from..to));
        let block = bytes.and_then(Block::parse).filter(|block| block.tree == entry.tree);
        block.ok_or_else(|| self.block_damaged())
    }

    /// Requests what comes some way after a block, for a cursor that enters one block after the other. If the
    /// system reads no pages ahead, it would otherwise wait for each.
    pub(super) fn read_ahead(&self, block: usize) {
        let Ok(IndexEntry { at, len, .. }) = self.index_entry(block) else { return };
        let end = at.saturating_add(u64::from(len));
        if end > self.entry.bytes {
            return;
        }
        let (from, to) = (at as usize / AHEAD_BYTES, end as usize / AHEAD_BYTES);
        if block == 0 {
            self.map.will_need(0..2 * AHEAD_BYTES);
        } else if from != to {
            self.map.will_need((to + 1) * AHEAD_BYTES..(to + 2) * AHEAD_BYTES);
        }
    }

    /// How many blocks begin at or before a key.
    pub(super) fn blocks_to(&self, tree: u32, key: &[u8]) -> Result<usize, ReadError> {
        let (mut low, mut high) = (0, self.blocks());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.index_entry(middle)?.cmp(tree, key) {
                Ordering::Greater => high = middle,
                Ordering::Less | Ordering::Equal => low = middle + 1,
            }
        }
        Ok(low)
    }

    fn filter(&self) -> &[u8] {
        let from = self.footer.filter_at as usize;
        let to = from.checked_add(self.footer.filter_len as usize);
        to.and_then(|to| self.map.bytes().get(from..to)).unwrap_or_default()
    }

    /// Begins to load what [`find`](Self::find) needs first.
    #[inline]
    pub(super) fn prefetch(&self, hash: u64) {
        filter::prefetch_for(self.filter(), hash);
    }

    /// The change of a key with this hash, if it has one.
    #[inline]
    pub(super) fn find(
        &self,
        hash: u64,
        tree: u32,
        key: &[u8],
    ) -> Result<Option<Change<'_>>, ReadError> {
        if filter::may_have(self.filter(), hash) { self.look_up(tree, key) } else { Ok(None) }
    }

    fn look_up(&self, tree: u32, key: &[u8]) -> Result<Option<Change<'_>>, ReadError> {
        let Some(number) = self.blocks_to(tree, key)?.checked_sub(1) else { return Ok(None) };
        let block = self.block(number)?;
        if block.tree != tree {
            return Ok(None);
        }
        let damaged = || self.block_damaged();
        match block.search(key).ok_or_else(damaged)? {
            (place, true) => Ok(Some(block.entry(place).ok_or_else(damaged)?.1)),
            (_, false) => Ok(None),
        }
    }

    /// The last tree that it has entries of.
    pub(super) fn last_tree(&self) -> Result<Option<u32>, ReadError> {
        let last = self.blocks().checked_sub(1);
        last.map(|last| Ok(self.index_entry(last)?.tree)).transpose()
    }

    /// Whether it has entries of a tree.
    pub(super) fn has_tree(&self, tree: u32) -> Result<bool, ReadError> {
        let next = self.blocks_to(tree, &[])?;
        let first = next < self.blocks() && self.index_entry(next)?.tree == tree;
        Ok(first || next > 0 && self.index_entry(next - 1)?.tree == tree)
    }
}
