//! What is reported about a stream: XINFO.

use std::ops::ControlFlow;

use tokaido_collections::{OpenGroup, State, Stream, StreamId};
use tokaido_store::{Direction, ReadTransaction};

use super::writing::{
    Wanted, no_group_of, stream, write_entries, write_entry, write_id, wrong_options,
};
use crate::redis::{
    call::{Call, check_visit},
    command::{Command, rows},
    failure::Failure,
    introspection,
    reply::Reply,
    written::Written,
};

pub(in crate::redis) const COMMANDS: &[Command] = rows! {
"xinfo" -2 Container(None), NO_KEY [] Stream "5.0.0"
    ""
    "Commands that return information about streams.";
"xinfo|consumers" 4 Read(consumers), SUBKEY [] Stream "5.0.0"
    "key group"
    "Returns information about the consumers of a group.";
"xinfo|groups" 3 Read(groups), SUBKEY [] Stream "5.0.0"
    "key"
    "Returns information about the groups of a stream, including how far behind they are.";
"xinfo|help" 2 Server(introspection::help), NO_KEY [] Stream "5.0.0"
    ""
    "Lists the subcommands.";
"xinfo|stream" -3 Read(of_stream), SUBKEY [] Stream "5.0.0"
    "key [FULL [COUNT count]]"
    "Returns information about a stream; with FULL, also its entries, groups, consumers and pending entries.";
};

const ALL: std::ops::RangeInclusive<StreamId> = StreamId::MIN..=StreamId::MAX;

fn existing<'c>(
    call: &Call<'c>,
    tx: &mut dyn ReadTransaction,
) -> Result<(Stream<'c>, State), Failure> {
    let stream = stream(call, 2);
    Ok((stream, stream.state(tx)?.ok_or(Failure::NoSuchKey)?))
}

fn field_integer(reply: &mut dyn Reply, name: &str, value: u64) {
    reply.bulk(name.as_bytes());
    reply.integer(value as i64);
}

fn field_id(reply: &mut dyn Reply, name: &str, id: StreamId) {
    reply.bulk(name.as_bytes());
    write_id(reply, id);
}

/// Writes a number, or null if it is not known.
fn field_perhaps(reply: &mut dyn Reply, name: &str, value: Option<i64>) {
    reply.bulk(name.as_bytes());
    match value {
        Some(value) => reply.integer(value),
        None => reply.null(),
    }
}

fn of_stream(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    /// How many entries of each list to show if the command does not specify it.
    const FULL_COUNT: u64 = 10;
    let count = match call.len() {
        3 => None,
        4 if call.is_word(3, "FULL") => Some(FULL_COUNT),
        6 if call.is_word(3, "FULL") && call.is_word(4, "COUNT") => {
            let count = call.integer(5)?;
            Some(u64::try_from(count).unwrap_or(FULL_COUNT))
        }
        _ => return Err(wrong_options(call, "XINFO")),
    };
    let (stream, state) = existing(call, tx)?;
    call.reply.map(if count.is_some() { 9 } else { 10 });
    field_integer(call.reply, "length", state.len);
    // As if each entry had its own leaf.
    field_integer(call.reply, "radix-tree-keys", state.len);
    field_integer(call.reply, "radix-tree-nodes", state.len + 1);
    field_id(call.reply, "last-generated-id", state.last_id);
    field_id(call.reply, "max-deleted-entry-id", state.max_deleted_id);
    field_integer(call.reply, "entries-added", state.added);
    field_id(call.reply, "recorded-first-entry-id", state.first_id);
    match count {
        Some(0) => full(call, tx, stream, &state, u64::MAX),
        Some(count) => full(call, tx, stream, &state, count),
        None => ends(call, tx, stream, &state),
    }
}

/// Writes the number of groups, the first entry and the last entry.
fn ends(
    call: &mut Call<'_>,
    tx: &mut dyn ReadTransaction,
    stream: Stream<'_>,
    state: &State,
) -> Result<(), Failure> {
    field_integer(call.reply, "groups", state.groups);
    for (name, direction) in
        [("first-entry", Direction::Forward), ("last-entry", Direction::Backward)]
    {
        call.reply.bulk(name.as_bytes());
        let mut is_there = false;
        stream.visit(tx, state, ALL, direction, &mut |id, fields| {
            write_entry(call.reply, id, fields);
            is_there = true;
            ControlFlow::Break(())
        })?;
        if !is_there {
            call.reply.null();
        }
    }
    Ok(())
}

fn full(
    call: &mut Call<'_>,
    tx: &mut dyn ReadTransaction,
    stream: Stream<'_>,
    state: &State,
    count: u64,
) -> Result<(), Failure> {
    call.check_visit(state.groups)?;
    call.reply.bulk(b"entries");
    let (wanted, may_take_long) =
        (Wanted { ids: ALL, direction: Direction::Forward, count }, call.may_take_long);
    write_entries(call.reply, tx, (stream, state), wanted, may_take_long, &mut |_| {})?;
    let names = group_names(tx, stream, state)?;
    call.reply.bulk(b"groups");
    call.reply.array(names.len());
    for name in names {
        let Some(group) = stream.group(tx, state, &name)? else { continue };
        full_group(call, tx, state, &name, group, count)?;
        if call.reply.flow().is_break() {
            break;
        }
    }
    Ok(())
}

fn group_names(
    tx: &mut dyn ReadTransaction,
    stream: Stream<'_>,
    state: &State,
) -> Result<Vec<Vec<u8>>, Failure> {
    let mut names = Vec::new();
    stream.visit_groups(tx, state, &mut |name, _| {
        names.push(name.to_vec());
        ControlFlow::Continue(())
    })?;
    Ok(names)
}

fn full_group(
    call: &mut Call<'_>,
    tx: &mut dyn ReadTransaction,
    state: &State,
    name: &[u8],
    mut group: OpenGroup<'_>,
    count: u64,
) -> Result<(), Failure> {
    let known = group.group;
    check_visit(call.may_take_long, known.consumers + known.pending.min(count))?;
    call.reply.map(7);
    call.reply.bulk(b"name");
    call.reply.bulk(name);
    field_id(call.reply, "last-delivered-id", known.last_id);
    field_perhaps(call.reply, "entries-read", known.entries_read.map(|read| read as i64));
    field_perhaps(call.reply, "lag", known.lag(state));
    field_integer(call.reply, "pel-count", known.pending);
    call.reply.bulk(b"pending");
    write_pending(call.reply, tx, &mut group, None, count)?;
    call.reply.bulk(b"consumers");
    let mut numbers = Vec::new();
    group.visit_consumers(tx, &mut |number, _| {
        numbers.push(number);
        ControlFlow::Continue(())
    })?;
    call.reply.array(numbers.len());
    for number in numbers {
        let consumer = group.consumer(tx, number)?.clone();
        call.reply.map(4);
        call.reply.bulk(b"name");
        call.reply.bulk(&consumer.name);
        field_integer(call.reply, "seen-time", consumer.seen_at_ms);
        field_integer(call.reply, "pel-count", consumer.pending);
        call.reply.bulk(b"pending");
        write_pending(call.reply, tx, &mut group, Some(number), count)?;
        if call.reply.flow().is_break() {
            break;
        }
    }
    Ok(())
}

/// Writes the pending entries of a group, or those of one consumer without its name.
fn write_pending(
    reply: &mut dyn Reply,
    tx: &mut dyn ReadTransaction,
    group: &mut OpenGroup<'_>,
    consumer: Option<u64>,
    count: u64,
) -> Result<(), Failure> {
    /// The number of entries to look up at a time.
    const BATCH_PENDING: u64 = 256;
    let (mut left, mut next) = (count, Some(StreamId::MIN));
    let mut written = Written::begin(reply);
    while let Some(from) = next.filter(|_| left > 0) {
        let batch_max = left.min(BATCH_PENDING) as usize;
        let batch = group.page(tx, consumer, from..=StreamId::MAX, batch_max)?;
        for (id, pending) in &batch {
            let name = match consumer {
                Some(_) => None,
                None => Some(&group.consumer(tx, pending.consumer)?.name),
            };
            let flow = written.element(|reply| {
                reply.array(3 + usize::from(name.is_some()));
                write_id(reply, *id);
                name.into_iter().for_each(|name| reply.bulk(name));
                reply.integer(pending.delivered_at_ms as i64);
                reply.integer(pending.deliveries as i64);
            });
            if flow.is_break() {
                return Ok(());
            }
        }
        left -= batch.len() as u64;
        next = batch.last().filter(|_| batch.len() == batch_max).and_then(|(id, _)| id.next());
    }
    written.end(|reply, len| reply.array(len));
    Ok(())
}

fn groups(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    let (stream, state) = existing(call, tx)?;
    call.check_visit(state.groups)?;
    let mut written = Written::begin(call.reply);
    stream.visit_groups(tx, &state, &mut |name, group| {
        written.element(|reply| {
            reply.map(6);
            reply.bulk(b"name");
            reply.bulk(name);
            field_integer(reply, "consumers", group.consumers);
            field_integer(reply, "pending", group.pending);
            field_id(reply, "last-delivered-id", group.last_id);
            field_perhaps(reply, "entries-read", group.entries_read.map(|read| read as i64));
            field_perhaps(reply, "lag", group.lag(&state));
        })
    })?;
    written.end(|reply, len| reply.array(len));
    Ok(())
}

fn consumers(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    let (stream, state) = existing(call, tx)?;
    let group = stream.group(tx, &state, call.arg(3))?;
    let group = group.ok_or_else(|| no_group_of(call, 2, 3))?;
    call.check_visit(group.group.consumers)?;
    let now_ms = tx.now_ms();
    let mut written = Written::begin(call.reply);
    group.visit_consumers(tx, &mut |_, consumer| {
        written.element(|reply| {
            reply.map(3);
            reply.bulk(b"name");
            reply.bulk(&consumer.name);
            field_integer(reply, "pending", consumer.pending);
            field_integer(reply, "idle", now_ms.saturating_sub(consumer.seen_at_ms));
        })
    })?;
    written.end(|reply, len| reply.array(len));
    Ok(())
}
