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
//! 48  frames, one after the other, then zeros
//! ```
//! The file grows by zeros in large steps, ahead of the frames: a sync then only has data to write
//! and leaves the file's length alone, which saves a commit of the file system's journal. Closing
//! the store cuts the zeros off, so that the next opening need not read them.

use std::{io, sync::Arc};

use super::{
    FrameBuilder, LogError, LogFile, LogStorage, RecoveryError, frame,
    recovery::{FOREIGN, damaged},
};

const MAGIC: [u8; 8] = *b"TOKAIDOL";
/// The version of a segment. Later versions are not read.
pub(crate) const VERSION: u32 = 1;
pub(super) const HEADER_LEN: usize = 48;
const CRC_AT: usize = 32;

/// A segment that is being written.
pub(in crate::tree) struct Segment {
    file: Arc<dyn LogFile>,
    tail: Tail,
    /// Whether the last frame is a mark, or there is none.
    is_marked: bool,
    /// Whether nothing has changed since the last sync.
    is_synced: bool,
}

/// The end of a segment.
#[derive(Clone, Debug)]
pub(in crate::tree) struct Tail {
    pub number: u64,
    /// Where the frames end and the next one goes.
    pub end: u64,
    /// Where the zeros after them end.
    pub len: u64,
    /// Where those of the found frames begin that nothing confirms as synced. They may not be on
    /// disk even after a sync: in an earlier process, a sync may have failed, after which the
    /// operating system takes them for written.
    pub unsure_from: Option<u64>,
}

impl Tail {
    /// Whether there are frames; if so, the segment's name is durable, too.
    pub(super) fn holds_frames(&self) -> bool {
        self.end > HEADER_LEN as u64
    }

    pub(super) fn open(&self, storage: &dyn LogStorage) -> io::Result<Segment> {
        Ok(self.clone().written_to(storage.open(self.number)?))
    }

    fn written_to(self, file: Box<dyn LogFile>) -> Segment {
        let is_marked = self.unsure_from.is_none();
        Segment { file: file.into(), tail: self, is_marked, is_synced: false }
    }
}

impl Segment {
    /// Begins a segment, durably.
    pub(in crate::tree) fn create(
        storage: &dyn LogStorage,
        number: u64,
        store: u64,
    ) -> io::Result<Self> {
        let end = HEADER_LEN as u64;
        let tail = Tail { number, end, len: end, unsure_from: None };
        let mut segment = tail.written_to(storage.create(number)?);
        if let Err(error) = segment.begin(storage, store) {
            // It has no frames; if it cannot be removed either, recovery treats it as empty.
            let _ = storage.remove(number);
            return Err(error);
        }
        Ok(segment)
    }

    /// Writes the header of a segment without frames, and makes it and the name durable.
    pub(super) fn begin(&mut self, storage: &dyn LogStorage, store: u64) -> io::Result<()> {
        self.file.write_at(&header(self.tail.number, store), 0)?;
        self.sync()?;
        storage.sync_directory()
    }

    /// Writes a frame, without syncing it, and returns its length. If the file has to grow, it
    /// grows by `growth_len` more.
    pub(in crate::tree) fn append(
        &mut self,
        frame: &mut FrameBuilder,
        durable_sequence: u64,
        growth_len: u64,
    ) -> Result<u64, LogError> {
        self.is_synced = false;
        let bytes = frame.finish(durable_sequence);
        let len = bytes.len() as u64;
        let end = self.tail.end + len;
        let result =
            self.grow(end, growth_len).and_then(|()| self.file.write_at(bytes, self.tail.end));
        if let Err(error) = result {
            // Part of the frame may be there: it must not be mistaken for damage, nor must a later
            // frame be looked for after it.
            self.tail.len = self.tail.end;
            return match self.file.truncate(self.tail.end) {
                Ok(()) => Err(LogError::Unchanged(error)),
                Err(_) => Err(LogError::Undetermined(error)),
            };
        }
        self.tail.end = end;
        self.is_marked = false;
        Ok(len)
    }

    /// Makes sure that the file reaches `end`.
    fn grow(&mut self, end: u64, growth_len: u64) -> io::Result<()> {
        if end <= self.tail.len {
            return Ok(());
        }
        let len = end + growth_len;
        let zeros = vec![0; (len - self.tail.len) as usize];
        self.file.write_at(&zeros, self.tail.len)?;
        self.tail.len = len;
        Ok(())
    }

    /// The file, for syncing it in the background.
    pub(in crate::tree) fn file(&self) -> Arc<dyn LogFile> {
        Arc::clone(&self.file)
    }

    /// Makes the frames that were written here durable.
    pub(in crate::tree) fn sync(&mut self) -> io::Result<()> {
        self.file.sync()?;
        self.is_synced = true;
        Ok(())
    }

    /// The frames that were found here and may not be on disk.
    pub(super) fn read_unsure(&self, storage: &dyn LogStorage) -> io::Result<Vec<u8>> {
        let Some(from) = self.tail.unsure_from else { return Ok(Vec::new()) };
        let mut bytes = storage.read(self.tail.number)?;
        bytes.truncate(self.tail.end as usize);
        Ok(bytes.split_off((from as usize).min(bytes.len())))
    }

    /// Makes all frames durable; `unsure` are those that were read. They are written again, since a
    /// sync alone is not enough.
    pub(super) fn make_durable(&mut self, unsure: &[u8]) -> io::Result<()> {
        if let Some(from) = self.tail.unsure_from {
            self.file.write_at(unsure, from)?;
            self.is_synced = false;
        }
        if !self.is_synced {
            self.sync()?;
        }
        self.tail.unsure_from = None;
        Ok(())
    }

    /// Writes a mark after the frames: they were synced, up to `sequence`, the last transaction.
    ///
    /// The mark itself is not synced. If a power failure takes it, the frames are written again at
    /// the next opening, as they would be without it. If a part is left, that is an interrupted
    /// write, and is cut off. For that it must be in the last segment, so `make_durable` is called
    /// before another one is created.
    pub(super) fn mark(&mut self, sequence: u64) -> io::Result<()> {
        if self.is_marked {
            return Ok(());
        }
        self.is_synced = false;
        let mark = frame::mark(sequence);
        self.file.write_at(&mark, self.tail.end)?;
        self.tail.end += mark.len() as u64;
        self.tail.len = self.tail.len.max(self.tail.end);
        self.is_marked = true;
        Ok(())
    }

    /// Cuts off the zeros that were written ahead, and the remains of a failed mark. No sync is
    /// needed: whether zeros or nothing follows the frames makes no difference.
    pub(super) fn cut_off_zeros(&mut self) -> io::Result<()> {
        if self.is_synced && self.tail.len == self.tail.end {
            return Ok(());
        }
        self.is_synced = false;
        self.file.truncate(self.tail.end)?;
        self.tail.len = self.tail.end;
        Ok(())
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

/// Whether a segment has a header. If the header was never finished, nothing follows it. It is an
/// error if the header is of another version, another store or another segment.
pub(super) fn check_header(bytes: &[u8], number: u64, store: u64) -> Result<bool, RecoveryError> {
    let Some(found) = bytes.first_chunk::<HEADER_LEN>() else { return Ok(false) };
    if *found == header(number, store) {
        return Ok(true);
    }
    let crc = crc32c::crc32c(&found[..CRC_AT]).to_le_bytes();
    if found[..8] != MAGIC || found[CRC_AT..CRC_AT + 4] != crc {
        return Ok(false);
    }
    match u32::from_le_bytes([found[8], found[9], found[10], found[11]]) {
        VERSION => Err(damaged(number, 0, FOREIGN)),
        version => Err(RecoveryError::Version(version)),
    }
}
