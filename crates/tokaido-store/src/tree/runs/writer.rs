//! Writing a run.
//!
//! The system keeps unsynced writes in memory until it writes much of them to disk at once. A sync of the log at that
//! time waits behind all of it. So a run is synced piece by piece.

use std::{fs::File, io, io::Write};

use super::{
    block::{BlockBuilder, Change},
    directory::RunDirectory,
    filter::FilterBuilder,
    format::{BLOCK_BYTES, Footer, INDEX_HEAD_LEN, RunEntry},
};

use crate::tree::{files, prefetch::LINE_LEN};

/// Bytes that are buffered in memory and written between two syncs.
const PIECE_BYTES: usize = 2 << 20;

/// A run that is being written. Its file is removed if it is not finished.
pub(in crate::tree) struct RunWriter<'d> {
    directory: &'d RunDirectory,
    number: u64,
    store: u64,
    file: File,
    /// Bytes written so far.
    len: u64,
    /// What is to be written next.
    piece: Vec<u8>,
    block: BlockBuilder,
    /// The first key of the block.
    first_key: Vec<u8>,
    index: Vec<u8>,
    places: Vec<u8>,
    filter: FilterBuilder,
    entries: u64,
    is_finished: bool,
}

impl<'d> RunWriter<'d> {
    /// Begins a run of the store with this number, for at most `keys_max` keys.
    pub(in crate::tree) fn begin(
        directory: &'d RunDirectory,
        store: u64,
        keys_max: usize,
    ) -> io::Result<Self> {
        directory.make()?;
        let number = directory.take_number();
        let file = files::create_new(&directory.path(number))?;
        Ok(Self {
            directory,
            number,
            store,
            file,
            len: 0,
            piece: Vec::new(),
            block: BlockBuilder::default(),
            first_key: Vec::new(),
            index: Vec::new(),
            places: Vec::new(),
            filter: FilterBuilder::new(keys_max),
            entries: 0,
            is_finished: false,
        })
    }

    pub(in crate::tree) fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// Appends the change of a key, which has this hash and comes after all keys so far. Returns whether a piece has
    /// just been written and synced.
    pub(in crate::tree) fn push(
        &mut self,
        hash: u64,
        tree: u32,
        key: &[u8],
        change: Change<'_>,
    ) -> io::Result<bool> {
        let is_full = self.block.len() + BlockBuilder::entry_len(key, change) > BLOCK_BYTES;
        let mut is_written = false;
        if !self.block.is_empty() && (is_full || self.block.tree() != tree) {
            is_written = self.end_block()?;
        }
        if self.block.is_empty() {
            self.first_key.clear();
            self.first_key.extend_from_slice(key);
        }
        self.block.push(tree, key, change);
        self.filter.add(hash);
        self.entries += 1;
        Ok(is_written)
    }

    fn end_block(&mut self) -> io::Result<bool> {
        let (at, start) = (self.len + self.piece.len() as u64, self.piece.len());
        let tree = self.block.tree();
        self.block.finish(&mut self.piece);
        let len = self.piece.len() - start;
        let place = u32::try_from(self.index.len());
        let place = place.map_err(|_| io::Error::other("the index of a run is too large"))?;
        self.places.extend_from_slice(&place.to_le_bytes());
        self.index.reserve(INDEX_HEAD_LEN + self.first_key.len());
        self.index.extend_from_slice(&at.to_le_bytes());
        self.index.extend_from_slice(&(len as u32).to_le_bytes());
        self.index.extend_from_slice(&tree.to_le_bytes());
        self.index.extend_from_slice(&(self.first_key.len() as u16).to_le_bytes());
        self.index.extend_from_slice(&self.first_key);
        match self.piece.len() >= PIECE_BYTES {
            true => self.write_piece().map(|()| true),
            false => Ok(false),
        }
    }

    fn write_piece(&mut self) -> io::Result<()> {
        self.file.write_all(&self.piece)?;
        self.file.sync_data()?;
        self.len += self.piece.len() as u64;
        self.piece.clear();
        Ok(())
    }

    /// Ends the run and makes it durable, along with its name. Returns what the base is to record of it.
    pub(in crate::tree) fn finish(mut self) -> io::Result<RunEntry> {
        if !self.block.is_empty() {
            self.end_block()?;
        }
        let index_at = self.len + self.piece.len() as u64;
        let places_at = index_at + self.index.len() as u64;
        let index_sum = crc32c::crc32c_append(crc32c::crc32c(&self.index), &self.places);
        let places_end = places_at + self.places.len() as u64;
        let filter_at = places_end.next_multiple_of(LINE_LEN as u64);
        let filter = self.filter.bytes();
        let footer = Footer {
            store: self.store,
            number: self.number,
            entries: self.entries,
            blocks: (self.places.len() / 4) as u64,
            index_at,
            places_at,
            filter_at,
            filter_len: filter.len() as u64,
            index_sum,
            filter_sum: crc32c::crc32c(filter),
        }
        .encode();
        self.piece.append(&mut self.index);
        self.piece.append(&mut self.places);
        self.piece.resize(self.piece.len() + (filter_at - places_end) as usize, 0);
        self.piece.extend_from_slice(filter);
        self.piece.extend_from_slice(&footer);
        self.write_piece()?;
        self.directory.sync()?;
        self.is_finished = true;
        let sum = super::format::u32_at(&footer, footer.len() - 4);
        Ok(RunEntry { number: self.number, bytes: self.len, entries: self.entries, sum })
    }
}

impl Drop for RunWriter<'_> {
    fn drop(&mut self) {
        if !self.is_finished {
            self.directory.remove(self.number);
        }
    }
}
