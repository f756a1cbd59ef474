//! Changing the entries of a stream.

use std::ops::Bound;

use tokaido_store::{Direction, NewRecord, ReadError, WriteError, WriteTransaction};

use super::{
    super::place::{Root, flow_while},
    Fields, State, Stream, StreamId,
};

/// How many keys are read before their records are deleted.
const BATCH_KEYS: usize = 1024;

/// Which entries to trim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trim {
    /// The first ones, until only this many are left.
    ToLen(u64),
    /// Those up to and including this id.
    UpTo(StreamId),
}

impl Stream<'_> {
    /// The stream's state, new if there is no stream. Only [`save`](Self::save) writes the record.
    ///
    /// # Errors
    /// As [`state`](Self::state); [`WriteError::TooManyCollections`].
    pub fn open(&self, tx: &mut dyn WriteTransaction) -> Result<State, WriteError> {
        match self.state(tx)? {
            Some(state) => Ok(state),
            None => Ok(State::new(tx.new_collection()?)),
        }
    }

    /// Writes the record. Methods that change entries, groups or consumers do this themselves.
    ///
    /// # Errors
    /// As [`WriteTransaction::put`].
    pub fn save(&self, tx: &mut dyn WriteTransaction, state: &State) -> Result<(), WriteError> {
        let mut root: Root = self.place.load(tx)?;
        root.collection = Some(state.collection);
        root.value = state.value();
        self.place.save(tx, &root)
    }

    /// Adds an entry after all others. Its id must be larger than the last one.
    ///
    /// # Errors
    /// As [`save`](Self::save).
    pub fn append<'f>(
        &self,
        tx: &mut dyn WriteTransaction,
        state: &mut State,
        id: StreamId,
        fields: impl Iterator<Item = &'f [u8]>,
    ) -> Result<(), WriteError> {
        debug_assert!(id > state.last_id);
        let fields = Fields::pack(fields);
        tx.put(self.place.elements(), &state.entry_key(id), NewRecord::of(&fields))?;
        if state.len == 0 {
            state.first_id = id;
        }
        state.len += 1;
        state.added = state.added.saturating_add(1);
        state.last_id = id;
        self.save(tx, state)
    }

    /// Deletes entries; returns how many there were.
    ///
    /// # Errors
    /// As [`save`](Self::save).
    pub fn delete(
        &self,
        tx: &mut dyn WriteTransaction,
        state: &mut State,
        ids: impl IntoIterator<Item = StreamId>,
    ) -> Result<u64, WriteError> {
        let (before, mut first_is_gone) = (state.len, false);
        for id in ids {
            if tx.delete(self.place.elements(), &state.entry_key(id))? {
                state.len = state.len.saturating_sub(1);
                state.max_deleted_id = state.max_deleted_id.max(id);
                first_is_gone |= id == state.first_id;
            }
        }
        if first_is_gone {
            self.find_first(tx, state)?;
        }
        if state.len < before {
            self.save(tx, state)?;
        }
        Ok(before - state.len)
    }

    /// Deletes the first entries, at most `count`; returns how many.
    ///
    /// # Errors
    /// As [`save`](Self::save).
    pub fn trim(
        &self,
        tx: &mut dyn WriteTransaction,
        state: &mut State,
        trim: Trim,
        count: u64,
    ) -> Result<u64, WriteError> {
        let before = state.len;
        let (last, mut left) = match trim {
            Trim::ToLen(len) => (StreamId::MAX, count.min(before.saturating_sub(len))),
            Trim::UpTo(id) => (id, count.min(before)),
        };
        while left > 0 {
            let mut batch = Vec::new();
            let batch_max = left.min(BATCH_KEYS as u64) as usize;
            let ids = StreamId::MIN..=last;
            self.visit(tx, state, ids, Direction::Forward, &mut |id, _| {
                batch.push(id);
                flow_while(batch.len() < batch_max)
            })?;
            for id in &batch {
                tx.delete_existing(self.place.elements(), &state.entry_key(*id))?;
            }
            state.len = state.len.saturating_sub(batch.len() as u64);
            state.first_id = batch.last().copied().unwrap_or(state.first_id);
            left = if batch.len() < batch_max { 0 } else { left - batch.len() as u64 };
        }
        if state.len < before {
            self.find_first(tx, state)?;
            self.save(tx, state)?;
        }
        Ok(before - state.len)
    }

    /// Finds the first entry, which is not before the previous first one.
    fn find_first(
        &self,
        tx: &mut dyn WriteTransaction,
        state: &mut State,
    ) -> Result<(), ReadError> {
        let all = StreamId::MIN..=StreamId::MAX;
        let found = self.find(tx, state, all, Direction::Forward)?;
        state.first_id = found.unwrap_or_default();
        Ok(())
    }

    /// Deletes the elements whose keys begin with `head`.
    pub(super) fn delete_all(
        &self,
        tx: &mut dyn WriteTransaction,
        head: &[u8],
    ) -> Result<(), WriteError> {
        let mut from = Bound::Included(head.to_vec());
        loop {
            let mut keys = Vec::new();
            let start = from.as_ref().map(Vec::as_slice);
            self.place.scan(tx, head, start, Direction::Forward, &mut |rest, _| {
                keys.push([head, rest].concat());
                flow_while(keys.len() < BATCH_KEYS)
            })?;
            for key in &keys {
                tx.delete_existing(self.place.elements(), key)?;
            }
            match keys.pop() {
                Some(last) if keys.len() + 1 == BATCH_KEYS => from = Bound::Excluded(last),
                _ => return Ok(()),
            }
        }
    }
}
