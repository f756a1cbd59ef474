//! Reading a stream.

use std::ops::{Bound, ControlFlow, RangeInclusive};

use tokaido_store::{DatabaseId, Direction, Kind, ReadError, ReadTransaction};

use super::{super::place::Place, Fields, Group, OpenGroup, State, StreamId, tag};

/// The stream under one key, whether it exists or not.
#[derive(Clone, Copy, Debug)]
pub struct Stream<'k> {
    pub(super) place: Place<'k>,
}

impl<'k> Stream<'k> {
    /// The stream under `key` of `database`.
    #[must_use]
    pub fn new(database: DatabaseId, key: &'k [u8]) -> Self {
        Self { place: Place { database, key, kind: Kind::Stream } }
    }

    /// The contents of the record; `None` if there is no stream.
    ///
    /// # Errors
    /// [`ReadError::OtherKind`], here and in all methods below, if the record is not a stream.
    pub fn state(
        &self,
        tx: &mut (impl ReadTransaction + ?Sized),
    ) -> Result<Option<State>, ReadError> {
        let found = self.place.find(tx)?;
        found.map(|record| State::read(record.collection, record.value)).transpose()
    }

    /// Calls `visit` with the entries in a range of ids, in either direction, until it breaks off.
    ///
    /// # Errors
    /// As [`state`](Self::state).
    pub fn visit(
        &self,
        tx: &mut (impl ReadTransaction + ?Sized),
        state: &State,
        ids: RangeInclusive<StreamId>,
        direction: Direction,
        visit: &mut dyn FnMut(StreamId, Fields<'_>) -> ControlFlow<()>,
    ) -> Result<(), ReadError> {
        // Before the first entry there may be many deleted ones that a scan would have to skip.
        let (low, high) = (state.first_id.max(*ids.start()), *ids.end());
        if state.len == 0 || low > high {
            return Ok(());
        }
        let (from, to) = if direction == Direction::Forward { (low, high) } else { (high, low) };
        let (from, to) = (state.entry_key(from), state.entry_key(to));
        let (from, to) = (Bound::Included(&from[..]), Bound::Included(&to[..]));
        let head = state.head(tag::ENTRIES);
        let mut result = Ok(());
        self.place.scan_to(tx, &head, from, to, direction, &mut |id, fields| {
            let entry = StreamId::decode(id).and_then(|id| Ok((id, Fields::read(fields)?)));
            match entry {
                Ok((id, fields)) => visit(id, fields),
                Err(error) => {
                    result = Err(error);
                    ControlFlow::Break(())
                }
            }
        })?;
        result
    }

    /// Calls `visit` with the entry with an id; returns whether it exists.
    ///
    /// # Errors
    /// As [`state`](Self::state).
    pub fn visit_one(
        &self,
        tx: &mut (impl ReadTransaction + ?Sized),
        state: &State,
        id: StreamId,
        visit: impl FnOnce(Fields<'_>),
    ) -> Result<bool, ReadError> {
        let Some(record) = tx.get(self.place.elements(), &state.entry_key(id))? else {
            return Ok(false);
        };
        visit(Fields::read(record.value)?);
        Ok(true)
    }

    /// The id of the first entry in a range, from the end at which the direction begins.
    ///
    /// # Errors
    /// As [`state`](Self::state).
    pub fn find(
        &self,
        tx: &mut (impl ReadTransaction + ?Sized),
        state: &State,
        ids: RangeInclusive<StreamId>,
        direction: Direction,
    ) -> Result<Option<StreamId>, ReadError> {
        let mut found = None;
        self.visit(tx, state, ids, direction, &mut |id, _| {
            found = Some(id);
            ControlFlow::Break(())
        })?;
        Ok(found)
    }

    /// The id of the first entry after `id`.
    ///
    /// # Errors
    /// As [`state`](Self::state).
    pub fn find_after(
        &self,
        tx: &mut (impl ReadTransaction + ?Sized),
        state: &State,
        id: StreamId,
    ) -> Result<Option<StreamId>, ReadError> {
        match id.next().filter(|_| id < state.last_id) {
            Some(next) => self.find(tx, state, next..=StreamId::MAX, Direction::Forward),
            None => Ok(None),
        }
    }

    /// The group of that name.
    ///
    /// # Errors
    /// As [`state`](Self::state).
    pub fn group(
        &self,
        tx: &mut (impl ReadTransaction + ?Sized),
        state: &State,
        name: &[u8],
    ) -> Result<Option<OpenGroup<'k>>, ReadError> {
        OpenGroup::find(tx, *self, state, name)
    }

    /// Calls `visit` with all groups, in the order of their names, until it breaks off.
    ///
    /// # Errors
    /// As [`state`](Self::state).
    pub fn visit_groups(
        &self,
        tx: &mut (impl ReadTransaction + ?Sized),
        state: &State,
        visit: &mut dyn FnMut(&[u8], Group) -> ControlFlow<()>,
    ) -> Result<(), ReadError> {
        let head = state.head(tag::GROUPS);
        let mut result = Ok(());
        let from = Bound::Included(&head[..]);
        self.place.scan(
            tx,
            &head,
            from,
            Direction::Forward,
            &mut |name, value| match Group::read(value) {
                Ok(group) => visit(name, group),
                Err(error) => {
                    result = Err(error);
                    ControlFlow::Break(())
                }
            },
        )?;
        result
    }
}
