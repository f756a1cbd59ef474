//! What the commands do to records. Each runs in a transaction, whatever the engine.

use tokaido_store::{
    Amendment, CommitNumber, DatabaseId, Kind, Marks, NewRecord, Record, WriteError,
    WriteTransaction,
};
use tokaido_wire::memcached::{Exptime, Mode, Store, unsigned};

use super::failure::{Failure, is_too_large};

/// The outcome of storing a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StoreOutcome {
    /// It is stored, under this cas.
    Stored(CommitNumber),
    /// The existing value has another cas.
    Exists,
    /// There is no value to compare the cas with.
    NotFound,
    /// The mode's condition does not hold, or the result would be too long.
    NotStored,
    /// It is too long for the database. The value that it was to replace is gone.
    TooLarge,
}

/// The record, if the protocol can show it: if it is one of bytes.
pub(super) fn shown(record: Option<Record<'_>>) -> Option<Record<'_>> {
    record.filter(|record| record.kind == Kind::Bytes)
}

/// Stores a value. With `may_be_stale`, one whose cas is lower than that of the existing value
/// replaces it, as a stale one. No value may become longer than `len_max`.
pub(super) fn store(
    tx: &mut dyn WriteTransaction,
    database: DatabaseId,
    store: &Store<'_>,
    may_be_stale: bool,
    len_max: usize,
) -> Result<StoreOutcome, Failure> {
    let now_ms = if store.exptime.0 == 0 { 0 } else { tx.now_ms() };
    let new = NewRecord {
        flags: store.flags,
        expires_at_ms: store.exptime.at_ms(now_ms),
        ..NewRecord::of(store.value)
    };
    if store.mode == Mode::Set {
        return put(tx, database, store.key, new);
    }
    let found = tx.get(database, store.key)?;
    match (store.mode, found) {
        (Mode::Add, None) | (Mode::Replace, Some(_)) => put(tx, database, store.key, new),
        (Mode::Cas, None) => Ok(StoreOutcome::NotFound),
        (Mode::Cas, Some(old)) if store.cas == old.version => put(tx, database, store.key, new),
        (Mode::Cas, Some(old)) if may_be_stale && (1..old.version).contains(&store.cas) => {
            let claimed = if old.marks.has(Marks::CLAIMED) { Marks::CLAIMED } else { Marks::NONE };
            let (expires_at_ms, marks) = (old.expires_at_ms, Marks::STALE.and(claimed));
            put(tx, database, store.key, NewRecord { expires_at_ms, marks, ..new })
        }
        (Mode::Cas, Some(_)) => Ok(StoreOutcome::Exists),
        (Mode::Append | Mode::Prepend, Some(old)) => {
            if store.cas != 0 && store.cas != old.version {
                return Ok(StoreOutcome::Exists);
            }
            if old.kind != Kind::Bytes || old.value.len() + store.value.len() > len_max {
                return Ok(StoreOutcome::NotStored);
            }
            let value = match store.mode {
                Mode::Append => [old.value, store.value].concat(),
                _ => [store.value, old.value].concat(),
            };
            let new = old.with_value(&value);
            match tx.put(database, store.key, new) {
                Err(error) if is_too_large(&error) => Ok(StoreOutcome::NotStored),
                put => Ok(put.map(|()| StoreOutcome::Stored(tx.number()))?),
            }
        }
        _ => Ok(StoreOutcome::NotStored),
    }
}

fn put(
    tx: &mut dyn WriteTransaction,
    database: DatabaseId,
    key: &[u8],
    new: NewRecord<'_>,
) -> Result<StoreOutcome, Failure> {
    match tx.put(database, key, new) {
        // So that nobody takes the old value for the new one.
        Err(error) if is_too_large(&error) => {
            tx.delete(database, key)?;
            Ok(StoreOutcome::TooLarge)
        }
        put => Ok(put.map(|()| StoreOutcome::Stored(tx.number()))?),
    }
}

/// The outcome of changing a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counted {
    /// It has a new value.
    Moved(Counter),
    /// It was missing, and has been created.
    Made(Counter),
    /// The value is not a number.
    NotNumeric,
    /// It does not exist.
    NotFound,
    /// It has another cas.
    Exists,
}

/// A counter that was changed or created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Counter {
    pub(super) number: u64,
    pub(super) version: CommitNumber,
    /// Its previous expiry.
    pub(super) expired_at_ms: Option<u64>,
    /// When it was changed.
    pub(super) now_ms: u64,
}

/// How to change a counter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Count {
    pub(super) by: u64,
    pub(super) is_down: bool,
    /// The cas that it must have; 0: any.
    pub(super) cas: u64,
    /// The number and the expiry for a missing counter; `None`: it stays missing.
    pub(super) vivify: Option<(u64, Exptime)>,
    /// The new expiry for an existing counter, if it gets one.
    pub(super) exptime: Option<Exptime>,
}

/// Changes a counter. A number that gets shorter is padded with spaces, and only the value of its
/// record changes; a longer one is a new record.
pub(super) fn count(
    tx: &mut dyn WriteTransaction,
    database: DatabaseId,
    key: &[u8],
    count: &Count,
) -> Result<Counted, Failure> {
    let now_ms = tx.now_ms();
    let Some(old) = tx.get(database, key)? else { return make_counter(tx, database, key, count) };
    if old.kind != Kind::Bytes || old.value.is_empty() {
        return Ok(Counted::NotNumeric);
    }
    if count.cas != 0 && count.cas != old.version {
        return Ok(Counted::Exists);
    }
    let Some(number) = unsigned(old.value) else { return Ok(Counted::NotNumeric) };
    let number =
        if count.is_down { number.saturating_sub(count.by) } else { number.wrapping_add(count.by) };
    let mut value = itoa::Buffer::new().format(number).as_bytes().to_vec();
    let is_longer = value.len() > old.value.len();
    value.resize(value.len().max(old.value.len()), b' ');
    let new = if is_longer { old.with_number(&value) } else { old.with_same_value(&value) };
    let expires_at_ms = count.exptime.map_or(old.expires_at_ms, |exptime| exptime.at_ms(now_ms));
    let expired_at_ms = old.expires_at_ms;
    tx.put(database, key, NewRecord { expires_at_ms, ..new })?;
    Ok(Counted::Moved(Counter { number, version: tx.number(), expired_at_ms, now_ms }))
}

fn make_counter(
    tx: &mut dyn WriteTransaction,
    database: DatabaseId,
    key: &[u8],
    count: &Count,
) -> Result<Counted, Failure> {
    let Some((number, exptime)) = count.vivify else { return Ok(Counted::NotFound) };
    let now_ms = tx.now_ms();
    let mut digits = itoa::Buffer::new();
    let new = NewRecord::of(digits.format(number).as_bytes()).expiring(exptime.at_ms(now_ms));
    tx.put(database, key, new)?;
    let expired_at_ms = None;
    Ok(Counted::Made(Counter { number, version: tx.number(), expired_at_ms, now_ms }))
}

/// Gives a record a new expiry, which counts as a read of it. Returns what `keep` takes of it, and
/// its new cas.
pub(super) fn touch<T>(
    tx: &mut dyn WriteTransaction,
    database: DatabaseId,
    key: &[u8],
    exptime: Exptime,
    keep: impl FnOnce(&Record<'_>) -> T,
) -> Result<Option<(T, CommitNumber)>, WriteError> {
    let expires_at_ms = exptime.at_ms(tx.now_ms());
    let Some(record) = shown(tx.get(database, key)?) else { return Ok(None) };
    let kept = keep(&record);
    let amendment = Amendment { expires_at_ms, marks: record.marks.and(Marks::FETCHED) };
    Ok(tx.amend(database, key, amendment)?.map(|version| (kept, version)))
}

/// What a client is shown of a record, besides its cas.
pub(super) fn shown_part(record: &Record<'_>) -> (u32, Vec<u8>) {
    (record.flags, record.value.to_vec())
}

/// Deletes a record if it has this cas, or in any case if that is 0; `None` if there is no record.
pub(super) fn delete(
    tx: &mut dyn WriteTransaction,
    database: DatabaseId,
    key: &[u8],
    cas: u64,
) -> Result<Option<bool>, WriteError> {
    if cas != 0 {
        let Some(record) = tx.get(database, key)? else { return Ok(None) };
        if record.version != cas {
            return Ok(Some(false));
        }
    }
    Ok(tx.delete(database, key)?.then_some(true))
}
