//! Reading the log back: what was committed, where it was torn, and whether it is damaged.

use std::{collections::VecDeque, io};

use crate::record::COMMIT_NUMBER_MAX;

use super::{
    LogStorage, Tail,
    frame::{ALIGN, frames, scattered_frames},
    segment::{HEADER_LEN, check_header},
};

/// The result of reading the log.
#[derive(Debug)]
pub(in crate::tree) struct Recovered {
    /// The last transaction.
    pub last_sequence: u64,
    /// The number for the next segment.
    pub next_segment: u64,
    /// Bytes of frames in all segments.
    pub bytes: u64,
    /// The last transaction that was synced, according to the log.
    pub durable_sequence: u64,
    /// The end of the last segment, unless its header was never finished.
    pub tail: Option<Tail>,
    /// Segment and byte where frames end and something else begins, left by an interrupted write.
    pub torn_at: Option<(u64, u64)>,
    /// The end of the last segment that has frames.
    frames: Option<Tail>,
}

/// The log cannot be read.
#[derive(Debug, thiserror::Error)]
pub(in crate::tree) enum RecoveryError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("log segment {segment}, byte {byte}: {what}")]
    Damaged { segment: u64, byte: u64, what: String },
    #[error("its log has the unknown version {0}")]
    Version(u32),
}

/// Passes every transaction after `base_sequence` to `apply`, in order, with its operations.
///
/// A torn end is cut off, so that it is not mistaken for damage once frames of later segments show
/// that they came after it. Afterwards, frames that may not be on disk can only be in the last
/// segment, where [`Tail::unsure_from`] points to them.
pub(in crate::tree) fn recover(
    storage: &dyn LogStorage,
    store: u64,
    base_sequence: u64,
    apply: impl FnMut(u64, &[u8]) -> Result<(), String>,
) -> Result<Recovered, RecoveryError> {
    let recovered = read_log(storage, store, base_sequence, apply)?;
    if let Some((segment, byte)) = recovered.torn_at {
        let file = storage.open(segment)?;
        file.truncate(byte)?;
        file.sync()?;
    }
    if let Some(frames) = &recovered.frames
        && recovered.tail.as_ref().is_none_or(|tail| tail.number != frames.number)
    {
        // Nobody continues there, so what was written last must not be torn, even if it is a mark.
        let mut segment = frames.open(storage)?;
        let unsure = segment.read_unsure(storage)?;
        segment.make_durable(&unsure)?;
    }
    Ok(recovered)
}

/// Like [`recover`], but changes nothing: a tear is only reported.
pub(in crate::tree) fn read_log(
    storage: &dyn LogStorage,
    store: u64,
    base_sequence: u64,
    mut apply: impl FnMut(u64, &[u8]) -> Result<(), String>,
) -> Result<Recovered, RecoveryError> {
    let segments = storage.list()?;
    let mut recovered = Recovered {
        last_sequence: base_sequence,
        next_segment: segments.last().map_or(FIRST_SEGMENT, |last| last.saturating_add(1)),
        bytes: 0,
        durable_sequence: base_sequence,
        tail: None,
        torn_at: None,
        frames: None,
    };
    for number in segments {
        recovered.tail = None;
        let bytes = storage.read(number)?;
        let holds_frame = || scattered_frames(&bytes, HEADER_LEN).next().is_some();
        match check_header(&bytes, number, store)? {
            true => {}
            // The header is synced before the first frame is written.
            false if !holds_frame() => continue,
            false => return Err(damaged(number, 0, FOREIGN)),
        }
        // Each segment was synced before frames were written to the next.
        if let Some((segment, byte)) = recovered.torn_at
            && holds_frame()
        {
            return Err(damaged(segment, byte as usize, LOST));
        }
        let (at, unsure_from) = read_segment(number, &bytes, &mut recovered, &mut apply)?;
        let (end, mut len) = (at as u64, bytes.len() as u64);
        if !is_zero(&bytes[at..]) {
            check_tear(number, &bytes, at, recovered.last_sequence)?;
            recovered.torn_at = Some((number, end));
            len = end;
        }
        let tail = Tail { number, end, len, unsure_from };
        // Each segment was synced before frames were written to the next.
        if tail.holds_frames() {
            recovered.frames = Some(tail.clone());
        }
        recovered.tail = Some(tail);
    }
    Ok(recovered)
}

/// The number of the very first segment.
const FIRST_SEGMENT: u64 = 1;

/// Whether there are only zeros, of which there may be a megabyte.
fn is_zero(bytes: &[u8]) -> bool {
    let (words, rest) = bytes.as_chunks::<16>();
    words.iter().all(|word| u128::from_ne_bytes(*word) == 0) && rest.iter().all(|byte| *byte == 0)
}

/// Reads frames until there are no more. Returns the offset where they end, and that of the first
/// one that no later frame confirms as synced.
fn read_segment(
    number: u64,
    bytes: &[u8],
    recovered: &mut Recovered,
    apply: &mut impl FnMut(u64, &[u8]) -> Result<(), String>,
) -> Result<(usize, Option<u64>), RecoveryError> {
    let mut end = HEADER_LEN;
    // The last transaction of each frame that may not have been synced, and the frame's offset.
    let mut unsure = VecDeque::new();
    for (at, frame) in frames(bytes, HEADER_LEN) {
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
        while unsure.front().is_some_and(|(last, _)| *last <= frame.durable_sequence) {
            unsure.pop_front();
        }
        if !frame.is_mark() {
            unsure.push_back((frame.last_sequence(), at as u64));
        }
        let durable = frame.durable_sequence.min(recovered.last_sequence);
        recovered.durable_sequence = recovered.durable_sequence.max(durable);
        recovered.bytes += frame.len as u64;
        end = at + frame.len;
    }
    Ok((end.min(bytes.len()), unsure.front().map(|(_, at)| *at)))
}

/// Looks after a tear for a frame which says that the torn part had been synced.
fn check_tear(number: u64, bytes: &[u8], end: usize, last: u64) -> Result<(), RecoveryError> {
    match scattered_frames(bytes, end + ALIGN).any(|frame| frame.durable_sequence > last) {
        true => Err(damaged(number, end, LOST)),
        false => Ok(()),
    }
}

/// How many whole transactions after `sequence` are anywhere in a damaged log.
pub(in crate::tree) fn count_behind(storage: &dyn LogStorage, sequence: u64) -> io::Result<u64> {
    let mut count = 0;
    for number in storage.list()? {
        let bytes = storage.read(number)?;
        for frame in scattered_frames(&bytes, HEADER_LEN) {
            let after = frame.transactions().flatten().filter(|(found, _)| *found > sequence);
            count += after.count() as u64;
        }
    }
    Ok(count)
}

pub(super) const FOREIGN: &str = "its header is not what it should be";
const LOST: &str = "synced transactions are lost at this place";

pub(super) fn damaged(segment: u64, at: usize, what: &str) -> RecoveryError {
    RecoveryError::Damaged { segment, byte: at as u64, what: what.to_owned() }
}
