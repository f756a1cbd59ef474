//! Checks on the log that must hold for arbitrary bytes.

use std::{
    collections::BTreeMap,
    io,
    sync::{Arc, Mutex, PoisonError},
};

use super::{
    FrameBuilder, LogFile, LogStorage, Operation,
    frame::{self, Frame, HEADER_LEN},
    operations, recover,
    segment::header,
};

const STORE: u64 = 53;

/// `bytes` with the magic number and the checksum of a frame wherever there could be one,
/// which a fuzzer would hardly find by itself.
#[must_use]
pub fn valid_sums(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let mut at = 0;
    while let Some(frame) = bytes.get_mut(at..).filter(|rest| rest.len() >= HEADER_LEN) {
        let payload_len = frame[8..].first_chunk().map_or(0, |len| u64::from_le_bytes(*len));
        // A frame that reaches beyond the end stays as it is: torn.
        let Some(end) =
            usize::try_from(payload_len).ok().and_then(|len| len.checked_add(HEADER_LEN))
        else {
            break;
        };
        let Some(whole) = frame.get_mut(..end) else { break };
        let crc = crc32c::crc32c(&whole[8..]);
        whole[..4].copy_from_slice(&frame::MAGIC);
        whole[4..8].copy_from_slice(&crc.to_le_bytes());
        at += end.next_multiple_of(frame::ALIGN);
    }
    bytes
}

/// Takes arbitrary bytes as operations, as a frame, and as a log of two segments.
pub fn check_log(bytes: &[u8]) {
    check_operations(bytes);
    let frames = valid_sums(bytes);
    for bytes in [bytes, &frames] {
        check_frame(bytes);
        check_recovery(bytes);
    }
}

/// What is decoded encodes to the same bytes. Returns whether everything could be decoded.
fn check_operations(bytes: &[u8]) -> bool {
    let mut again = Vec::new();
    let mut is_whole = true;
    for operation in operations(bytes) {
        match operation {
            Some(operation) => operation.encode(&mut again),
            None => is_whole = false,
        }
    }
    assert!(bytes.starts_with(&again), "operations encode to something else");
    assert!(!is_whole || again.len() == bytes.len(), "something was passed over");
    is_whole
}

fn check_frame(bytes: &[u8]) {
    let Some(frame) = Frame::decode(bytes) else { return };
    assert!(frame.len >= HEADER_LEN, "a frame of {} bytes", frame.len);
    let mut builder = FrameBuilder::default();
    for transaction in frame.transactions() {
        let Some((sequence, bytes)) = transaction else { return };
        let found: Option<Vec<Operation<'_>>> = operations(bytes).collect();
        let Some(found) = found else { return };
        builder.push(sequence, found.into_iter());
    }
    if frame.transactions == 0 {
        return;
    }
    let again = builder.finish(frame.durable_sequence);
    let again = Frame::decode(again).expect("it was just encoded");
    let transactions = |frame: &Frame<'_>| {
        frame.transactions().map(|t| t.map(|(n, bytes)| (n, bytes.to_vec()))).collect::<Vec<_>>()
    };
    assert_eq!(transactions(&again), transactions(&frame));
    assert_eq!(again.durable_sequence, frame.durable_sequence);
}

/// Recovery returns transactions without a gap, and the same ones a second time.
fn check_recovery(bytes: &[u8]) {
    let (first, second) =
        bytes.split_at(bytes.len() * usize::from(bytes.len().is_multiple_of(3)) / 2);
    let log = Memory::of([segment(1, STORE, second), segment(2, STORE, first)]);
    let base_sequence = u64::from(bytes.first().copied().unwrap_or(0) % 4);
    let read = || {
        let mut last = base_sequence;
        let recovered = recover(&log, STORE, base_sequence, |sequence, bytes| {
            assert_eq!(sequence, last + 1, "a gap");
            last = sequence;
            if check_operations(bytes) { Ok(()) } else { Err("no operations".to_owned()) }
        });
        recovered.map(|recovered| {
            assert_eq!(recovered.last_sequence, last);
            last
        })
    };
    if let Ok(last) = read() {
        assert_eq!(read().expect("it was read a moment ago"), last);
    }
}

/// A log of one segment in memory, of store `store`, with these bytes as its frames.
pub(in crate::tree) fn log_of(store: u64, frames: &[u8]) -> Memory {
    Memory::of([segment(1, store, frames)])
}

fn segment(number: u64, store: u64, frames: &[u8]) -> (u64, Vec<u8>) {
    (number, [&header(number, store)[..], frames].concat())
}

/// Segments in memory. Clones share them.
#[derive(Clone, Default)]
pub(in crate::tree) struct Memory {
    segments: Arc<Mutex<BTreeMap<u64, Vec<u8>>>>,
}

impl Memory {
    fn of(segments: impl IntoIterator<Item = (u64, Vec<u8>)>) -> Self {
        Self { segments: Arc::new(Mutex::new(segments.into_iter().collect())) }
    }

    fn with<T>(&self, work: impl FnOnce(&mut BTreeMap<u64, Vec<u8>>) -> T) -> T {
        work(&mut self.segments.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl LogStorage for Memory {
    fn list(&self) -> io::Result<Vec<u64>> {
        Ok(self.with(|segments| segments.keys().copied().collect()))
    }

    fn create(&self, segment: u64) -> io::Result<Box<dyn LogFile>> {
        self.with(|segments| segments.insert(segment, Vec::new()));
        self.open(segment)
    }

    fn open(&self, segment: u64) -> io::Result<Box<dyn LogFile>> {
        Ok(Box::new(MemoryFile { memory: self.clone(), segment }))
    }

    fn read(&self, segment: u64) -> io::Result<Vec<u8>> {
        let bytes = self.with(|segments| segments.get(&segment).cloned());
        bytes.ok_or(io::ErrorKind::NotFound.into())
    }

    fn remove(&self, segment: u64) -> io::Result<()> {
        self.with(|segments| segments.remove(&segment));
        Ok(())
    }

    fn sync_directory(&self) -> io::Result<()> {
        Ok(())
    }
}

struct MemoryFile {
    memory: Memory,
    segment: u64,
}

impl LogFile for MemoryFile {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.memory.with(|segments| {
            let file = segments.get_mut(&self.segment).ok_or(io::ErrorKind::NotFound)?;
            let (start, end) = (offset as usize, offset as usize + bytes.len());
            file.resize(file.len().max(end), 0);
            file[start..end].copy_from_slice(bytes);
            Ok(())
        })
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.memory.with(|segments| {
            let file = segments.get_mut(&self.segment).ok_or(io::ErrorKind::NotFound)?;
            file.truncate(len as usize);
            Ok(())
        })
    }
}
