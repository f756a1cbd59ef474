//! Groups of consumers: a group's state, and how groups are created and destroyed.

use tokaido_store::{NewRecord, ReadError, WriteError, WriteTransaction};

use super::{
    super::place::check_name,
    OpenGroup, State, Stream, StreamId,
    state::{read_numbers, write_numbers},
    tag,
};

/// The state of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// Represents the group in the keys of its elements.
    pub(super) number: u64,
    /// The id of the last entry that was delivered. New entries are those after it.
    pub last_id: StreamId,
    /// How many entries had been added up to that one, if known.
    pub entries_read: Option<u64>,
    /// How many entries are delivered but not acknowledged.
    pub pending: u64,
    /// The number of consumers.
    pub consumers: u64,
    /// Nothing is pending before this id.
    pub(super) first_pending: StreamId,
    /// The number that the next consumer gets.
    pub(super) next_consumer: u64,
}

/// How many numbers, of eight bytes each, a group has.
const NUMBERS: usize = 9;

/// Represents an unknown number of entries.
const UNKNOWN: u64 = u64::MAX;

impl Group {
    fn new(number: u64, last_id: StreamId, entries_read: Option<u64>) -> Self {
        Self {
            number,
            last_id,
            entries_read,
            pending: 0,
            consumers: 0,
            first_pending: StreamId::MIN,
            next_consumer: 0,
        }
    }

    pub(super) fn read(value: &[u8]) -> Result<Self, ReadError> {
        let [number, ms, seq, read, pending, consumers, first_ms, first_seq, next_consumer] =
            read_numbers::<NUMBERS>(value)?;
        Ok(Self {
            number,
            last_id: StreamId { ms, seq },
            entries_read: Some(read).filter(|read| *read != UNKNOWN),
            pending,
            consumers,
            first_pending: StreamId { ms: first_ms, seq: first_seq },
            next_consumer,
        })
    }

    pub(super) fn value(&self) -> Vec<u8> {
        let Self { number, last_id, entries_read, pending, consumers, first_pending, .. } = *self;
        write_numbers(&[
            number,
            last_id.ms,
            last_id.seq,
            entries_read.unwrap_or(UNKNOWN),
            pending,
            consumers,
            first_pending.ms,
            first_pending.seq,
            self.next_consumer,
        ])
    }

    /// How many entries of the stream are still to be delivered, if known.
    #[must_use]
    pub fn lag(&self, state: &State) -> Option<i64> {
        let read = match self.entries_read {
            _ if state.added == 0 => Some(0),
            Some(read) if !state.has_gaps_from(self.last_id) => Some(read),
            _ => state.added_up_to(self.last_id),
        };
        read.map(|read| state.added.wrapping_sub(read) as i64)
    }

    /// Records that a larger id was delivered.
    pub(super) fn advance(&mut self, state: &State, id: StreamId) {
        self.entries_read = match self.entries_read {
            Some(read) if !state.has_gaps_from(id) => Some(read.saturating_add(1)),
            read if state.added == 0 => read,
            _ => state.added_up_to(id),
        };
        self.last_id = id;
    }
}

/// The key of a group's element.
pub(super) fn group_key(state: &State, name: &[u8]) -> Vec<u8> {
    [&state.head(tag::GROUPS)[..], name].concat()
}

impl Stream<'_> {
    /// Creates a group whose new entries are those after `last_id`; returns `false` if it exists.
    ///
    /// # Errors
    /// As [`save`](Self::save); [`WriteError::FieldLength`].
    pub fn create_group(
        &self,
        tx: &mut dyn WriteTransaction,
        state: &mut State,
        name: &[u8],
        last_id: StreamId,
        entries_read: Option<u64>,
    ) -> Result<bool, WriteError> {
        check_name(name)?;
        let key = group_key(state, name);
        if tx.get(self.place.elements(), &key)?.is_some() {
            return Ok(false);
        }
        let group = Group::new(state.next_group, last_id, entries_read);
        tx.put(self.place.elements(), &key, NewRecord::of(&group.value()))?;
        state.next_group += 1;
        state.groups += 1;
        self.save(tx, state)?;
        Ok(true)
    }

    /// Deletes a group with its consumers and pending entries; returns whether there was one.
    ///
    /// # Errors
    /// As [`save`](Self::save).
    pub fn destroy_group(
        &self,
        tx: &mut dyn WriteTransaction,
        state: &mut State,
        name: &[u8],
    ) -> Result<bool, WriteError> {
        let Some(group) = OpenGroup::find(tx, *self, state, name)? else { return Ok(false) };
        for tag in [tag::CONSUMER_NUMBERS, tag::CONSUMERS, tag::PENDING, tag::OWNED] {
            self.delete_all(tx, &group.head(tag))?;
        }
        tx.delete(self.place.elements(), &group_key(state, name))?;
        state.groups = state.groups.saturating_sub(1);
        self.save(tx, state)?;
        Ok(true)
    }
}
