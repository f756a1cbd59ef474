//! The segment that is being written.
//!
//! ```text
//! 0   magic            8 bytes   "TOKAIDOL"
//! 8   format version   u32       1
//! 12  zero             u32
//! 16  segment number   u64
//! 24  store            u64       a random number, the same in all files of a store
//! 32  CRC32C           u32       of the bytes before
//! 36  zeros                      up to 48
//! 48  frames, one behind the other, then zeros
//! ```
//! The file grows by zeros in large steps, ahead of the frames: a sync then has data to write and
//! no change of the file's length, which saves the file system's journal a commit.

use std::{io, sync::Arc};

use super::{FrameBuilder, LogFile, LogStorage};

const MAGIC: [u8; 8] = *b"TOKAIDOL";
const VERSION: u32 = 1;
pub(super) const HEADER_LEN: usize = 48;
const CRC_AT: usize = 32;

/// Bytes of zeros written ahead at a time.
const GROWTH_LEN: u64 = 1 << 20;

/// A segment that is being written.
pub(in crate::tree) struct Segment {
    file: Arc<dyn LogFile>,
    number: u64,
    /// Where the next frame goes.
    end: u64,
    /// Where the zeros end.
    len: u64,
}

/// A frame was not written.
#[derive(Debug)]
pub(in crate::tree) enum AppendError {
    /// Nothing of it is in the log.
    TakenBack(io::Error),
    /// Part of it may be in the log.
    Stuck(io::Error),
}

impl Segment {
    /// Begins a segment, durably.
    pub(in crate::tree) fn create(
        storage: &dyn LogStorage,
        number: u64,
        store: u64,
    ) -> io::Result<Self> {
        let file = storage.create(number)?;
        let result = file.write_at(&header(number, store), 0).and_then(|()| file.sync());
        if let Err(error) = result.and_then(|()| storage.sync_directory()) {
            // It holds nothing; if it cannot be removed either, recovery takes it for empty.
            let _ = storage.remove(number);
            return Err(error);
        }
        Ok(Self { file: file.into(), number, end: HEADER_LEN as u64, len: HEADER_LEN as u64 })
    }

    pub(in crate::tree) fn number(&self) -> u64 {
        self.number
    }

    /// Writes a frame, without syncing it.
    pub(in crate::tree) fn append(
        &mut self,
        frame: &mut FrameBuilder,
        durable_sequence: u64,
    ) -> Result<(), AppendError> {
        let bytes = frame.finish(durable_sequence);
        let end = self.end + bytes.len() as u64;
        let result = self.grow(end).and_then(|()| self.file.write_at(bytes, self.end));
        if let Err(error) = result {
            // Part of the frame may be there: it must not be taken for damage, nor a later frame
            // be looked for behind it.
            self.len = self.end;
            return match self.file.truncate(self.end) {
                Ok(()) => Err(AppendError::TakenBack(error)),
                Err(_) => Err(AppendError::Stuck(error)),
            };
        }
        self.end = end;
        Ok(())
    }

    /// Makes sure that the file reaches beyond `end`.
    fn grow(&mut self, end: u64) -> io::Result<()> {
        if end <= self.len {
            return Ok(());
        }
        let len = end + GROWTH_LEN;
        let zeros = vec![0; (len - self.len) as usize];
        self.file.write_at(&zeros, self.len)?;
        self.len = len;
        Ok(())
    }

    /// The file, for syncing it in the background.
    pub(in crate::tree) fn file(&self) -> Arc<dyn LogFile> {
        Arc::clone(&self.file)
    }

    /// Makes the frames durable.
    pub(in crate::tree) fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }
}

pub(super) fn header(number: u64, store: u64) -> [u8; HEADER_LEN] {
    let mut header = [0; HEADER_LEN];
    header[..8].copy_from_slice(&MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    header[16..24].copy_from_slice(&number.to_le_bytes());
    header[24..32].copy_from_slice(&store.to_le_bytes());
    let crc = crc32c::crc32c(&header[..CRC_AT]);
    header[CRC_AT..CRC_AT + 4].copy_from_slice(&crc.to_le_bytes());
    header
}

/// What the head of a segment says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Head {
    /// It is ours.
    Valid,
    /// It was never finished, so there is nothing behind it.
    Torn,
    /// It is of a version that we do not know.
    Version(u32),
    /// It is another store's, or another segment's.
    Foreign,
}

pub(super) fn check_header(bytes: &[u8], number: u64, store: u64) -> Head {
    let Some(found) = bytes.first_chunk::<HEADER_LEN>() else { return Head::Torn };
    let expected = header(number, store);
    if *found == expected {
        return Head::Valid;
    }
    let crc = crc32c::crc32c(&found[..CRC_AT]).to_le_bytes();
    if found[..8] != MAGIC || found[CRC_AT..CRC_AT + 4] != crc {
        return Head::Torn;
    }
    if found[8..12] != expected[8..12] {
        let version = [found[8], found[9], found[10], found[11]];
        return Head::Version(u32::from_le_bytes(version));
    }
    Head::Foreign
}
