//! Reading the log back: what was committed, where it was torn, and whether it is damaged.

use std::{collections::VecDeque, io};

use crate::record::COMMIT_NUMBER_MAX;

use super::{
    LogStorage, Tail,
    frame::{ALIGN, Frame},
    segment::{HEADER_LEN, Head, check_header},
};

/// What reading the log found.
#[derive(Debug)]
pub(in crate::tree) struct Recovered {
    /// The last transaction.
    pub last_sequence: u64,
    /// The number for the next segment.
    pub next_segment: u64,
    /// Bytes of frames, over all segments.
    pub bytes: u64,
    /// The last transaction of which the log says that it was synced.
    pub durable_sequence: u64,
    /// The end of the last segment, unless its header was never finished.
    pub tail: Option<Tail>,
}

impl Recovered {
    /// What reading a log finds whose last segment is `segment`, or that has none, if it holds no
    /// frame and the base holds everything up to transaction `sequence`.
    pub(in crate::tree) fn of_empty_log(segment: Option<u64>, sequence: u64) -> Self {
        let end = HEADER_LEN as u64;
        Self {
            last_sequence: sequence,
            next_segment: segment.map_or(FIRST_SEGMENT, |segment| segment.saturating_add(1)),
            bytes: 0,
            durable_sequence: sequence,
            tail: segment.map(|number| Tail { number, end, len: end, unsure_from: None }),
        }
    }
}

/// The log cannot be read.
#[derive(Debug)]
pub(in crate::tree) enum RecoveryError {
    Io(io::Error),
    Damaged(LogDamage),
    Version(u32),
}

/// What is wrong with a log, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("log segment {segment}, byte {byte}: {what}")]
pub(in crate::tree) struct LogDamage {
    pub segment: u64,
    pub byte: u64,
    pub what: String,
}

/// Where frames end and something else begins, which an interrupted write has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tree) struct Tear {
    pub segment: u64,
    pub byte: u64,
}

impl From<io::Error> for RecoveryError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Gives every transaction after `base_sequence` to `apply`, in order, with its operations.
///
/// A torn end is cut off the file, so that it is not taken for damage once frames of later
/// segments say that they came after it. Frames that may not be on disk can afterwards be in
/// the last segment only, where [`Tail::unsure_from`] tells of them.
pub(in crate::tree) fn recover(
    storage: &dyn LogStorage,
    store: u64,
    base_sequence: u64,
    apply: impl FnMut(u64, &[u8]) -> Result<(), String>,
) -> Result<Recovered, RecoveryError> {
    let (mut recovered, tear, unsure) = read(storage, store, base_sequence, apply)?;
    if let Some(Tear { segment, byte }) = tear {
        let file = storage.open(segment)?;
        file.truncate(byte)?;
        file.sync()?;
    }
    match &mut recovered.tail {
        _ if unsure.segment == NO_SEGMENT => {}
        Some(tail) if tail.number == unsure.segment => tail.unsure_from = unsure.from(),
        // Nobody goes on there, so what was written last must not be torn, be it a mark.
        _ => unsure.write_again(storage)?,
    }
    Ok(recovered)
}

/// As [`recover`], but changes nothing: a tear is only told.
pub(in crate::tree) fn read_log(
    storage: &dyn LogStorage,
    store: u64,
    base_sequence: u64,
    apply: impl FnMut(u64, &[u8]) -> Result<(), String>,
) -> Result<(Recovered, Option<Tear>), RecoveryError> {
    read(storage, store, base_sequence, apply).map(|(recovered, tear, _)| (recovered, tear))
}

fn read(
    storage: &dyn LogStorage,
    store: u64,
    base_sequence: u64,
    mut apply: impl FnMut(u64, &[u8]) -> Result<(), String>,
) -> Result<(Recovered, Option<Tear>, Unsure), RecoveryError> {
    let segments = storage.list()?;
    let mut recovered = Recovered {
        last_sequence: base_sequence,
        next_segment: segments.last().map_or(FIRST_SEGMENT, |last| last.saturating_add(1)),
        bytes: 0,
        durable_sequence: base_sequence,
        tail: None,
    };
    let mut tear: Option<Tear> = None;
    let mut unsure = Unsure::default();
    for number in segments {
        recovered.tail = None;
        let bytes = storage.read(number)?;
        match check_header(&bytes, number, store) {
            Head::Valid => {}
            // The header is synced before the first frame is written.
            Head::Torn if !holds_frame(&bytes, HEADER_LEN) => continue,
            Head::Version(found) => return Err(RecoveryError::Version(found)),
            Head::Torn | Head::Foreign => {
                return Err(damaged(number, 0, "its header is not what it should be"));
            }
        }
        // Each segment was synced before frames were written to the next.
        if let Some(Tear { segment, byte }) = tear
            && holds_frame(&bytes, HEADER_LEN)
        {
            return Err(damaged(segment, byte as usize, LOST));
        }
        let at = read_segment(number, &bytes, &mut recovered, &mut unsure, &mut apply)?;
        let (end, mut len) = (at as u64, bytes.len() as u64);
        if !is_zero(&bytes[at..]) {
            check_tear(number, &bytes, at, recovered.last_sequence)?;
            tear = Some(Tear { segment: number, byte: end });
            len = end;
        }
        recovered.tail = Some(Tail { number, end, len, unsure_from: None });
    }
    Ok((recovered, tear, unsure))
}

/// The number of a segment before which there was none.
pub(super) const FIRST_SEGMENT: u64 = 1;

const NO_SEGMENT: u64 = 0;

/// The frames at the end of the log of which no later one says that they had been synced.
#[derive(Default)]
struct Unsure {
    /// The segment of the last frame.
    segment: u64,
    /// The last transaction of each, and where it stands.
    frames: VecDeque<(u64, usize)>,
    end: u64,
}

impl Unsure {
    fn meet(&mut self, segment: u64, at: usize, frame: &Frame<'_>) {
        if self.segment != segment {
            // Each segment was synced before frames were written to the next.
            *self = Self { segment, ..Self::default() };
        }
        while self.frames.front().is_some_and(|(last, _)| *last <= frame.durable_sequence) {
            self.frames.pop_front();
        }
        if !frame.is_mark() {
            self.frames.push_back((frame.last_sequence(), at));
        }
        self.end = (at + frame.len) as u64;
    }

    /// Where the first of them stands.
    fn from(&self) -> Option<u64> {
        self.frames.front().map(|(_, at)| *at as u64)
    }

    /// Makes them durable, and the mark behind them.
    fn write_again(&self, storage: &dyn LogStorage) -> io::Result<()> {
        let tail =
            Tail { number: self.segment, end: self.end, len: self.end, unsure_from: self.from() };
        let mut segment = tail.open(storage)?;
        let unsure = segment.read_unsure(storage)?;
        segment.settle(&unsure)
    }
}

/// Whether there are only zeros, of which there may be a megabyte.
fn is_zero(bytes: &[u8]) -> bool {
    let (words, rest) = bytes.as_chunks::<16>();
    words.iter().all(|word| u128::from_ne_bytes(*word) == 0) && rest.iter().all(|byte| *byte == 0)
}

/// Reads frames until there is none; gives the offset at which they end.
fn read_segment(
    number: u64,
    bytes: &[u8],
    recovered: &mut Recovered,
    unsure: &mut Unsure,
    apply: &mut impl FnMut(u64, &[u8]) -> Result<(), String>,
) -> Result<usize, RecoveryError> {
    let mut at = HEADER_LEN;
    while let Some(frame) = Frame::decode(&bytes[at.min(bytes.len())..]) {
        for transaction in frame.transactions() {
            let Some((sequence, operations)) = transaction else {
                return Err(damaged(number, at, "a frame does not hold what it says"));
            };
            if sequence > COMMIT_NUMBER_MAX {
                return Err(damaged(number, at, "a transaction has a number that none can have"));
            }
            if sequence <= recovered.last_sequence {
                continue;
            }
            if sequence != recovered.last_sequence + 1 {
                return Err(damaged(number, at, "transactions are missing before this place"));
            }
            apply(sequence, operations).map_err(|what| damaged(number, at, &what))?;
            recovered.last_sequence = sequence;
        }
        if frame.last_sequence() > recovered.last_sequence {
            return Err(damaged(number, at, "transactions are missing before this place"));
        }
        unsure.meet(number, at, &frame);
        let durable = frame.durable_sequence.min(recovered.last_sequence);
        recovered.durable_sequence = recovered.durable_sequence.max(durable);
        recovered.bytes += frame.len as u64;
        at += frame.len;
    }
    Ok(at.min(bytes.len()))
}

/// Whether a whole frame stands anywhere from `start` on.
pub(super) fn holds_frame(bytes: &[u8], start: usize) -> bool {
    (start.max(HEADER_LEN)..bytes.len())
        .step_by(ALIGN)
        .any(|at| Frame::decode(&bytes[at..]).is_some())
}

/// Looks behind a tear for a frame which says that what is torn had been synced.
fn check_tear(number: u64, bytes: &[u8], end: usize, last: u64) -> Result<(), RecoveryError> {
    let mut at = end + ALIGN;
    while at < bytes.len() {
        match Frame::decode(&bytes[at..]) {
            Some(frame) if frame.durable_sequence > last => {
                return Err(damaged(number, end, LOST));
            }
            Some(frame) => at += frame.len,
            None => at += ALIGN,
        }
    }
    Ok(())
}

/// How many whole transactions after `sequence` stand anywhere in a log that is damaged.
pub(in crate::tree) fn count_behind(storage: &dyn LogStorage, sequence: u64) -> io::Result<u64> {
    let mut count = 0;
    for number in storage.list()? {
        let bytes = storage.read(number)?;
        let mut at = HEADER_LEN;
        while at < bytes.len() {
            let Some(frame) = Frame::decode(&bytes[at..]) else {
                at += ALIGN;
                continue;
            };
            let after = frame.transactions().flatten().filter(|(found, _)| *found > sequence);
            count += after.count() as u64;
            at += frame.len;
        }
    }
    Ok(count)
}

const LOST: &str = "synced transactions are lost at this place";

fn damaged(segment: u64, at: usize, what: &str) -> RecoveryError {
    RecoveryError::Damaged(LogDamage { segment, byte: at as u64, what: what.to_owned() })
}
