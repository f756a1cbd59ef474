//! Frames: one for each group of transactions, checked as a whole.
//!
//! ```text
//! 0   magic              u32   "TKdF"
//! 4   CRC32C             u32   of all that follows, payload included
//! 8   payload length     u64
//! 16  first sequence     u64   the others follow consecutively
//! 24  durable sequence   u64   the last that was synced before this frame was written
//! 32  transactions       u32   their number
//! 36  zero               u32
//! 40  payload                  for each transaction: length u32, operations
//! ..  zeros                    up to a multiple of 16
//! ```
//! A group is one frame because a power failure may tear it anywhere: then all of it is gone, and
//! no valid frame follows a torn one, unless its durable sequence says that the torn one had been
//! synced. That is how damage is distinguished from an interrupted write.
//!
//! A frame without transactions is a *mark*: it follows the last frame when a store was closed,
//! and says that everything before it was synced.

use std::iter;

use super::Operation;

pub(super) const MAGIC: [u8; 4] = *b"TKdF";
pub(super) const HEADER_LEN: usize = 40;
pub(super) const ALIGN: usize = 16;

/// Builds the frame of a group, transaction by transaction.
#[derive(Default)]
pub(in crate::tree) struct FrameBuilder {
    bytes: Vec<u8>,
    transactions: u32,
    first_sequence: u64,
}

impl FrameBuilder {
    /// Makes room for about that many bytes, so that a long transaction is not moved as it grows.
    pub(in crate::tree) fn reserve(&mut self, bytes: usize) {
        self.bytes.reserve(bytes);
    }

    /// Adds a transaction.
    pub(in crate::tree) fn push<'o>(
        &mut self,
        sequence: u64,
        operations: impl Iterator<Item = Operation<'o>>,
    ) {
        if self.transactions == 0 {
            self.bytes.resize(HEADER_LEN, 0);
            self.first_sequence = sequence;
        }
        debug_assert_eq!(sequence, self.first_sequence + u64::from(self.transactions));
        self.transactions += 1;
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 4]);
        for operation in operations {
            operation.encode(&mut self.bytes);
        }
        let len = (self.bytes.len() - start - 4) as u32;
        self.bytes[start..start + 4].copy_from_slice(&len.to_le_bytes());
    }

    /// The transactions that were added, with their sequence and their operations.
    pub(in crate::tree) fn transactions(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let payload = self.bytes.get(HEADER_LEN..).unwrap_or_default();
        transactions(payload, self.first_sequence, self.transactions).flatten()
    }

    /// The first sequence in the frame.
    pub(in crate::tree) fn first_sequence(&self) -> u64 {
        self.first_sequence
    }

    /// The last sequence in the frame.
    pub(in crate::tree) fn last_sequence(&self) -> u64 {
        self.first_sequence + u64::from(self.transactions.max(1)) - 1
    }

    /// The frame, ready to be written. [`clear`](Self::clear) begins the next.
    pub(in crate::tree) fn finish(&mut self, durable_sequence: u64) -> &[u8] {
        let payload_len = self.bytes.len() - HEADER_LEN;
        self.bytes[0..4].copy_from_slice(&MAGIC);
        self.bytes[8..16].copy_from_slice(&(payload_len as u64).to_le_bytes());
        self.bytes[16..24].copy_from_slice(&self.first_sequence.to_le_bytes());
        self.bytes[24..32].copy_from_slice(&durable_sequence.to_le_bytes());
        self.bytes[32..36].copy_from_slice(&self.transactions.to_le_bytes());
        let crc = crc32c::crc32c(&self.bytes[8..]);
        self.bytes[4..8].copy_from_slice(&crc.to_le_bytes());
        self.bytes.resize(self.bytes.len().next_multiple_of(ALIGN), 0);
        &self.bytes
    }

    pub(in crate::tree) fn clear(&mut self) {
        const LEN_KEPT: usize = 1 << 20;
        self.bytes.clear();
        self.bytes.shrink_to(LEN_KEPT);
        self.transactions = 0;
    }
}

/// A mark after transaction `sequence`, which was synced, as was everything before it.
pub(super) fn mark(sequence: u64) -> Vec<u8> {
    let bytes = vec![0; HEADER_LEN];
    let mut builder = FrameBuilder { bytes, transactions: 0, first_sequence: sequence };
    builder.finish(sequence).to_vec()
}

/// A complete frame.
pub(super) struct Frame<'l> {
    pub(super) transactions: u32,
    pub(super) first_sequence: u64,
    pub(super) durable_sequence: u64,
    payload: &'l [u8],
    /// Bytes up to the next frame.
    pub(super) len: usize,
}

impl<'l> Frame<'l> {
    /// The frame at the start of `bytes`, if there is a whole one.
    pub(super) fn decode(bytes: &'l [u8]) -> Option<Self> {
        let (header, rest) = bytes.split_first_chunk::<HEADER_LEN>()?;
        let u32_at = |at: usize| header[at..].first_chunk().map(|b| u32::from_le_bytes(*b));
        let u64_at = |at: usize| header[at..].first_chunk().map(|b| u64::from_le_bytes(*b));
        if header[..4] != MAGIC {
            return None;
        }
        let payload_len = usize::try_from(u64_at(8)?).ok()?;
        let payload = rest.get(..payload_len)?;
        let crc = crc32c::crc32c_append(crc32c::crc32c(&header[8..]), payload);
        if Some(crc) != u32_at(4) {
            return None;
        }
        Some(Self {
            transactions: u32_at(32)?,
            first_sequence: u64_at(16)?,
            durable_sequence: u64_at(24)?,
            payload,
            len: (HEADER_LEN + payload_len).next_multiple_of(ALIGN),
        })
    }

    /// The last sequence in the frame.
    pub(super) fn last_sequence(&self) -> u64 {
        // A mark has that of the frame before it.
        self.first_sequence.saturating_add(u64::from(self.transactions.saturating_sub(1)))
    }

    pub(super) fn is_mark(&self) -> bool {
        self.transactions == 0
    }

    /// The transactions, with their sequence; `None` where the payload is invalid.
    pub(super) fn transactions(&self) -> impl Iterator<Item = Option<(u64, &'l [u8])>> {
        transactions(self.payload, self.first_sequence, self.transactions)
    }
}

fn transactions(
    payload: &[u8],
    first_sequence: u64,
    count: u32,
) -> impl Iterator<Item = Option<(u64, &[u8])>> {
    let mut rest = payload;
    (0..count).map(move |nth| {
        let sequence = first_sequence.checked_add(u64::from(nth))?;
        let (len, tail) = rest.split_first_chunk::<4>()?;
        let (operations, tail) = tail.split_at_checked(u32::from_le_bytes(*len) as usize)?;
        rest = tail;
        Some((sequence, operations))
    })
}

/// The frames that follow each other without gaps from `at` on, each with its offset.
pub(super) fn frames(bytes: &[u8], at: usize) -> impl Iterator<Item = (usize, Frame<'_>)> {
    let mut next = at;
    iter::from_fn(move || {
        let (at, frame) = (next, Frame::decode(bytes.get(next..)?)?);
        next += frame.len;
        Some((at, frame))
    })
}

/// All whole frames from `at` on, whatever is between them.
pub(super) fn scattered_frames(bytes: &[u8], at: usize) -> impl Iterator<Item = Frame<'_>> {
    let mut next = at;
    iter::from_fn(move || {
        while let Some(rest) = bytes.get(next..).filter(|rest| !rest.is_empty()) {
            let frame = Frame::decode(rest);
            next += frame.as_ref().map_or(ALIGN, |frame| frame.len);
            if frame.is_some() {
                return frame;
            }
        }
        None
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(transactions: &[Vec<u8>]) -> Vec<u8> {
        let mut builder = FrameBuilder::default();
        for (sequence, key) in (7..).zip(transactions) {
            let operation = Operation { tree: 2, key, record: Some(b"r") };
            builder.push(sequence, std::iter::once(operation));
        }
        builder.finish(5).to_vec()
    }

    proptest::proptest! {
        #[test]
        fn a_frame_gives_back_its_transactions(
            keys in proptest::collection::vec(proptest::collection::vec(0u8.., 1..40), 1..10),
            behind: Vec<u8>,
        ) {
            let mut bytes = frame(&keys);
            let len = bytes.len();
            bytes.extend_from_slice(&behind);
            let frame = Frame::decode(&bytes).unwrap();
            proptest::prop_assert_eq!((frame.len, frame.first_sequence, frame.durable_sequence), (len, 7, 5));
            let found: Vec<_> = frame.transactions().map(|t| t.unwrap().0).collect();
            let expected: Vec<_> = (7..7 + keys.len() as u64).collect();
            proptest::prop_assert_eq!(found, expected);
        }

        #[test]
        fn a_changed_or_cut_frame_is_none(at: proptest::sample::Index, bit in 0u8..8, cut: proptest::sample::Index) {
            let whole = frame(&[b"key".to_vec(), b"other".to_vec()]);
            // The padding is not covered, so it is left out here.
            let covered = HEADER_LEN + 2 * 4 + 2 * 12 + 3 + 5;
            let mut changed = whole.clone();
            changed[at.index(covered)] ^= 1 << bit;
            proptest::prop_assert!(Frame::decode(&changed).is_none());
            proptest::prop_assert!(Frame::decode(&whole[..cut.index(covered)]).is_none());
        }
    }
}
