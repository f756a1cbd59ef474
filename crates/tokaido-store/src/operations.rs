//! What every engine can do on top of get, put and delete: conditional puts, counters, append.

use crate::{CommitNumber, DatabaseId, NewRecord, ReadError, WriteError, WriteTransaction, limits};

/// What must hold for a conditional write to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition<'a> {
    /// No record is there: memcached's and Kyoto Tycoon's *add*.
    Absent,
    /// A record is there: *replace*.
    Present,
    /// The record has this version: memcached's *cas*.
    Version(CommitNumber),
    /// The record has this value: Kyoto Tycoon's *cas*.
    Value(&'a [u8]),
}

/// A counter could not be moved.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IncrementError {
    /// The value is not written as a number.
    #[error("the value is not a number that can be incremented; put one there first")]
    NotANumber,
    /// The result would not fit 64 bits, or would not be finite.
    #[error("the increment would overflow; the value stays as it was")]
    Overflow,
    /// Reading or writing failed.
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl From<ReadError> for IncrementError {
    fn from(error: ReadError) -> Self {
        Self::Write(error.into())
    }
}

/// Operations made of a transaction's own. All are atomic, since the transaction is.
pub trait WriteOperations: WriteTransaction {
    /// Puts a record if `condition` holds; tells whether it did.
    ///
    /// # Errors
    /// As [`WriteTransaction::put`].
    fn put_if(
        &mut self,
        database: DatabaseId,
        key: &[u8],
        condition: Condition<'_>,
        record: NewRecord<'_>,
    ) -> Result<bool, WriteError> {
        let found = self.get(database, key)?;
        let holds = match condition {
            Condition::Absent => found.is_none(),
            Condition::Present => found.is_some(),
            Condition::Version(version) => found.is_some_and(|r| r.version == version),
            Condition::Value(value) => found.is_some_and(|r| r.value == value),
        };
        if holds {
            self.put(database, key, record)?;
        }
        Ok(holds)
    }

    /// Adds `by` to a counter, which is a decimal integer as text; an absent one counts as zero.
    /// Flags and expiry stay. Gives the new value.
    ///
    /// # Errors
    /// [`IncrementError`]; then nothing has changed.
    fn increment(
        &mut self,
        database: DatabaseId,
        key: &[u8],
        by: i64,
    ) -> Result<i64, IncrementError> {
        let (old, flags, expires_at_ms) = match self.get(database, key)? {
            None => (0, 0, None),
            Some(r) => {
                let old = parse_integer(r.value).ok_or(IncrementError::NotANumber)?;
                (old, r.flags, r.expires_at_ms)
            }
        };
        let new = old.checked_add(by).ok_or(IncrementError::Overflow)?;
        let mut digits = itoa::Buffer::new();
        let value = digits.format(new).as_bytes();
        self.put(database, key, NewRecord { value, flags, expires_at_ms })?;
        Ok(new)
    }

    /// As [`increment`](Self::increment), for numbers with a fraction.
    ///
    /// # Errors
    /// [`IncrementError`]; then nothing has changed.
    fn increment_float(
        &mut self,
        database: DatabaseId,
        key: &[u8],
        by: f64,
    ) -> Result<f64, IncrementError> {
        let (old, flags, expires_at_ms) = match self.get(database, key)? {
            None => (0.0, 0, None),
            Some(r) => {
                let old = parse_float(r.value).ok_or(IncrementError::NotANumber)?;
                (old, r.flags, r.expires_at_ms)
            }
        };
        let new = old + by;
        if !new.is_finite() {
            return Err(IncrementError::Overflow);
        }
        let value = format_float(new);
        self.put(database, key, NewRecord { value: value.as_bytes(), flags, expires_at_ms })?;
        Ok(new)
    }

    /// Appends to a value, or puts it if there is none. Flags and expiry stay. Gives the new
    /// length in bytes.
    ///
    /// # Errors
    /// As [`WriteTransaction::put`].
    fn append(
        &mut self,
        database: DatabaseId,
        key: &[u8],
        suffix: &[u8],
    ) -> Result<usize, WriteError> {
        let Some(old) = self.get(database, key)? else {
            self.put(database, key, NewRecord::of(suffix))?;
            return Ok(suffix.len());
        };
        let len = old.value.len() + suffix.len();
        if len > limits::VALUE_LEN_MAX {
            return Err(WriteError::ValueLength { len, max: limits::VALUE_LEN_MAX });
        }
        let (flags, expires_at_ms) = (old.flags, old.expires_at_ms);
        let value = [old.value, suffix].concat();
        self.put(database, key, NewRecord { value: &value, flags, expires_at_ms })?;
        Ok(len)
    }
}

impl<T: WriteTransaction + ?Sized> WriteOperations for T {}

/// Reads an integer as Redis does: decimal, 64 bits, no sign but `-`, no leading zeros or spaces.
#[must_use]
pub fn parse_integer(text: &[u8]) -> Option<i64> {
    const LEN_MAX: usize = "-9223372036854775808".len();
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let canonical = match digits {
        [b'0'] => text.len() == 1,
        [b'1'..=b'9', ..] => text.len() <= LEN_MAX,
        _ => false,
    };
    if !canonical {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Reads a finite number, in decimal or exponent form, without spaces around it.
#[must_use]
pub fn parse_float(text: &[u8]) -> Option<f64> {
    let number: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    number.is_finite().then_some(number)
}

/// Writes a number as the shortest decimal that reads back the same, without an exponent.
#[must_use]
pub fn format_float(number: f64) -> String {
    if number == 0.0 { "0".to_owned() } else { number.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_read_strictly() {
        assert_eq!(parse_integer(b"0"), Some(0));
        assert_eq!(parse_integer(b"-9223372036854775808"), Some(i64::MIN));
        assert_eq!(parse_integer(b"9223372036854775807"), Some(i64::MAX));
        for text in ["", "-", "-0", "+1", "01", " 1", "1 ", "1.0", "0x1", "9223372036854775808"] {
            assert_eq!(parse_integer(text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn floats_are_written_without_exponent() {
        assert_eq!(format_float(3.0e3), "3000");
        assert_eq!(format_float(0.1 + 0.2), "0.30000000000000004");
        assert_eq!(format_float(-0.0), "0");
        assert_eq!(parse_float(b"5.0e3"), Some(5000.0));
        assert_eq!(parse_float(b"inf"), None);
        assert_eq!(parse_float(b"abc"), None);
    }
}
