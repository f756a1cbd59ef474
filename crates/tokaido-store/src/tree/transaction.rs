//! The open transaction of a group: records on top of raw changes.

use std::{ops::Bound, sync::Arc};

use crate::{
    CommitNumber, DatabaseId, DatabaseStatistics, Direction, Entry, NewRecord, ReadError,
    ReadTransaction, Record, WriteError, WriteTransaction, limits,
    record::{self, Header},
};

use super::{group::Group, layout, lmdb::Dbi, long_key, read, store::Shared};

pub(super) struct TreeTransaction {
    /// Before `shared`, which closes the environment if it is the last to go.
    pub(super) group: Group,
    pub(super) shared: Arc<Shared>,
    pub(super) now_ms: u64,
    pub(super) number: CommitNumber,
    /// Writes and bytes so far, against the limits.
    writes: usize,
    bytes: usize,
}

/// What the store must know of a record that a write replaces.
#[derive(Clone, Copy)]
struct Old {
    value_len: usize,
    expires_at_ms: Option<u64>,
    is_live: bool,
}

impl TreeTransaction {
    pub(super) fn new(shared: Arc<Shared>, group: Group) -> Self {
        Self { shared, group, now_ms: 0, number: 0, writes: 0, bytes: 0 }
    }

    /// Makes it the next transaction of its group.
    pub(super) fn begin(&mut self, number: CommitNumber) {
        self.now_ms = self.shared.clock.now_ms();
        self.number = number;
        self.writes = 0;
        self.bytes = 0;
    }

    fn account(&mut self, bytes: usize) -> Result<(), WriteError> {
        self.writes += 1;
        self.bytes += bytes;
        let is_within = self.writes <= limits::TRANSACTION_WRITES_MAX
            && self.bytes <= limits::TRANSACTION_BYTES_MAX;
        if is_within { Ok(()) } else { Err(WriteError::TransactionTooLarge) }
    }

    fn describe(&self, stored: &[u8]) -> Result<Old, ReadError> {
        describe(stored, self.now_ms)
    }

    fn put_short(
        &mut self,
        dbi: Dbi,
        key: &[u8],
        header: &Header,
        value: &[u8],
    ) -> Result<Option<Old>, WriteError> {
        let Group { edit, broken, .. } = &mut self.group;
        let old = Group::guard(broken, edit.put(dbi, key, header.as_bytes(), value))?;
        Ok(old.map(|stored| describe(stored, self.now_ms)).transpose()?)
    }

    /// Puts or removes the record of a long key, by rewriting its bucket.
    fn edit_bucket(
        &mut self,
        dbi: Dbi,
        key: &[u8],
        record: Option<&[u8]>,
    ) -> Result<Option<Old>, WriteError> {
        let tree_key = long_key::tree_key(key);
        let bucket = self.group.edit.txn.find(dbi, tree_key).map_err(ReadError::from)?;
        let bucket = bucket.unwrap_or_default().to_vec();
        let old = long_key::find(&bucket, key)?.map(|s| self.describe(s)).transpose()?;
        if old.is_none() && record.is_none() {
            return Ok(None);
        }
        let bucket = long_key::replace(&bucket, key, record)?;
        let Group { edit, broken, .. } = &mut self.group;
        let changed = if bucket.is_empty() {
            edit.remove(dbi, tree_key)
        } else {
            edit.put(dbi, tree_key, &bucket, &[])
        };
        Group::guard(broken, changed.map(|_| ()))?;
        Ok(old)
    }

    /// Removes a record, expired or not.
    fn remove(
        &mut self,
        database: DatabaseId,
        dbi: Dbi,
        key: &[u8],
    ) -> Result<Option<Old>, WriteError> {
        let old = if long_key::is_long(key) {
            self.edit_bucket(dbi, key, None)?
        } else {
            let Group { edit, broken, .. } = &mut self.group;
            let old = Group::guard(broken, edit.remove(dbi, key))?;
            old.map(|stored| describe(stored, self.now_ms)).transpose()?
        };
        if let Some(old) = old {
            let statistics = self.statistics_mut(database);
            statistics.records -= 1;
            statistics.key_bytes -= key.len() as u64;
            statistics.value_bytes -= old.value_len as u64;
            self.move_expiry(database, key, old.expires_at_ms, None)?;
        }
        Ok(old)
    }

    fn statistics_mut(&mut self, database: DatabaseId) -> &mut DatabaseStatistics {
        &mut self.group.databases[database.index()].statistics
    }

    /// Keeps the expiry index true to a record whose expiry changes.
    fn move_expiry(
        &mut self,
        database: DatabaseId,
        key: &[u8],
        from: Option<u64>,
        to: Option<u64>,
    ) -> Result<(), WriteError> {
        if from == to {
            return Ok(());
        }
        let (index, dbi) = (database.index(), self.shared.expiry);
        let Group { edit, broken, .. } = &mut self.group;
        // An entry whose key part is cut may stand for several records, so it stays until its
        // time; the sweep finds nothing then.
        if let Some(at_ms) = from
            && key.len() <= layout::EXPIRY_KEY_PART_LEN
        {
            let entry = layout::expiry_key(at_ms, index, key);
            Group::guard(broken, edit.remove(dbi, &entry).map(|_| ()))?;
        }
        if let Some(at_ms) = to {
            let entry = layout::expiry_key(at_ms, index, key);
            Group::guard(broken, edit.put(dbi, &entry, &[], &[]).map(|_| ()))?;
        }
        Ok(())
    }

    /// Removes the record under `key` if it has expired; for the sweep, which follows the index.
    pub(super) fn remove_if_expired(
        &mut self,
        database: DatabaseId,
        key: &[u8],
    ) -> Result<bool, WriteError> {
        let Some(dbi) = self.group.tree(database.index()) else { return Ok(false) };
        let found = read::find(&mut self.group.edit.txn, dbi, key)?;
        let is_expired = found.is_some_and(|record| !record.is_live(self.now_ms));
        if is_expired {
            self.group.tree_or_create(database.index())?;
            self.remove(database, dbi, key)?;
        }
        Ok(is_expired)
    }
}

fn describe(stored: &[u8], now_ms: u64) -> Result<Old, ReadError> {
    let record = record::decode(stored)?;
    Ok(Old {
        value_len: record.value.len(),
        expires_at_ms: record.expires_at_ms,
        is_live: record.is_live(now_ms),
    })
}

impl ReadTransaction for TreeTransaction {
    fn now_ms(&self) -> u64 {
        self.now_ms
    }

    fn get<'t>(
        &'t mut self,
        database: DatabaseId,
        key: &[u8],
    ) -> Result<Option<Record<'t>>, ReadError> {
        read::check_key(key)?;
        let Some(dbi) = self.group.tree(database.index()) else { return Ok(None) };
        let record = read::find(&mut self.group.edit.txn, dbi, key)?;
        Ok(record.filter(|record| record.is_live(self.now_ms)))
    }

    fn seek<'t>(
        &'t mut self,
        database: DatabaseId,
        from: Bound<&[u8]>,
        direction: Direction,
    ) -> Result<Option<Entry<'t>>, ReadError> {
        let Some(dbi) = self.group.tree(database.index()) else { return Ok(None) };
        read::seek(&mut self.group.edit.txn, dbi, from, direction, self.now_ms)
    }

    fn statistics(&mut self, database: DatabaseId) -> Result<DatabaseStatistics, ReadError> {
        let entry = self.group.databases.get(database.index());
        Ok(entry.map(|entry| entry.statistics).unwrap_or_default())
    }
}

impl WriteTransaction for TreeTransaction {
    fn number(&self) -> CommitNumber {
        self.number
    }

    fn put(
        &mut self,
        database: DatabaseId,
        key: &[u8],
        record: NewRecord<'_>,
    ) -> Result<(), WriteError> {
        read::check_key(key)?;
        let len = record.value.len();
        if len > limits::VALUE_LEN_MAX {
            return Err(WriteError::ValueLength { len });
        }
        self.account(key.len() + len)?;
        let dbi = self.group.tree_or_create(database.index())?;
        let header = Header::new(&record, self.number);
        let old = if long_key::is_long(key) {
            let stored = [header.as_bytes(), record.value].concat();
            self.edit_bucket(dbi, key, Some(&stored))?
        } else {
            self.put_short(dbi, key, &header, record.value)?
        };
        let statistics = self.statistics_mut(database);
        match old {
            None => {
                statistics.records += 1;
                statistics.key_bytes += key.len() as u64;
            }
            Some(old) => statistics.value_bytes -= old.value_len as u64,
        }
        statistics.value_bytes += len as u64;
        let from = old.and_then(|old| old.expires_at_ms);
        self.move_expiry(database, key, from, record.expires_at_ms)
    }

    fn delete(&mut self, database: DatabaseId, key: &[u8]) -> Result<bool, WriteError> {
        read::check_key(key)?;
        if self.group.tree(database.index()).is_none() {
            return Ok(false);
        }
        self.account(key.len())?;
        let dbi = self.group.tree_or_create(database.index())?;
        Ok(self.remove(database, dbi, key)?.is_some_and(|old| old.is_live))
    }

    fn clear(&mut self, database: DatabaseId) -> Result<(), WriteError> {
        self.account(0)?;
        self.group.clear(database.index())
    }
}
