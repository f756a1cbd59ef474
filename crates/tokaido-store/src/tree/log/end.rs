//! The end of the log, where the writer continues: in the last existing segment, or in a new one.

use std::{io, path::Path};

use crate::tree::files;

use super::{FrameBuilder, LogStorage, Tail, recovery::Recovered, segment::Segment};

/// Where a log is.
#[derive(Clone, Copy)]
pub(in crate::tree) struct LogPlace<'s> {
    /// The directory of the store.
    pub directory: &'s Path,
    pub storage: &'s dyn LogStorage,
    /// The number of the store.
    pub store: u64,
}

#[derive(Default)]
pub(in crate::tree) struct LogEnd {
    /// The segment that is being written to.
    segment: Option<Segment>,
    /// The segment that was found; the first write opens it.
    tail: Option<Tail>,
    /// The number for the next segment.
    next_segment: u64,
    /// Bytes of frames that opening the store would read.
    bytes: u64,
    /// How many bytes of zeros are written ahead at a time.
    growth_len: u64,
}

/// The log could not be written to or synced.
#[derive(Debug)]
pub(in crate::tree) enum LogError {
    /// Nothing has changed.
    Unchanged(io::Error),
    /// It is unknown what is on disk.
    Undetermined(io::Error),
}

impl From<LogError> for io::Error {
    fn from((LogError::Unchanged(error) | LogError::Undetermined(error)): LogError) -> Self {
        error
    }
}

impl LogEnd {
    pub(in crate::tree) fn of(recovered: &Recovered, growth_len: u64) -> Self {
        Self {
            segment: None,
            tail: recovered.tail.clone(),
            next_segment: recovered.next_segment,
            bytes: recovered.bytes,
            growth_len,
        }
    }

    /// The same, after all segments have been removed.
    pub(in crate::tree) fn without_segments(self) -> Self {
        let Self { next_segment, growth_len, .. } = self;
        Self { next_segment, growth_len, ..Self::default() }
    }

    /// Bytes of frames that opening the store would read.
    pub(in crate::tree) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The segment to write to, if there is one; opens it.
    fn present(&mut self, place: LogPlace<'_>) -> io::Result<Option<&mut Segment>> {
        if let Some(tail) = &self.tail {
            let mut segment = tail.open(place.storage)?;
            let holds_frames = tail.holds_frames();
            self.tail = None;
            if !holds_frames {
                // Its creator may have been killed before header and name were durable, which they
                // are wherever there is a frame. If this fails, another segment is begun.
                segment.begin(place.storage, place.store)?;
            }
            self.segment = Some(segment);
        }
        Ok(self.segment.as_mut())
    }

    /// Opens the segment to write to.
    pub(in crate::tree) fn open(&mut self, place: LogPlace<'_>) -> io::Result<()> {
        if self.present(place)?.is_none() {
            self.begin_segment(place)?;
        }
        Ok(())
    }

    /// Begins a segment, durably; returns its number. The one before it must be whole and synced.
    pub(in crate::tree) fn begin_segment(&mut self, place: LogPlace<'_>) -> io::Result<u64> {
        if self.segment.is_none() {
            // The store's files and its directory may be new, and must be found after a power
            // failure. A segment that exists shows that this was done.
            files::sync_directory(place.directory)?;
            files::sync_name(place.directory)?;
        }
        // The remains of a segment that could not be created may occupy its number. No other number
        // is skipped, so that a reader can tell from one missing segment that there are no later
        // ones.
        let segment = loop {
            match Segment::create(place.storage, self.next_segment, place.store) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    self.next_segment += 1;
                }
                created => break created?,
            }
        };
        self.segment = Some(segment);
        self.bytes = 0;
        self.next_segment += 1;
        Ok(self.next_segment - 1)
    }

    /// Writes a frame to the open segment, without syncing it.
    pub(in crate::tree) fn append(
        &mut self,
        frame: &mut FrameBuilder,
        durable_sequence: u64,
    ) -> Result<(), LogError> {
        let growth_len = self.growth_len;
        self.bytes += self.written().append(frame, durable_sequence, growth_len)?;
        Ok(())
    }

    pub(in crate::tree) fn written(&mut self) -> &mut Segment {
        self.segment.as_mut().expect("`open` comes first")
    }

    /// Makes all frames durable, including those that were found and may not be on disk.
    pub(in crate::tree) fn make_durable(&mut self, place: LogPlace<'_>) -> Result<(), LogError> {
        let Some(segment) = self.present(place).map_err(LogError::Unchanged)? else {
            return Ok(());
        };
        let unsure = segment.read_unsure(place.storage).map_err(LogError::Unchanged)?;
        segment.make_durable(&unsure).map_err(LogError::Undetermined)
    }

    /// Makes those frames durable that were found and may not be on disk, and writes a mark after
    /// them, if that is the end.
    pub(in crate::tree) fn make_found_durable(
        &mut self,
        place: LogPlace<'_>,
        sequence: u64,
    ) -> io::Result<()> {
        if self.tail.as_ref().is_none_or(|tail| tail.unsure_from.is_none()) {
            return Ok(());
        }
        self.make_durable(place)?;
        let segment = self.written();
        if segment.mark(sequence).is_err() {
            // A full disk has no room for the mark. Any part of it must go, since a later segment
            // would make it look like damage.
            segment.cut_off_zeros()?;
        }
        Ok(())
    }

    /// Leaves the log so that the next opening has as little work as possible. `durable` is the
    /// last transaction, if all are durable. No data depends on whether this succeeds.
    pub(in crate::tree) fn close(
        &mut self,
        place: LogPlace<'_>,
        durable: Option<u64>,
    ) -> io::Result<()> {
        if self.tail.as_ref().is_some_and(|tail| tail.len == tail.end) {
            // Nothing was written.
            return Ok(());
        }
        let Some(segment) = self.present(place)? else { return Ok(()) };
        let marked = durable.map_or(Ok(()), |sequence| segment.mark(sequence));
        segment.cut_off_zeros().and(marked)
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{LogFile, Operation, RecoveryError, fuzzing::Memory, recover, segment::HEADER_LEN},
        *,
    };

    const STORE: u64 = 7;

    fn place(storage: &Memory) -> LogPlace<'_> {
        LogPlace { directory: Path::new("."), storage, store: STORE }
    }

    fn found(storage: &Memory) -> Recovered {
        recover(storage, STORE, 0, |_, _| Ok(())).unwrap()
    }

    /// Opens the log, writes transaction `sequence` and closes the log.
    fn life(storage: &Memory, sequence: u64, is_durable: bool) {
        let mut log = LogEnd::of(&found(storage), 1 << 20);
        let mut frame = FrameBuilder::default();
        let operation = Operation { tree: 2, key: b"k", record: Some(b"r") };
        frame.push(sequence, std::iter::once(operation));
        log.open(place(storage)).unwrap();
        log.append(&mut frame, sequence - 1).unwrap();
        log.close(place(storage), is_durable.then_some(sequence)).unwrap();
    }

    #[test]
    fn what_was_closed_is_written_on_and_a_mark_tells_that_it_is_durable() {
        let storage = Memory::default();
        life(&storage, 1, true);
        let after_one = found(&storage).tail.unwrap();
        let len = storage.read(1).unwrap().len() as u64;
        assert_eq!((after_one.end, after_one.len, after_one.unsure_from), (len, len, None));
        life(&storage, 2, false);
        let recovered = found(&storage);
        assert_eq!((recovered.last_sequence, recovered.durable_sequence), (2, 1));
        assert_eq!(recovered.tail.unwrap().unsure_from, Some(len));
        life(&storage, 3, true);
        let recovered = found(&storage);
        assert_eq!((recovered.last_sequence, recovered.durable_sequence), (3, 3));
        assert_eq!(recovered.tail.unwrap().unsure_from, None);
        assert_eq!(storage.list().unwrap(), [1]);
    }

    /// A log whose directory fails to become durable as many times as the number says.
    struct Failing(Memory, std::sync::atomic::AtomicUsize);

    impl LogStorage for Failing {
        fn list(&self) -> io::Result<Vec<u64>> {
            self.0.list()
        }
        fn create(&self, segment: u64) -> io::Result<Box<dyn LogFile>> {
            self.0.create(segment)
        }
        fn open(&self, segment: u64) -> io::Result<Box<dyn LogFile>> {
            self.0.open(segment)
        }
        fn read(&self, segment: u64) -> io::Result<Vec<u8>> {
            self.0.read(segment)
        }
        fn remove(&self, segment: u64) -> io::Result<()> {
            self.0.remove(segment)
        }
        fn sync_directory(&self) -> io::Result<()> {
            use std::sync::atomic::Ordering::Relaxed;
            let left = self.1.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1));
            left.map_or(Ok(()), |_| Err(io::ErrorKind::StorageFull.into()))
        }
    }

    #[test]
    fn a_segment_that_could_not_be_made_leaves_no_gap_in_the_numbers() {
        let storage = Memory::default();
        life(&storage, 1, true);
        let mut log = LogEnd::of(&found(&storage), 1 << 20);
        let failing = Failing(storage.clone(), 2.into());
        let place = LogPlace { directory: Path::new("."), storage: &failing, store: STORE };
        for _ in 0..2 {
            log.begin_segment(place).unwrap_err();
        }
        assert_eq!(log.begin_segment(place).unwrap(), 2);
        assert_eq!(storage.list().unwrap(), [1, 2]);
    }

    #[test]
    fn a_mark_is_a_witness_of_the_frame_before_it() {
        let storage = Memory::default();
        life(&storage, 1, true);
        let mut bytes = storage.read(1).unwrap();
        bytes[HEADER_LEN + 4] ^= 1;
        storage.open(1).unwrap().write_at(&bytes, 0).unwrap();
        match recover(&storage, STORE, 0, |_, _| Ok(())) {
            Err(RecoveryError::Damaged { byte, .. }) => assert_eq!(byte, HEADER_LEN as u64),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_torn_mark_is_cut_off() {
        let storage = Memory::default();
        life(&storage, 1, true);
        let whole = found(&storage).tail.unwrap().end;
        storage.open(1).unwrap().truncate(whole - 20).unwrap();
        let recovered = found(&storage);
        assert_eq!(recovered.last_sequence, 1);
        assert_eq!(recovered.tail.unwrap().unsure_from, Some(HEADER_LEN as u64));
        assert!((storage.read(1).unwrap().len() as u64) < whole - 20);
    }
}
