//! Pending entries: those that a group has delivered but that are not acknowledged.

use std::ops::{Bound, ControlFlow, RangeInclusive};

use tokaido_store::{
    Direction, NewRecord, ReadError, ReadTransaction, WriteError, WriteTransaction,
};

use super::{
    super::place::{damaged, flow_while},
    OpenGroup, StreamId,
    state::{read_numbers, write_numbers},
    tag,
};

/// An entry that a consumer has but has not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending {
    /// The number of the consumer.
    pub consumer: u64,
    /// When it was delivered, in ms since the epoch.
    pub delivered_at_ms: u64,
    /// How often it was delivered.
    pub deliveries: u64,
}

/// How many numbers, of eight bytes each, a pending entry has.
const NUMBERS: usize = 3;

impl Pending {
    fn read(value: &[u8]) -> Result<Self, ReadError> {
        let [consumer, delivered_at_ms, deliveries] = read_numbers::<NUMBERS>(value)?;
        Ok(Self { consumer, delivered_at_ms, deliveries })
    }

    fn value(&self) -> Vec<u8> {
        write_numbers(&[self.consumer, self.delivered_at_ms, self.deliveries])
    }
}

/// Reads.
impl OpenGroup<'_> {
    fn pending_key(&self, id: StreamId) -> Vec<u8> {
        [&self.head(tag::PENDING)[..], &id.encode()].concat()
    }

    fn owned_head(&self, consumer: u64) -> Vec<u8> {
        [&self.head(tag::OWNED)[..], &consumer.to_be_bytes()].concat()
    }

    fn owned_key(&self, consumer: u64, id: StreamId) -> Vec<u8> {
        [&self.owned_head(consumer)[..], &id.encode()].concat()
    }

    /// The pending entry with an id.
    ///
    /// # Errors
    /// As [`find_consumer`](Self::find_consumer).
    pub fn pending(
        &self,
        tx: &mut (impl ReadTransaction + ?Sized),
        id: StreamId,
    ) -> Result<Option<Pending>, ReadError> {
        let found = tx.get(self.stream.place.elements(), &self.pending_key(id))?;
        found.map(|record| Pending::read(record.value)).transpose()
    }

    /// Calls `visit` with the pending entries in a range of ids, until it breaks off.
    ///
    /// # Errors
    /// As [`find_consumer`](Self::find_consumer).
    pub fn visit_pending(
        &self,
        tx: &mut (impl ReadTransaction + ?Sized),
        ids: RangeInclusive<StreamId>,
        direction: Direction,
        visit: &mut dyn FnMut(StreamId, Pending) -> ControlFlow<()>,
    ) -> Result<(), ReadError> {
        let mut result = Ok(());
        let head = self.head(tag::PENDING);
        self.visit_ids(tx, &head, ids, direction, &mut |id, value| match Pending::read(value) {
            Ok(pending) => visit(id, pending),
            Err(error) => {
                result = Err(error);
                ControlFlow::Break(())
            }
        })?;
        result
    }

    /// Calls `visit` with the ids of a consumer's pending entries in a range, until it breaks off.
    ///
    /// # Errors
    /// As [`find_consumer`](Self::find_consumer).
    pub fn visit_owned(
        &self,
        tx: &mut (impl ReadTransaction + ?Sized),
        consumer: u64,
        ids: RangeInclusive<StreamId>,
        visit: &mut dyn FnMut(StreamId) -> ControlFlow<()>,
    ) -> Result<(), ReadError> {
        let head = self.owned_head(consumer);
        self.visit_ids(tx, &head, ids, Direction::Forward, &mut |id, _| visit(id))
    }

    /// The first `count` pending entries in a range of ids, of one consumer or of all.
    ///
    /// # Errors
    /// As [`find_consumer`](Self::find_consumer).
    pub fn page(
        &self,
        tx: &mut (impl ReadTransaction + ?Sized),
        consumer: Option<u64>,
        ids: RangeInclusive<StreamId>,
        count: usize,
    ) -> Result<Vec<(StreamId, Pending)>, ReadError> {
        let mut page = Vec::new();
        let Some(consumer) = consumer else {
            self.visit_pending(tx, ids, Direction::Forward, &mut |id, pending| {
                page.push((id, pending));
                flow_while(page.len() < count)
            })?;
            return Ok(page);
        };
        let mut owned = Vec::new();
        self.visit_owned(tx, consumer, ids, &mut |id| {
            owned.push(id);
            flow_while(owned.len() < count)
        })?;
        for id in owned {
            let pending = self.pending(tx, id)?;
            page.push((id, pending.ok_or_else(|| damaged("a pending entry is missing"))?));
        }
        Ok(page)
    }

    fn visit_ids(
        &self,
        tx: &mut (impl ReadTransaction + ?Sized),
        head: &[u8],
        ids: RangeInclusive<StreamId>,
        direction: Direction,
        visit: &mut dyn FnMut(StreamId, &[u8]) -> ControlFlow<()>,
    ) -> Result<(), ReadError> {
        // Before the first one there may be many acknowledged ones that a scan would have to skip.
        let (low, high) = (self.group.first_pending.max(*ids.start()), *ids.end());
        if self.group.pending == 0 || low > high {
            return Ok(());
        }
        let (from, to) = if direction == Direction::Forward { (low, high) } else { (high, low) };
        let [from, to] = [from, to].map(|id| [head, &id.encode()].concat());
        let (from, to) = (Bound::Included(&from[..]), Bound::Included(&to[..]));
        let mut result = Ok(());
        let place = self.stream.place;
        place.scan_to(
            tx,
            head,
            from,
            to,
            direction,
            &mut |id, value| match StreamId::decode(id) {
                Ok(id) => visit(id, value),
                Err(error) => {
                    result = Err(error);
                    ControlFlow::Break(())
                }
            },
        )?;
        result
    }

    pub(super) fn find_first_pending(
        &mut self,
        tx: &mut (impl ReadTransaction + ?Sized),
    ) -> Result<(), ReadError> {
        let mut found = StreamId::MIN;
        let all = StreamId::MIN..=StreamId::MAX;
        self.visit_pending(tx, all, Direction::Forward, &mut |id, _| {
            found = id;
            ControlFlow::Break(())
        })?;
        self.group.first_pending = found;
        self.first_is_gone = false;
        Ok(())
    }
}

/// Writes.
impl OpenGroup<'_> {
    /// Records that new entries were delivered, in the order of their ids: the group continues
    /// after them. If `acknowledged`, they do not become pending.
    ///
    /// # Errors
    /// As [`set_pending`](Self::set_pending).
    pub fn deliver(
        &mut self,
        tx: &mut dyn WriteTransaction,
        consumer: u64,
        ids: &[StreamId],
        acknowledged: bool,
    ) -> Result<(), WriteError> {
        let delivered_at_ms = tx.now_ms();
        for &id in ids {
            if id > self.group.last_id {
                self.group.advance(&self.state, id);
            }
            if !acknowledged {
                let pending = Pending { consumer, delivered_at_ms, deliveries: 1 };
                self.set_pending(tx, id, pending)?;
            }
        }
        Ok(())
    }

    /// Sets the pending entry with an id, replacing an earlier one, even another consumer's.
    ///
    /// # Errors
    /// As [`WriteTransaction::put`].
    pub fn set_pending(
        &mut self,
        tx: &mut dyn WriteTransaction,
        id: StreamId,
        pending: Pending,
    ) -> Result<(), WriteError> {
        let elements = self.stream.place.elements();
        let before = self.pending(tx, id)?.map(|before| before.consumer);
        if let Some(before) = before.filter(|before| *before != pending.consumer) {
            tx.delete_existing(elements, &self.owned_key(before, id))?;
            self.count_owned(tx, before, -1)?;
        }
        if before != Some(pending.consumer) {
            tx.put(elements, &self.owned_key(pending.consumer, id), NewRecord::of(&[]))?;
            self.count_owned(tx, pending.consumer, 1)?;
        }
        if before.is_none() {
            let is_first = self.group.pending == 0 || id < self.group.first_pending;
            self.group.first_pending = if is_first { id } else { self.group.first_pending };
            self.group.pending += 1;
        }
        tx.put(elements, &self.pending_key(id), NewRecord::of(&pending.value()))
    }

    /// Removes an id from the pending ones; returns whether it was one.
    ///
    /// # Errors
    /// As [`set_pending`](Self::set_pending).
    pub fn acknowledge(
        &mut self,
        tx: &mut dyn WriteTransaction,
        id: StreamId,
    ) -> Result<bool, WriteError> {
        let Some(Pending { consumer, .. }) = self.pending(tx, id)? else { return Ok(false) };
        tx.delete_existing(self.stream.place.elements(), &self.owned_key(consumer, id))?;
        self.count_owned(tx, consumer, -1)?;
        self.remove_pending(tx, id)?;
        Ok(true)
    }

    /// Adjusts a consumer's number of pending entries.
    fn count_owned(
        &mut self,
        tx: &mut dyn WriteTransaction,
        consumer: u64,
        change: i64,
    ) -> Result<(), ReadError> {
        let consumer = self.consumer(tx, consumer)?;
        consumer.pending = consumer.pending.saturating_add_signed(change);
        Ok(())
    }

    fn remove_pending(
        &mut self,
        tx: &mut dyn WriteTransaction,
        id: StreamId,
    ) -> Result<(), WriteError> {
        tx.delete_existing(self.stream.place.elements(), &self.pending_key(id))?;
        self.group.pending = self.group.pending.saturating_sub(1);
        self.first_is_gone |= id == self.group.first_pending;
        Ok(())
    }

    /// Removes all pending entries of a consumer; returns how many there were.
    pub(super) fn remove_all_of(
        &mut self,
        tx: &mut dyn WriteTransaction,
        consumer: u64,
    ) -> Result<u64, WriteError> {
        /// How many ids are read before they are removed.
        const BATCH_IDS: usize = 1024;
        let (mut removed, mut from) = (0, Some(StreamId::MIN));
        while let Some(start) = from {
            let mut batch = Vec::new();
            self.visit_owned(tx, consumer, start..=StreamId::MAX, &mut |id| {
                batch.push(id);
                flow_while(batch.len() < BATCH_IDS)
            })?;
            for &id in &batch {
                tx.delete_existing(self.stream.place.elements(), &self.owned_key(consumer, id))?;
                self.remove_pending(tx, id)?;
            }
            removed += batch.len() as u64;
            from = batch.last().filter(|_| batch.len() == BATCH_IDS).and_then(|id| id.next());
        }
        Ok(removed)
    }
}
