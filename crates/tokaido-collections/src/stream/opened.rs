//! A group loaded from the transaction, to be read and changed.

use std::{
    collections::BTreeMap,
    ops::{Bound, ControlFlow},
};

use tokaido_store::{
    Direction, NewRecord, ReadError, ReadTransaction, WriteError, WriteTransaction,
};

use super::{
    super::place::{check_name, damaged},
    Consumer, Group, State, Stream, StreamId,
    group::group_key,
    tag,
};

/// A group that was looked up. Changes to the group and its consumers are kept here until
/// [`save`](Self::save); pending entries are written at once.
#[derive(Debug)]
pub struct OpenGroup<'k> {
    pub(super) stream: Stream<'k>,
    pub(super) state: State,
    name: Vec<u8>,
    /// The group's state.
    pub group: Group,
    /// The consumers that were looked up, by their numbers.
    pub(super) consumers: BTreeMap<u64, Consumer>,
    /// Whether the first pending entry is no longer pending.
    pub(super) first_is_gone: bool,
}

impl<'k> OpenGroup<'k> {
    pub(super) fn find(
        tx: &mut (impl ReadTransaction + ?Sized),
        stream: Stream<'k>,
        state: &State,
        name: &[u8],
    ) -> Result<Option<Self>, ReadError> {
        if check_name(name).is_err() {
            return Ok(None);
        }
        let found = tx.get(stream.place.elements(), &group_key(state, name))?;
        let Some(group) = found.map(|record| Group::read(record.value)).transpose()? else {
            return Ok(None);
        };
        let (name, consumers) = (name.to_vec(), BTreeMap::new());
        Ok(Some(Self { stream, state: *state, name, group, consumers, first_is_gone: false }))
    }

    /// The common prefix of the keys of one range of the group's elements.
    pub(super) fn head(&self, tag: u8) -> Vec<u8> {
        [&self.state.head(tag)[..], &self.group.number.to_be_bytes()].concat()
    }

    pub(super) fn consumer_key(&self, number: u64) -> Vec<u8> {
        [&self.head(tag::CONSUMERS)[..], &number.to_be_bytes()].concat()
    }

    fn number_key(&self, name: &[u8]) -> Vec<u8> {
        [&self.head(tag::CONSUMER_NUMBERS)[..], name].concat()
    }

    /// The number of the consumer of that name, if there is one.
    ///
    /// # Errors
    /// Only if the engine fails, or the stream is damaged; likewise below.
    pub fn find_consumer(
        &self,
        tx: &mut (impl ReadTransaction + ?Sized),
        name: &[u8],
    ) -> Result<Option<u64>, ReadError> {
        if check_name(name).is_err() {
            return Ok(None);
        }
        let found = tx.get(self.stream.place.elements(), &self.number_key(name))?;
        found.map(|record| read_number(record.value)).transpose()
    }

    /// The consumer with a number.
    ///
    /// # Errors
    /// As [`find_consumer`](Self::find_consumer).
    pub fn consumer(
        &mut self,
        tx: &mut (impl ReadTransaction + ?Sized),
        number: u64,
    ) -> Result<&mut Consumer, ReadError> {
        if !self.consumers.contains_key(&number) {
            let found = tx.get(self.stream.place.elements(), &self.consumer_key(number))?;
            let record = found.ok_or_else(|| damaged("a consumer of a stream is missing"))?;
            self.consumers.insert(number, Consumer::read(record.value)?);
        }
        let consumer = self.consumers.get_mut(&number);
        consumer.ok_or_else(|| damaged("a consumer of a stream is missing"))
    }

    /// Calls `visit` with the consumers in the order of their names, until it breaks off.
    ///
    /// # Errors
    /// As [`find_consumer`](Self::find_consumer).
    pub fn visit_consumers(
        &self,
        tx: &mut (impl ReadTransaction + ?Sized),
        visit: &mut dyn FnMut(u64, Consumer) -> ControlFlow<()>,
    ) -> Result<(), ReadError> {
        /// How many are looked up at a time.
        const BATCH_CONSUMERS: usize = 256;
        let head = self.head(tag::CONSUMER_NUMBERS);
        let mut from = Bound::Included(head.clone());
        loop {
            let (mut batch, mut last) = (Vec::new(), None);
            let start = from.as_ref().map(Vec::as_slice);
            let place = self.stream.place;
            place.scan(tx, &head, start, Direction::Forward, &mut |name, number| {
                batch.push(read_number(number));
                if batch.len() < BATCH_CONSUMERS {
                    return ControlFlow::Continue(());
                }
                last = Some([&head[..], name].concat());
                ControlFlow::Break(())
            })?;
            for number in batch {
                let number = number?;
                let found = tx.get(place.elements(), &self.consumer_key(number))?;
                let record = found.ok_or_else(|| damaged("a consumer of a stream is missing"))?;
                if visit(number, Consumer::read(record.value)?).is_break() {
                    return Ok(());
                }
            }
            match last {
                Some(last) => from = Bound::Excluded(last),
                None => return Ok(()),
            }
        }
    }
}

/// Changes to the group and its consumers.
impl OpenGroup<'_> {
    /// The number of the consumer of that name, which is created if there is none, and whether it
    /// was. Its time of being seen becomes now.
    ///
    /// # Errors
    /// As [`Stream::save`]; [`WriteError::FieldLength`].
    pub fn open_consumer(
        &mut self,
        tx: &mut dyn WriteTransaction,
        name: &[u8],
    ) -> Result<(u64, bool), WriteError> {
        let now_ms = tx.now_ms();
        if let Some(number) = self.find_consumer(tx, name)? {
            self.consumer(tx, number)?.seen_at_ms = now_ms;
            return Ok((number, false));
        }
        check_name(name)?;
        let number = self.group.next_consumer;
        self.group.next_consumer += 1;
        self.group.consumers += 1;
        let key = self.number_key(name);
        tx.put(self.stream.place.elements(), &key, NewRecord::of(&number.to_le_bytes()))?;
        let consumer = Consumer { name: name.to_vec(), seen_at_ms: now_ms, pending: 0 };
        self.consumers.insert(number, consumer);
        self.stream.save(tx, &self.state)?;
        Ok((number, true))
    }

    /// Deletes a consumer and its pending entries; returns how many there were.
    ///
    /// # Errors
    /// As [`Stream::save`].
    pub fn delete_consumer(
        &mut self,
        tx: &mut dyn WriteTransaction,
        name: &[u8],
    ) -> Result<Option<u64>, WriteError> {
        let Some(number) = self.find_consumer(tx, name)? else { return Ok(None) };
        let removed = self.remove_all_of(tx, number)?;
        self.consumers.remove(&number);
        self.group.consumers = self.group.consumers.saturating_sub(1);
        tx.delete(self.stream.place.elements(), &self.consumer_key(number))?;
        tx.delete(self.stream.place.elements(), &self.number_key(name))?;
        self.stream.save(tx, &self.state)?;
        Ok(Some(removed))
    }

    /// Makes the entries after `last_id` the new ones.
    ///
    /// # Errors
    /// As [`Stream::save`].
    pub fn set_last_id(
        &mut self,
        tx: &mut dyn WriteTransaction,
        last_id: StreamId,
        entries_read: Option<u64>,
    ) -> Result<(), WriteError> {
        self.group.last_id = last_id;
        self.group.entries_read = entries_read;
        self.stream.save(tx, &self.state)
    }

    /// Writes the group and the consumers that were looked up.
    ///
    /// # Errors
    /// As [`WriteTransaction::put`].
    pub fn save(mut self, tx: &mut dyn WriteTransaction) -> Result<(), WriteError> {
        if self.first_is_gone {
            self.find_first_pending(tx)?;
        }
        let elements = self.stream.place.elements();
        for (number, consumer) in &self.consumers {
            let key = self.consumer_key(*number);
            tx.put(elements, &key, NewRecord::of(&consumer.value()))?;
        }
        let key = group_key(&self.state, &self.name);
        tx.put(elements, &key, NewRecord::of(&self.group.value()))
    }
}

fn read_number(value: &[u8]) -> Result<u64, ReadError> {
    let number = value.try_into().map(u64::from_le_bytes);
    number.map_err(|_| damaged("the number of a consumer has not 8 bytes"))
}
