//! Operations built on get, put and delete, for every engine: conditional puts, counters, append.

use crate::{
    CommitNumber, DatabaseId, Kind, NewRecord, ReadError, Record, WriteError, WriteTransaction,
    counter, limits,
};

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

impl Condition<'_> {
    /// Whether it holds for the record that is there, if any.
    pub(crate) fn holds(&self, found: Option<&Record<'_>>) -> bool {
        match (self, found) {
            (Self::Absent, found) => found.is_none(),
            (_, None) => false,
            (Self::Present, Some(_)) => true,
            (Self::Version(version), Some(record)) => record.version == *version,
            (Self::Value(value), Some(record)) => {
                record.kind == Kind::Bytes && record.value == *value
            }
        }
    }
}

/// A counter could not be changed.
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

/// Operations composed of a transaction's own. All are atomic, since the transaction is.
pub trait WriteOperations: WriteTransaction {
    /// Puts a record if `condition` holds; returns whether it did.
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
        let holds = condition.holds(self.get(database, key)?.as_ref());
        if holds {
            self.put(database, key, record)?;
        }
        Ok(holds)
    }

    /// Adds `by` to a counter, which is a decimal integer as text; an absent one counts as zero.
    /// Keeps flags and expiry, and returns the new value.
    ///
    /// # Errors
    /// [`IncrementError`]; then nothing has changed.
    fn increment(
        &mut self,
        database: DatabaseId,
        key: &[u8],
        by: i64,
    ) -> Result<i64, IncrementError> {
        let (old, head) = number(self, database, key, counter::parse)?;
        let new = old.checked_add(by).ok_or(IncrementError::Overflow)?;
        let mut digits = itoa::Buffer::new();
        self.put(database, key, NewRecord { value: digits.format(new).as_bytes(), ..head })?;
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
        let (old, head) = number(self, database, key, counter::parse_float)?;
        let new = old + by;
        if !new.is_finite() {
            return Err(IncrementError::Overflow);
        }
        let value = counter::format_float(new);
        self.put(database, key, NewRecord { value: value.as_bytes(), ..head })?;
        Ok(new)
    }

    /// Appends to a value, or puts it if there is none. Keeps flags and expiry, and returns the new
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
        let Some(old) = bytes(self, database, key)? else {
            self.put(database, key, NewRecord::of(suffix))?;
            return Ok(suffix.len());
        };
        let len = old.value.len() + suffix.len();
        if len > limits::VALUE_LEN_MAX {
            return Err(WriteError::ValueLength { len, max: limits::VALUE_LEN_MAX });
        }
        let value = [old.value, suffix].concat();
        let new = old.with_value(&value);
        self.put(database, key, new)?;
        Ok(len)
    }
}

impl<T: WriteTransaction + ?Sized> WriteOperations for T {}

/// The number under `key`, zero if there is none, and its record with an empty value.
fn number<N: Default>(
    transaction: &mut (impl WriteTransaction + ?Sized),
    database: DatabaseId,
    key: &[u8],
    parse: impl FnOnce(&[u8]) -> Option<N>,
) -> Result<(N, NewRecord<'static>), IncrementError> {
    let Some(old) = bytes(transaction, database, key)? else {
        return Ok((N::default(), NewRecord::of(&[])));
    };
    let number = parse(old.value).ok_or(IncrementError::NotANumber)?;
    Ok((number, old.with_number(&[])))
}

/// The record under `key`, which must be of kind bytes.
fn bytes<'t>(
    transaction: &'t mut (impl WriteTransaction + ?Sized),
    database: DatabaseId,
    key: &[u8],
) -> Result<Option<Record<'t>>, WriteError> {
    match transaction.get(database, key)? {
        Some(record) if record.kind != Kind::Bytes => Err(WriteError::WrongKind),
        found => Ok(found),
    }
}
