//! Typed values: numbers, booleans and lists, as the shared dictionaries of OpenResty hold them.
//! Every other reader sees a number or a boolean as its text.
//!
//! ```text
//! a list    u32 number of elements, then each element
//! element   u32 length, with its highest bit set for a number; bytes; the first word again
//! ```
//! All in little-endian. The length is at both ends, so that a list can be read from either.

use super::{
    Cache,
    segment::Location,
    shard::{Key, Now, Shard},
};
use crate::{Marks, NewRecord, Record, WriteError, counter};

/// Length of a word of a list.
const WORD_LEN: usize = 4;

/// Set in the length of an element that is a number.
const IS_NUMBER: u32 = 1 << 31;

/// Why a dictionary was not changed.
#[derive(Debug, thiserror::Error)]
pub enum DictionaryError {
    /// There is no record under the key.
    #[error("not found")]
    NotFound,
    /// There is a record under the key already.
    #[error("exists")]
    Exists,
    /// The value under the key is not a number.
    #[error("not a number")]
    NotANumber,
    /// The value under the key is not a list.
    #[error("value not a list")]
    NotAList,
    /// There is no room, and nothing may be evicted.
    #[error("no memory")]
    NoMemory,
    /// The key or the value is too long.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// When a value is put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// Unconditionally.
    Always,
    /// If there is no value yet.
    IfAbsent,
    /// If there is a value.
    IfPresent,
}

/// An end of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The front.
    Left,
    /// The back.
    Right,
}

/// An element of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element<'e> {
    /// Its text.
    pub text: &'e [u8],
    /// Whether it is a number.
    pub is_number: bool,
}

impl Cache {
    /// The time `ms` milliseconds from now, for a record's expiry.
    #[must_use]
    pub fn in_ms(&self, ms: u64) -> u64 {
        self.clock.now_ms().saturating_add(ms)
    }

    /// The time until a record expires, in milliseconds; `None` if it never does.
    ///
    /// # Errors
    /// [`DictionaryError::NotFound`].
    pub fn time_to_live(&self, key: &[u8]) -> Result<Option<u64>, DictionaryError> {
        let found = self.metadata(key).map_err(WriteError::from)?;
        let expires_at_ms = found.ok_or(DictionaryError::NotFound)?.expires_at_ms;
        Ok(expires_at_ms.map(|at| at.saturating_sub(self.clock.now_ms())))
    }

    /// Puts a value; returns whether others were evicted to make room for it. Without `may_evict`,
    /// a value for which there is no room is refused.
    ///
    /// # Errors
    /// [`DictionaryError`].
    pub fn put_value(
        &self,
        key: &[u8],
        record: NewRecord<'_>,
        put: Put,
        may_evict: bool,
    ) -> Result<bool, DictionaryError> {
        self.check_record(key, &record)?;
        let put = self.at(key, |shard, key, now| {
            let old = shard.find(key, now);
            match (put, old) {
                (Put::IfAbsent, Some(_)) => return Err(DictionaryError::Exists),
                (Put::IfPresent, None) => return Err(DictionaryError::NotFound),
                _ => {}
            }
            if !may_evict && !shard.has_room_for(key, record.value.len(), old) {
                return Err(DictionaryError::NoMemory);
            }
            Ok(put_counting(shard, key, &record, old, now))
        });
        put.map_err(WriteError::from)?
    }

    /// Adds to a number, keeping its flags and expiry. If there is none, starts from `start`: a
    /// number and an expiry. Returns the sum, and whether others were evicted to make room.
    ///
    /// # Errors
    /// [`DictionaryError`].
    pub fn add_to_number(
        &self,
        key: &[u8],
        by: f64,
        start: Option<(f64, Option<u64>)>,
    ) -> Result<(f64, bool), DictionaryError> {
        let added = self.at(key, |shard, key, now| {
            let found = shard.find(key, now);
            if let Some(sum) = found.and_then(|found| shard.add_in_place(found, by)) {
                return Ok((sum, false));
            }
            let (old, expires_at_ms, flags) = match found {
                Some(found) => {
                    let record = shard.view(found).record();
                    let old = number_of(&record).ok_or(DictionaryError::NotANumber)?;
                    (old, record.expires_at_ms, record.flags)
                }
                None => {
                    let (number, expires_at_ms) = start.ok_or(DictionaryError::NotFound)?;
                    (number, expires_at_ms, 0)
                }
            };
            let sum = old + by;
            let mut text = NumberText::default();
            let new = NewRecord {
                flags,
                expires_at_ms,
                marks: Marks::NUMBER,
                ..NewRecord::of(text.write(sum))
            };
            self.check_record(key.bytes, &new)?;
            Ok((sum, put_counting(shard, key, &new, found, now)))
        });
        added.map_err(WriteError::from)?
    }

    /// Adds an element at one end of a list, which is created if there is none; returns how many
    /// there are now. Evicts nothing.
    ///
    /// # Errors
    /// [`DictionaryError`].
    pub fn push(&self, key: &[u8], end: End, new: Element<'_>) -> Result<u32, DictionaryError> {
        let pushed = self.at(key, |shard, key, now| {
            let found = shard.find(key, now);
            let old = found.map(|found| shard.view(found).record());
            let (list, flags, expires_at_ms) = match &old {
                None => (&[][..], 0, None),
                Some(old) => (list_of(old)?, old.flags, old.expires_at_ms),
            };
            let (count, elements) = split(list);
            let count = count + 1;
            let mut value = Vec::with_capacity(list.len() + new.text.len() + 3 * WORD_LEN);
            value.extend_from_slice(&count.to_le_bytes());
            let front = if end == End::Left { &[][..] } else { elements };
            let back = if end == End::Left { elements } else { &[][..] };
            value.extend_from_slice(front);
            write_element(new, &mut value);
            value.extend_from_slice(back);
            let marks = Marks::LIST;
            let record = NewRecord { flags, expires_at_ms, marks, ..NewRecord::of(&value) };
            self.check_record(key.bytes, &record)?;
            if !shard.has_room_for(key, value.len(), found) {
                return Err(DictionaryError::NoMemory);
            }
            shard.put(key, &record, found, now);
            Ok(count)
        });
        pushed.map_err(WriteError::from)?
    }

    /// Takes an element from one end of a list, writes its text, and returns whether it is a
    /// number. The list is removed with its last element.
    ///
    /// # Errors
    /// [`DictionaryError::NotAList`].
    pub fn pop(
        &self,
        key: &[u8],
        end: End,
        text: &mut Vec<u8>,
    ) -> Result<Option<bool>, DictionaryError> {
        let popped = self.at(key, |shard, key, now| {
            let Some(found) = shard.find(key, now) else { return Ok(None) };
            let old = shard.view(found).record();
            let (count, elements) = split(list_of(&old)?);
            let Some((element, rest)) = take(elements, end) else { return Ok(None) };
            text.clear();
            text.extend_from_slice(element.text);
            let is_number = element.is_number;
            if count <= 1 {
                shard.remove(key.hash, found);
                shard.counters.deleted += 1;
                return Ok(Some(is_number));
            }
            let value = [&(count - 1).to_le_bytes()[..], rest].concat();
            let record = old.with_same_value(&value);
            shard.put(key, &record, Some(found), now);
            Ok(Some(is_number))
        });
        popped.map_err(WriteError::from)?
    }

    /// The number of elements of a list; 0 if there is no list.
    ///
    /// # Errors
    /// [`DictionaryError::NotAList`].
    pub fn list_len(&self, key: &[u8]) -> Result<u32, DictionaryError> {
        let len = self.at(key, |shard, key, now| {
            let Some(found) = shard.find(key, now) else { return Ok(0) };
            Ok(split(list_of(&shard.view(found).record())?).0)
        });
        len.map_err(WriteError::from)?
    }
}

/// Puts a record; returns whether others were evicted to make room for it.
fn put_counting(
    shard: &mut Shard,
    key: Key<'_>,
    record: &NewRecord<'_>,
    old: Option<Location>,
    now: &mut Now<'_>,
) -> bool {
    let evicted = shard.counters.evicted;
    shard.put(key, record, old, now);
    shard.counters.evicted > evicted
}

fn number_of(record: &Record<'_>) -> Option<f64> {
    if record.marks.form() != Marks::NUMBER { None } else { parse_number(record.value) }
}

fn list_of<'v>(record: &Record<'v>) -> Result<&'v [u8], DictionaryError> {
    if record.marks.form() == Marks::LIST {
        Ok(record.value)
    } else {
        Err(DictionaryError::NotAList)
    }
}

/// Reads a number as [`NumberText`] writes it. Spaces may follow: memcached leaves them when a number gets shorter.
#[must_use]
pub fn parse_number(text: &[u8]) -> Option<f64> {
    let text = text.trim_ascii_end();
    match parse_digits(text) {
        Some(number) => Some(number as f64),
        None => std::str::from_utf8(text).ok()?.parse().ok(),
    }
}

/// Reads an integer of digits only, no longer than a double can hold exactly.
#[inline]
pub(super) fn parse_digits(text: &[u8]) -> Option<u64> {
    const EXACT_LEN: usize = 15;
    if text.is_empty() || text.len() > EXACT_LEN {
        return None;
    }
    let mut number = 0;
    for byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number = number * 10 + u64::from(digit);
    }
    Some(number)
}

/// The text of a number: the shortest decimal that reads back the same.
#[derive(Default)]
pub struct NumberText {
    digits: itoa::Buffer,
    other: String,
}

impl NumberText {
    /// Writes a number.
    pub fn write(&mut self, number: f64) -> &[u8] {
        const EXACT_MAX: f64 = (1u64 << 53) as f64;
        if number.fract() == 0.0 && number.abs() <= EXACT_MAX {
            self.digits.format(number as i64).as_bytes()
        } else {
            self.other = counter::format_float(number);
            self.other.as_bytes()
        }
    }
}

/// The number of elements, and their bytes.
fn split(list: &[u8]) -> (u32, &[u8]) {
    match list.split_first_chunk::<WORD_LEN>() {
        Some((count, elements)) => (u32::from_le_bytes(*count), elements),
        None => (0, &[]),
    }
}

fn write_element(element: Element<'_>, out: &mut Vec<u8>) {
    let number = if element.is_number { IS_NUMBER } else { 0 };
    let word = (element.text.len() as u32 | number).to_le_bytes();
    out.extend_from_slice(&word);
    out.extend_from_slice(element.text);
    out.extend_from_slice(&word);
}

/// The element at one end, and the rest.
fn take(elements: &[u8], end: End) -> Option<(Element<'_>, &[u8])> {
    let word = match end {
        End::Left => elements.first_chunk::<WORD_LEN>()?,
        End::Right => elements.last_chunk::<WORD_LEN>()?,
    };
    let word = u32::from_le_bytes(*word);
    let len = (word & !IS_NUMBER) as usize + 2 * WORD_LEN;
    let (element, rest) = match end {
        End::Left => elements.split_at_checked(len)?,
        End::Right => {
            let (rest, element) = elements.split_at_checked(elements.len().checked_sub(len)?)?;
            (element, rest)
        }
    };
    let text = &element[WORD_LEN..element.len() - WORD_LEN];
    Some((Element { text, is_number: word & IS_NUMBER != 0 }, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::Options;

    fn cache() -> Cache {
        Cache::new(Options { bytes_max: 1 << 20, ..Options::default() }).unwrap()
    }

    fn value(cache: &Cache, key: &[u8]) -> Option<(Vec<u8>, Marks)> {
        let mut value = Vec::new();
        let found = cache.get(key, &mut value).unwrap()?;
        Some((value, found.marks.form()))
    }

    #[test]
    fn a_number_is_its_text_and_stays_a_number() {
        let cache = cache();
        let error = cache.add_to_number(b"n", 1.0, None).unwrap_err();
        assert!(matches!(error, DictionaryError::NotFound));
        assert_eq!(cache.add_to_number(b"n", 1.5, Some((1.0, None))).unwrap().0, 2.5);
        assert_eq!(value(&cache, b"n"), Some((b"2.5".to_vec(), Marks::NUMBER)));
        assert_eq!(cache.add_to_number(b"n", 0.5, None).unwrap().0, 3.0);
        // Another protocol counts on.
        assert_eq!(cache.increment_signed(b"n", 4).unwrap(), 7);
        assert_eq!(cache.add_to_number(b"n", 1.0, None).unwrap().0, 8.0);
        cache.set(b"n", NewRecord::of(b"8")).unwrap();
        let error = cache.add_to_number(b"n", 1.0, None).unwrap_err();
        assert!(matches!(error, DictionaryError::NotANumber));
    }

    #[test]
    fn an_integer_that_counts_up_is_written_as_any_other_number_is() {
        let cache = cache();
        for (old, by) in [
            (0, 1),
            (1, 8),
            (8, 1),
            (9, 1),
            (99, 1),
            (198, 2),
            (1_999, 1),
            (1_000_000, 999_999),
            (123_456_789, 987_654),
            (999_999_999_999_999_u64, 1),
            (5, 0),
        ] {
            let record = NewRecord { flags: 7, marks: Marks::NUMBER, ..NewRecord::of(b"") };
            let text = old.to_string();
            let record = NewRecord { value: text.as_bytes(), ..record };
            cache.set(b"n", record).unwrap();
            let before = cache.metadata(b"n").unwrap().unwrap();
            let sum = old + by;
            assert_eq!(cache.add_to_number(b"n", by as f64, None).unwrap(), (sum as f64, false));
            let found = Some((sum.to_string().into_bytes(), Marks::NUMBER));
            assert_eq!(value(&cache, b"n"), found, "{old} + {by}");
            let after = cache.metadata(b"n").unwrap().unwrap();
            assert_eq!((after.flags, after.expires_at_ms), (7, None));
            assert!(after.version > before.version);
        }
        // Digits in a form that the cache would not write are rewritten.
        for (text, expected) in [("007", "8"), ("-5", "-4"), ("9 ", "10"), ("1.5", "2.5")] {
            let record = NewRecord { marks: Marks::NUMBER, ..NewRecord::of(text.as_bytes()) };
            cache.set(b"n", record).unwrap();
            cache.add_to_number(b"n", 1.0, None).unwrap();
            assert_eq!(value(&cache, b"n").unwrap().0, expected.as_bytes());
        }
        for (by, expected) in [(-1.0, "4"), (0.5, "4.5"), (1e15, "1000000000000004.5")] {
            if by < 0.0 {
                let record = NewRecord { marks: Marks::NUMBER, ..NewRecord::of(b"5") };
                cache.set(b"n", record).unwrap();
            }
            cache.add_to_number(b"n", by, None).unwrap();
            assert_eq!(value(&cache, b"n").unwrap().0, expected.as_bytes());
        }
    }

    #[test]
    fn numbers_of_every_kind_read_back() {
        for number in [0.0, -1.0, 1e15, 9_007_199_254_740_993.0, 0.1, -1e300, 1e-300, f64::INFINITY]
        {
            let mut text = NumberText::default();
            assert_eq!(parse_number(text.write(number)), Some(number));
        }
        assert!(parse_number(NumberText::default().write(f64::NAN)).unwrap().is_nan());
        assert_eq!(parse_number(b"9 "), Some(9.0));
        assert_eq!(parse_number(b""), None);
        assert_eq!(parse_number(b"x"), None);
    }

    #[test]
    fn a_list_has_two_ends() {
        let cache = cache();
        let text = |text: &'static str| Element { text: text.as_bytes(), is_number: false };
        assert_eq!(cache.push(b"l", End::Right, text("b")).unwrap(), 1);
        assert_eq!(cache.push(b"l", End::Left, text("a")).unwrap(), 2);
        let number = Element { text: b"3", is_number: true };
        assert_eq!(cache.push(b"l", End::Right, number).unwrap(), 3);
        assert_eq!(cache.list_len(b"l").unwrap(), 3);
        let mut out = Vec::new();
        let mut pop = |end| {
            let is_number = cache.pop(b"l", end, &mut out).unwrap()?;
            Some((String::from_utf8(out.clone()).unwrap(), is_number))
        };
        assert_eq!(pop(End::Right), Some(("3".to_owned(), true)));
        assert_eq!(pop(End::Left), Some(("a".to_owned(), false)));
        assert_eq!(pop(End::Right), Some(("b".to_owned(), false)));
        assert_eq!(pop(End::Right), None);
        assert_eq!(value(&cache, b"l"), None);
        cache.set(b"l", NewRecord::of(b"text")).unwrap();
        let error = cache.push(b"l", End::Left, text("a")).unwrap_err();
        assert!(matches!(error, DictionaryError::NotAList));
        assert!(cache.pop(b"l", End::Left, &mut Vec::new()).is_err());
    }

    #[test]
    fn conditions_and_room_are_kept() {
        let cache = cache();
        let put = |key: &[u8], put, may_evict| {
            let text = [b'x'; 1000];
            cache.put_value(key, NewRecord::of(&text), put, may_evict)
        };
        assert!(matches!(put(b"k", Put::IfPresent, true), Err(DictionaryError::NotFound)));
        assert!(!put(b"k", Put::IfAbsent, true).unwrap());
        assert!(matches!(put(b"k", Put::IfAbsent, true), Err(DictionaryError::Exists)));
        let number = |n: u32| n.to_be_bytes();
        let full = (0..2_000).find(|&n| put(&number(n), Put::Always, false).is_err()).unwrap();
        assert!((500..1_100).contains(&full), "{full}");
        assert_eq!(cache.statistics().evicted, 0);
        let text = [b'x'; 1000];
        let element = Element { text: &text, is_number: false };
        let refused = (0..50).find_map(|_| cache.push(b"list", End::Right, element).err());
        assert!(matches!(refused, Some(DictionaryError::NoMemory)));
        assert_eq!(cache.statistics().evicted, 0);
        let is_forced = (0..50).any(|n| put(&number(full + n), Put::Always, true).unwrap());
        assert!(is_forced && cache.statistics().evicted > 0);
    }
}
