//! The layout of a record in a segment: a header of three words, the key, the value.
//!
//! ```text
//! word 0   bits 0-55   version
//!          bits 56-57  visits: how often it was used since a queue last looked at it, at most 3
//!          bit 58      dead: deleted, or replaced by a record elsewhere
//!          bits 59-60  the marks of shared dictionaries, see `Marks`
//! word 1   bits 0-31   flags
//!          bits 32-58  length of the value
//! word 2   bits 0-47   expiry, in ms since the epoch; all ones: never
//!          bits 48-60  length of the key
//!          bits 61-63  the other marks
//! then     key, value, zero to seven bytes up to a multiple of eight
//! ```

use crate::{Marks, NewRecord, Record, limits};

/// Bytes of a header.
pub(super) const HEADER_LEN: usize = 24;
/// Records begin at multiples of this.
pub(super) const ALIGNMENT: usize = 8;
/// Maximum number of visits that are counted.
pub(super) const VISITS_MAX: u8 = 3;

const VERSION_MASK: u64 = (1 << 56) - 1;
const VISITS_SHIFT: u32 = 56;
const DEAD: u64 = 1 << 58;
const EXPIRY_NEVER: u64 = (1 << 48) - 1;
const VALUE_LEN_SHIFT: u32 = 32;
const KEY_LEN_SHIFT: u32 = 48;
const KEY_LEN_MASK: u64 = (1 << 13) - 1;
const MARKS_SHIFT: u32 = 61;
/// The number of marks that are in the last word.
const LAST_MARKS: u32 = 3;
const FORM_SHIFT: u32 = 59;
const FORM_MASK: u64 = 0b11;

const _: () = assert!(limits::VALUE_LEN_MAX < 1 << 27, "a value's length has 27 bits");
const _: () = assert!(limits::KEY_LEN_MAX < 1 << 13, "a key's length has 13 bits");

/// `len` rounded up to a multiple of eight.
pub(super) const fn round(len: usize) -> usize {
    len.next_multiple_of(ALIGNMENT)
}

/// The bytes that a record takes in a segment.
pub(super) const fn footprint(key_len: usize, value_len: usize) -> usize {
    round(HEADER_LEN + key_len + value_len)
}

/// A version, truncated to the bits that headers hold.
pub(super) const fn version_of(number: u64) -> u64 {
    number & VERSION_MASK
}

/// A record in the bytes of a segment, which may continue after it.
#[derive(Clone, Copy)]
pub(super) struct View<'s> {
    words: [u64; 3],
    body: &'s [u8],
}

impl<'s> View<'s> {
    #[inline]
    pub(super) fn new(bytes: &'s [u8]) -> Self {
        let (header, body) = bytes.split_at(HEADER_LEN);
        Self { words: [word(header, 0), word(header, 1), word(header, 2)], body }
    }

    #[inline]
    pub(super) fn key(&self) -> &'s [u8] {
        &self.body[..self.key_len()]
    }

    #[inline]
    pub(super) fn value(&self) -> &'s [u8] {
        &self.body[self.key_len()..][..self.value_len()]
    }

    #[inline]
    fn key_len(&self) -> usize {
        (self.words[2] >> KEY_LEN_SHIFT & KEY_LEN_MASK) as usize
    }

    #[inline]
    pub(super) fn value_len(&self) -> usize {
        (self.words[1] >> VALUE_LEN_SHIFT) as usize
    }

    #[inline]
    pub(super) fn footprint(&self) -> usize {
        footprint(self.key_len(), self.value_len())
    }

    #[inline]
    pub(super) fn visits(&self) -> u8 {
        (self.words[0] >> VISITS_SHIFT) as u8 & VISITS_MAX
    }

    pub(super) fn is_dead(&self) -> bool {
        self.words[0] & DEAD != 0
    }

    #[inline]
    pub(super) fn expires_at_ms(&self) -> Option<u64> {
        let at = self.words[2] & EXPIRY_NEVER;
        (at != EXPIRY_NEVER).then_some(at)
    }

    #[inline]
    fn marks(&self) -> Marks {
        let form = (self.words[0] >> FORM_SHIFT & FORM_MASK) << LAST_MARKS;
        Marks::from_bits((self.words[2] >> MARKS_SHIFT | form) as u8)
    }

    #[inline]
    pub(super) fn record(&self) -> Record<'s> {
        Record {
            flags: self.words[1] as u32,
            expires_at_ms: self.expires_at_ms(),
            marks: self.marks(),
            ..Record::of(self.value(), self.words[0] & VERSION_MASK)
        }
    }
}

/// Writes a whole record. `bytes` has room for its footprint.
pub(super) fn write(bytes: &mut [u8], key: &[u8], new: &NewRecord<'_>, version: u64, visits: u8) {
    let (header, body) = bytes.split_at_mut(HEADER_LEN);
    put_word(header, 0, version | u64::from(visits) << VISITS_SHIFT | form_bits(new.marks));
    put_word(header, 1, u64::from(new.flags) | (new.value.len() as u64) << VALUE_LEN_SHIFT);
    let key_len = (key.len() as u64) << KEY_LEN_SHIFT;
    put_word(header, 2, expiry_bits(new.expires_at_ms) | key_len | marks_bits(new.marks));
    let (key_place, rest) = body.split_at_mut(key.len());
    key_place.copy_from_slice(key);
    rest[..new.value.len()].copy_from_slice(new.value);
}

/// Adds to the digits of a value, in place. There must be enough digits for the sum.
#[inline]
pub(super) fn add(bytes: &mut [u8], added: u64, version: u64, visits: u8) {
    put_word(bytes, 0, version | u64::from(visits) << VISITS_SHIFT);
    set_marks(bytes, Marks::NUMBER);
    let view = View::new(bytes);
    let start = HEADER_LEN + view.key_len();
    let end = start + view.value_len();
    let mut left = added;
    for digit in bytes[start..end].iter_mut().rev() {
        if left == 0 {
            break;
        }
        left += u64::from(*digit - b'0');
        *digit = b'0' + (left % 10) as u8;
        left /= 10;
    }
}

fn marks_bits(marks: Marks) -> u64 {
    u64::from(marks.bits()) << MARKS_SHIFT
}

fn form_bits(marks: Marks) -> u64 {
    u64::from(marks.bits() >> LAST_MARKS) << FORM_SHIFT
}

pub(super) fn set_marks(bytes: &mut [u8], marks: Marks) {
    let kept = word(bytes, 2) & ((1 << MARKS_SHIFT) - 1);
    put_word(bytes, 2, kept | marks_bits(marks));
    let kept = word(bytes, 0) & !(FORM_MASK << FORM_SHIFT);
    put_word(bytes, 0, kept | form_bits(marks));
}

/// Marks the value as read.
#[inline]
pub(super) fn fetch(bytes: &mut [u8]) {
    let old = word(bytes, 2);
    let new = old | marks_bits(Marks::FETCHED);
    if new != old {
        put_word(bytes, 2, new);
    }
}

/// Counts one more visit. Writes nothing once the count is at its maximum, so that the hottest
/// records are only read.
#[inline]
pub(super) fn visit(bytes: &mut [u8]) {
    let head = word(bytes, 0);
    if (head >> VISITS_SHIFT) as u8 & VISITS_MAX < VISITS_MAX {
        put_word(bytes, 0, head + (1 << VISITS_SHIFT));
    }
}

pub(super) fn set_visits(bytes: &mut [u8], visits: u8) {
    let head = word(bytes, 0) & !(u64::from(VISITS_MAX) << VISITS_SHIFT);
    put_word(bytes, 0, head | u64::from(visits) << VISITS_SHIFT);
}

pub(super) fn set_expiry(bytes: &mut [u8], expires_at_ms: Option<u64>) {
    let kept = word(bytes, 2) & !EXPIRY_NEVER;
    put_word(bytes, 2, kept | expiry_bits(expires_at_ms));
}

pub(super) fn kill(bytes: &mut [u8]) {
    let head = word(bytes, 0);
    put_word(bytes, 0, head | DEAD);
}

/// A time that does not fit 48 bits lies past the year 10,000, and is clamped.
fn expiry_bits(expires_at_ms: Option<u64>) -> u64 {
    expires_at_ms.map_or(EXPIRY_NEVER, |at| at.min(EXPIRY_NEVER - 1))
}

#[inline]
fn word(bytes: &[u8], index: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[8 * index..8 * index + 8]);
    u64::from_le_bytes(word)
}

#[inline]
fn put_word(bytes: &mut [u8], index: usize, word: u64) {
    bytes[8 * index..8 * index + 8].copy_from_slice(&word.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn what_is_written_is_read(
            key in proptest::collection::vec(proptest::num::u8::ANY, 1..40),
            value: Vec<u8>,
            flags: u32,
            expires_at_ms in proptest::option::of(0..EXPIRY_NEVER),
            version in 0..=VERSION_MASK,
            visits in 0..=VISITS_MAX,
            marks in 0..32u8,
        ) {
            let marks = Marks::from_bits(marks);
            let new = NewRecord { flags, expires_at_ms, marks, ..NewRecord::of(&value) };
            let mut bytes = vec![0xaa; footprint(key.len(), value.len()) + 9];
            write(&mut bytes, &key, &new, version, visits);
            visit(&mut bytes);
            let view = View::new(&bytes);
            proptest::prop_assert_eq!(view.key(), &key[..]);
            let record = Record { flags, expires_at_ms, marks, ..Record::of(&value, version) };
            proptest::prop_assert_eq!(view.record(), record);
            proptest::prop_assert_eq!(view.visits(), (visits + 1).min(VISITS_MAX));
            proptest::prop_assert!(!view.is_dead());
            set_visits(&mut bytes, 1);
            set_expiry(&mut bytes, Some(7));
            set_marks(&mut bytes, Marks::STALE);
            fetch(&mut bytes);
            kill(&mut bytes);
            let view = View::new(&bytes);
            proptest::prop_assert!(view.is_dead() && view.visits() == 1);
            let marks = Marks::STALE.and(Marks::FETCHED);
            let record = Record { expires_at_ms: Some(7), marks, ..record };
            proptest::prop_assert_eq!(view.record(), record);
        }
    }

    #[test]
    fn the_far_future_is_not_never() {
        let mut bytes = [0; 32];
        write(&mut bytes, b"k", &NewRecord::of(b"").expiring(Some(u64::MAX)), 1, 0);
        assert_eq!(View::new(&bytes).expires_at_ms(), Some(EXPIRY_NEVER - 1));
    }
}
