//! Counters: values that are decimal numbers, changed in place.

use crate::{IncrementError, NewRecord, counter};

use super::{
    Cache,
    segment::Location,
    shard::{Key, Now, Shard},
};

/// Digits of the largest unsigned number.
const DIGITS_MAX: usize = "18446744073709551615".len();

impl Cache {
    /// Adds to an unsigned counter as memcached does: past 2^64 it continues from 0. Returns the
    /// new number; `None` if there is no record. Keeps flags and expiry.
    ///
    /// # Errors
    /// [`IncrementError::NotANumber`]; then nothing has changed.
    pub fn increment(&self, key: &[u8], by: u64) -> Result<Option<u64>, IncrementError> {
        self.count(key, |old| old.wrapping_add(by))
    }

    /// Subtracts from an unsigned counter as memcached does: it stops at 0. Returns the new number;
    /// `None` if there is no record. Keeps flags and expiry.
    ///
    /// # Errors
    /// [`IncrementError::NotANumber`]; then nothing has changed.
    pub fn decrement(&self, key: &[u8], by: u64) -> Result<Option<u64>, IncrementError> {
        self.count(key, |old| old.saturating_sub(by))
    }

    fn count(
        &self,
        key: &[u8],
        change: impl FnOnce(u64) -> u64,
    ) -> Result<Option<u64>, IncrementError> {
        self.at(key, |shard, key, now| {
            let Some(old) = shard.find(key, now) else { return Ok(None) };
            let number = parse_unsigned(shard.view(old).value());
            let new = change(number.ok_or(IncrementError::NotANumber)?);
            let mut digits = itoa::Buffer::new();
            let value = digits.format(new).as_bytes();
            self.check(key.bytes, value.len())?;
            put_number(shard, key, value, old, now);
            Ok(Some(new))
        })?
    }

    /// Adds to a signed counter, as [`WriteOperations::increment`](crate::WriteOperations::increment); an absent one counts as zero and is created
    /// without flags and expiry. Returns the new number.
    ///
    /// # Errors
    /// [`IncrementError`]; then nothing has changed.
    pub fn increment_signed(&self, key: &[u8], by: i64) -> Result<i64, IncrementError> {
        self.at(key, |shard, key, now| {
            let found = shard.find(key, now);
            let old = match found {
                None => 0,
                Some(found) => {
                    counter::parse(shard.view(found).value()).ok_or(IncrementError::NotANumber)?
                }
            };
            let new = old.checked_add(by).ok_or(IncrementError::Overflow)?;
            let mut digits = itoa::Buffer::new();
            let value = digits.format(new).as_bytes();
            self.check(key.bytes, value.len())?;
            match found {
                None => shard.put(key, &NewRecord::of(value), None, now),
                Some(found) => put_number(shard, key, value, found, now),
            };
            Ok(new)
        })?
    }
}

/// Puts another number under a key. Keeps flags, expiry and the form that shared dictionaries see.
fn put_number(
    shard: &mut Shard,
    key: Key<'_>,
    value: &[u8],
    old: Location,
    now: &mut Now<'_>,
) -> u64 {
    let new = shard.view(old).record().with_number(value);
    shard.put(key, &new, Some(old), now)
}

/// Reads an unsigned number. Spaces may follow: memcached leaves them when a number gets shorter.
fn parse_unsigned(text: &[u8]) -> Option<u64> {
    let digits = text.trim_ascii_end();
    if digits.is_empty() || digits.len() > DIGITS_MAX {
        return None;
    }
    digits.iter().try_fold(0u64, |number, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsigned_numbers_are_read_as_memcached_reads_them() {
        assert_eq!(parse_unsigned(b"0"), Some(0));
        assert_eq!(parse_unsigned(b"007"), Some(7));
        assert_eq!(parse_unsigned(b"9 "), Some(9));
        assert_eq!(parse_unsigned(b"18446744073709551615"), Some(u64::MAX));
        for text in
            ["", " ", "-1", "+1", "1.0", "1a", "18446744073709551616", "000000000000000000001"]
        {
            assert_eq!(parse_unsigned(text.as_bytes()), None, "{text:?}");
        }
    }
}
