//! The cache for callers in other languages: plain functions on slices and numbers.
//!
//! Results go into memory of the caller's and allocate nothing; nothing panics on bad input or
//! calls back. An `extern "C"` bridge has only to make slices of its pointers. An expiry of 0 means
//! never.

use crate::{Condition, IncrementError, NewRecord};

use super::{Cache, CacheError, CasOutcome};

/// What came of a call. The numbers are part of the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Code {
    /// Done, or found.
    Done = 0,
    /// There is no record of the key.
    Absent = 1,
    /// The record is there, or has another version, so nothing was done.
    Exists = 2,
    /// The value is longer than the caller's buffer: see [`Answer::value_len`], and ask again.
    BufferTooSmall = 3,
    /// The value is no number.
    NotANumber = 4,
    /// The number would not fit 64 bits.
    Overflow = 5,
    /// The key has no bytes or too many.
    KeyLength = -1,
    /// The value, or the record as a whole, is longer than the cache takes.
    TooLarge = -2,
}

impl From<CacheError> for Code {
    fn from(error: CacheError) -> Self {
        match error {
            CacheError::KeyLength { .. } => Self::KeyLength,
            CacheError::ValueLength { .. } | CacheError::RecordTooLarge { .. } => Self::TooLarge,
        }
    }
}

impl From<CasOutcome> for Code {
    fn from(outcome: CasOutcome) -> Self {
        match outcome {
            CasOutcome::Stored(_) => Self::Done,
            CasOutcome::Exists => Self::Exists,
            CasOutcome::NotFound => Self::Absent,
        }
    }
}

/// What a call tells beside its code. Left as it was if the code is not [`Code::Done`], but for
/// `value_len` with [`Code::BufferTooSmall`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Answer {
    /// Length of the value, in bytes.
    pub value_len: u64,
    /// The record's version.
    pub version: u64,
    /// When the record ceases to be seen, in ms since the epoch; 0: never.
    pub expires_at_ms: u64,
    /// The record's flags.
    pub flags: u32,
}

/// When a [`set`] is to happen. The numbers are part of the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Mode {
    /// In any case.
    Set = 0,
    /// If there is no record.
    Add = 1,
    /// If there is one.
    Replace = 2,
    /// If there is one of the version in `answer`.
    Cas = 3,
}

fn expiry(expires_at_ms: u64) -> Option<u64> {
    (expires_at_ms != 0).then_some(expires_at_ms)
}

/// Copies the value of a key into `value`.
pub fn get(cache: &Cache, key: &[u8], value: &mut [u8], answer: &mut Answer) -> Code {
    let found = cache.read(key, |record| {
        answer.value_len = record.value.len() as u64;
        let Some(place) = value.get_mut(..record.value.len()) else {
            return Code::BufferTooSmall;
        };
        place.copy_from_slice(record.value);
        answer.version = record.version;
        answer.expires_at_ms = record.expires_at_ms.unwrap_or(0);
        answer.flags = record.flags;
        Code::Done
    });
    found.map_or_else(Code::from, |found| found.unwrap_or(Code::Absent))
}

/// Puts a value, if `mode` allows; writes its version to `answer`.
pub fn set(
    cache: &Cache,
    key: &[u8],
    value: &[u8],
    flags: u32,
    expires_at_ms: u64,
    mode: Mode,
    answer: &mut Answer,
) -> Code {
    let record = NewRecord { value, flags, expires_at_ms: expiry(expires_at_ms) };
    let stored_or = |otherwise, stored: Option<u64>| match stored {
        Some(version) => (Code::Done, version),
        None => (otherwise, 0),
    };
    let outcome = match mode {
        Mode::Set => cache.set(key, record).map(|version| (Code::Done, version)),
        Mode::Add => {
            let stored = cache.set_if(key, Condition::Absent, record);
            stored.map(|stored| stored_or(Code::Exists, stored))
        }
        Mode::Replace => {
            let stored = cache.set_if(key, Condition::Present, record);
            stored.map(|stored| stored_or(Code::Absent, stored))
        }
        Mode::Cas => cache.cas(key, answer.version, record).map(|outcome| match outcome {
            CasOutcome::Stored(version) => (Code::Done, version),
            refused => (refused.into(), 0),
        }),
    };
    match outcome {
        Ok((Code::Done, version)) => {
            *answer = Answer { value_len: value.len() as u64, version, expires_at_ms, flags };
            Code::Done
        }
        Ok((code, _)) => code,
        Err(error) => error.into(),
    }
}

/// Deletes a record.
pub fn delete(cache: &Cache, key: &[u8]) -> Code {
    match cache.delete(key) {
        Ok(true) => Code::Done,
        Ok(false) => Code::Absent,
        Err(error) => error.into(),
    }
}

/// Gives a record a new expiry.
pub fn touch(cache: &Cache, key: &[u8], expires_at_ms: u64) -> Code {
    match cache.touch(key, expiry(expires_at_ms)) {
        Ok(true) => Code::Done,
        Ok(false) => Code::Absent,
        Err(error) => error.into(),
    }
}

/// Adds to a signed counter, which is made if it is absent; writes the new number to `number`.
pub fn increment(cache: &Cache, key: &[u8], by: i64, number: &mut i64) -> Code {
    match cache.increment_signed(key, by) {
        Ok(new) => {
            *number = new;
            Code::Done
        }
        Err(IncrementError::NotANumber) => Code::NotANumber,
        Err(IncrementError::Overflow) => Code::Overflow,
        // The only other thing that can be wrong with a number's record is its key.
        Err(IncrementError::Write(_)) => Code::KeyLength,
    }
}
