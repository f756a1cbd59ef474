//! Streams, which have more than elements: consumer groups and their pending entries.

use std::{
    collections::HashMap,
    ops::{ControlFlow, RangeInclusive},
};

use tokaido_collections::{OpenGroup, Pending, State, Stream, StreamId};
use tokaido_store::{Direction, ReadTransaction, WriteTransaction};
use tokaido_wire::rdb::{Encoder, EntryId, GroupValue, PackedEntries, PendingValue, StreamValue};

use crate::redis::{
    call::{Call, Room},
    failure::Failure,
};

const ALL: RangeInclusive<StreamId> = StreamId::MIN..=StreamId::MAX;

fn entry_id(id: StreamId) -> EntryId {
    (id.ms, id.seq)
}

fn stream_id((ms, seq): EntryId) -> StreamId {
    StreamId { ms, seq }
}

/// Writes the stream under a key.
pub(super) fn write(
    call: &Call<'_>,
    tx: &mut dyn ReadTransaction,
    key: &[u8],
    payload: &mut Vec<u8>,
) -> Result<(), Failure> {
    let stream = Stream::new(call.database, key);
    let Some(state) = stream.state(tx)? else { return Ok(()) };
    call.check_visit(state.len)?;
    let (mut entries, mut room, mut written) = (PackedEntries::default(), call.room(), 0);
    stream.visit(tx, &state, ALL, Direction::Forward, &mut |id, fields| {
        let before = entries.bytes();
        entries.add(entry_id(id), fields);
        written += 1;
        room.take(entries.bytes().saturating_sub(before))
    })?;
    call.check_room(&room)?;
    call.check_written(written, state.len as usize)?;
    let mut value = StreamValue {
        last_id: entry_id(state.last_id),
        first_id: entry_id(state.first_id),
        max_deleted_id: entry_id(state.max_deleted_id),
        added: state.added,
        ..StreamValue::default()
    };
    let mut names = Vec::new();
    stream.visit_groups(tx, &state, &mut |name, _| {
        names.push(name.to_vec());
        room.take(name.len())
    })?;
    for name in names {
        let Some(group) = stream.group(tx, &state, &name)? else { continue };
        call.check_visit(group.group.pending)?;
        value.groups.push(group_value(tx, name, &group, &mut room)?);
        call.check_room(&room)?;
    }
    Encoder::new(payload).stream(entries, &value);
    Ok(())
}

fn group_value(
    tx: &mut dyn ReadTransaction,
    name: Vec<u8>,
    open: &OpenGroup<'_>,
    room: &mut Room,
) -> Result<GroupValue, Failure> {
    let (last_id, entries_read) = (entry_id(open.group.last_id), open.group.entries_read);
    let mut group = GroupValue { name, last_id, entries_read, ..GroupValue::default() };
    let mut places = HashMap::new();
    open.visit_consumers(tx, &mut |number, consumer| {
        places.insert(number, group.consumers.len());
        let flow = room.take(consumer.name.len());
        group.consumers.push((consumer.name, consumer.seen_at_ms));
        flow
    })?;
    open.visit_pending(tx, ALL, Direction::Forward, &mut |id, pending| {
        let Some(&consumer) = places.get(&pending.consumer) else {
            return ControlFlow::Continue(());
        };
        let Pending { delivered_at_ms, deliveries, .. } = pending;
        let id = entry_id(id);
        group.pending.push(PendingValue { id, consumer, delivered_at_ms, deliveries });
        room.take(size_of::<PendingValue>())
    })?;
    Ok(group)
}

/// Puts a stream under the key, which must be free.
pub(super) fn put(
    call: &Call<'_>,
    tx: &mut dyn WriteTransaction,
    value: &StreamValue,
) -> Result<(), Failure> {
    let stream = Stream::new(call.database, call.arg(1));
    let mut state = stream.open(tx)?;
    for (place, (id, _)) in value.entries.iter().enumerate() {
        stream.append(tx, &mut state, stream_id(*id), value.fields(place))?;
    }
    state.last_id = stream_id(value.last_id);
    state.max_deleted_id = stream_id(value.max_deleted_id);
    state.added = value.added;
    stream.save(tx, &state)?;
    for group in &value.groups {
        put_group(tx, &stream, &mut state, group)?;
    }
    Ok(())
}

fn put_group(
    tx: &mut dyn WriteTransaction,
    stream: &Stream<'_>,
    state: &mut State,
    value: &GroupValue,
) -> Result<(), Failure> {
    let GroupValue { name, last_id, entries_read, .. } = value;
    stream.create_group(tx, state, name, stream_id(*last_id), *entries_read)?;
    let Some(mut group) = stream.group(tx, state, name)? else { return Ok(()) };
    let mut numbers = Vec::new();
    for (name, seen_at_ms) in &value.consumers {
        let (number, _) = group.open_consumer(tx, name)?;
        group.consumer(tx, number)?.seen_at_ms = *seen_at_ms;
        numbers.push(number);
    }
    for pending in &value.pending {
        let Some(&consumer) = numbers.get(pending.consumer) else { continue };
        let PendingValue { delivered_at_ms, deliveries, .. } = *pending;
        let pending_of = Pending { consumer, delivered_at_ms, deliveries };
        group.set_pending(tx, stream_id(pending.id), pending_of)?;
    }
    group.save(tx)?;
    Ok(())
}
