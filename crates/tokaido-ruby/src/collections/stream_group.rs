//! Operations on consumer groups, which share the entries of a stream. Their arguments begin with
//! the group's name.

use std::ops::ControlFlow;

use tokaido_collections::{OpenGroup, Pending, State, Stream, StreamId};
use tokaido_script::{Fault, Limits, Value, check_elements};
use tokaido_store::{DatabaseId, Direction, ReadTransaction};

use super::{
    Call, answer_boolean,
    stream::{self, Given},
    text,
};
use crate::context::Context;

const EXISTS: i64 = 10;
const PENDING: i64 = 11;
const SUMMARY: i64 = 12;
const CREATE: i64 = 13;
const DESTROY: i64 = 14;
const READ: i64 = 15;
const ACKNOWLEDGE: i64 = 16;

/// Number of pending entries that are looked up at a time.
const BATCH_PENDING: usize = 256;

/// A group and its stream.
struct Found<'k> {
    stream: Stream<'k>,
    state: State,
    group: OpenGroup<'k>,
}

impl<'k> Found<'k> {
    fn find(
        tx: &mut (impl ReadTransaction + ?Sized),
        database: DatabaseId,
        key: &'k [u8],
        name: &[u8],
    ) -> Result<Self, Fault> {
        let stream = Stream::new(database, key);
        if let Some(state) = stream.state(tx)?
            && let Some(group) = stream.group(tx, &state, name)?
        {
            return Ok(Self { stream, state, group });
        }
        Err(no_group(name))
    }
}

fn no_group(name: &[u8]) -> Fault {
    let name = String::from_utf8_lossy(name);
    Fault::Refused(format!("the stream has no group {name:?}; group.create makes it"))
}

fn check_bytes(limits: &Limits, bytes: usize) -> Result<(), Fault> {
    let max = limits.many_bytes_max;
    if bytes <= max {
        return Ok(());
    }
    Err(Fault::Refused(format!("at most {max} bytes are brought at once; ask for less")))
}

fn count(count: u64) -> Value {
    Value::Integer(i64::try_from(count).unwrap_or(i64::MAX))
}

pub(super) fn run(
    context: &mut Context,
    number: i64,
    call: &Call<'_>,
    given: &Given,
) -> Result<(), Fault> {
    let name = given.text(0, "the name of a group")?;
    match number {
        EXISTS => {
            let mut is_there = false;
            if let Some((tx, database)) = call.to_read(context)? {
                let stream = Stream::new(database, call.key);
                if let Some(state) = stream.state(tx)? {
                    is_there = stream.group(tx, &state, &name)?.is_some();
                }
            }
            answer_boolean(context, is_there);
        }
        PENDING => pending(context, call, &name, given)?,
        SUMMARY => summary(context, call, &name)?,
        CREATE => {
            let after = given.optional_text(1, "an id")?.map(|_| given.id(1)).transpose()?;
            let (tx, database) = call.to_write(context)?;
            let stream = Stream::new(database, call.key);
            let mut state = stream.open(tx).map_err(Fault::half_done)?;
            let after = after.unwrap_or(state.last_id);
            let created = stream.create_group(tx, &mut state, &name, after, None);
            answer_boolean(context, created.map_err(Fault::half_done)?);
        }
        DESTROY => {
            let (tx, database) = call.to_write(context)?;
            let stream = Stream::new(database, call.key);
            let destroyed = match stream.state(tx)? {
                Some(mut state) => {
                    stream.destroy_group(tx, &mut state, &name).map_err(Fault::half_done)?
                }
                None => false,
            };
            answer_boolean(context, destroyed);
        }
        READ => read(context, call, &name, given)?,
        ACKNOWLEDGE => {
            let id = given.id(1)?;
            let (tx, database) = call.to_write(context)?;
            let Found { mut group, .. } = Found::find(tx, database, call.key, &name)?;
            let was_pending = group.acknowledge(tx, id).map_err(Fault::half_done)?;
            group.save(tx).map_err(Fault::half_done)?;
            answer_boolean(context, was_pending);
        }
        _ => claim(context, call, &name, given)?,
    }
    Ok(())
}

/// Delivers new entries to a consumer, which is created if needed.
fn read(context: &mut Context, call: &Call<'_>, name: &[u8], given: &Given) -> Result<(), Fault> {
    let limits = context.limits;
    let (consumer, max) = (given.text(1, "a consumer's name")?, given.count(2, "a count")?);
    check_elements(&limits, max)?;
    let (tx, database) = call.to_write(context)?;
    let Found { stream, state, mut group } = Found::find(tx, database, call.key, name)?;
    let (mut entries, mut ids, mut bytes) = (Vec::new(), Vec::new(), 0);
    if let Some(first) = stream.find_after(tx, &state, group.group.last_id)?.filter(|_| max > 0) {
        let all = first..=StreamId::MAX;
        stream.visit(tx, &state, all, Direction::Forward, &mut |id, fields| {
            bytes += fields.clone().map(<[u8]>::len).sum::<usize>();
            entries.push(stream::entry(id, fields));
            ids.push(id);
            match bytes > limits.many_bytes_max || ids.len() as u64 == max {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        })?;
    }
    check_bytes(&limits, bytes)?;
    if !ids.is_empty() {
        let (consumer, _) = group.open_consumer(tx, &consumer).map_err(Fault::half_done)?;
        group.deliver(tx, consumer, &ids, false).map_err(Fault::half_done)?;
        group.save(tx).map_err(Fault::half_done)?;
    }
    context.answer_value(Value::Array(entries));
    Ok(())
}

/// Reassigns to a consumer an entry that was delivered at least `idle_ms` ago. An entry that is no
/// longer in the stream is removed from the pending ones.
fn claim(context: &mut Context, call: &Call<'_>, name: &[u8], given: &Given) -> Result<(), Fault> {
    let (consumer, id) = (given.text(1, "a consumer's name")?, given.id(2)?);
    let idle_ms = given.count(3, "idle_ms")?;
    let (tx, database) = call.to_write(context)?;
    let Found { stream, mut group, .. } = Found::find(tx, database, call.key, name)?;
    let Some(fields) = stream::find(tx, stream, id)? else {
        group.acknowledge(tx, id).map_err(Fault::half_done)?;
        return group.save(tx).map_err(Fault::half_done);
    };
    let Some(pending) = group.pending(tx, id)? else { return Ok(()) };
    let now_ms = tx.now_ms();
    if now_ms.saturating_sub(pending.delivered_at_ms) < idle_ms {
        return Ok(());
    }
    let (consumer, _) = group.open_consumer(tx, &consumer).map_err(Fault::half_done)?;
    let deliveries = pending.deliveries.saturating_add(1);
    let claimed = Pending { consumer, delivered_at_ms: now_ms, deliveries };
    group.set_pending(tx, id, claimed).map_err(Fault::half_done)?;
    group.save(tx).map_err(Fault::half_done)?;
    context.answer_value(fields);
    Ok(())
}

/// The pending entries in a range of ids, of one consumer or of all. Each row has the id, the
/// consumer, the ms since its delivery, and the number of deliveries.
fn pending(
    context: &mut Context,
    call: &Call<'_>,
    name: &[u8],
    given: &Given,
) -> Result<(), Fault> {
    let limits = context.limits;
    let (consumer, idle_ms) =
        (given.optional_text(1, "a consumer's name")?, given.count(2, "idle_ms")?);
    let (mut left, ids) = (given.optional_count(3, "limit")?, given.ids(4)?);
    let Some((tx, database)) = call.to_read(context)? else { return Err(no_group(name)) };
    let Found { mut group, .. } = Found::find(tx, database, call.key, name)?;
    let is_of_one = consumer.is_some();
    let consumer = match consumer {
        Some(consumer) => group.find_consumer(tx, &consumer)?,
        None => None,
    };
    let (now_ms, mut seen, mut bytes, mut rows) = (tx.now_ms(), 0u64, 0, Vec::new());
    let ids = ids.filter(|_| !is_of_one || consumer.is_some());
    let mut next = ids.as_ref().map(|ids| *ids.start());
    while let (Some(from), Some(ids)) = (next.filter(|_| left > 0), &ids) {
        let batch = group.page(tx, consumer, from..=*ids.end(), BATCH_PENDING)?;
        for (id, pending) in &batch {
            seen += 1;
            check_elements(&limits, seen)?;
            let waited_ms = now_ms.saturating_sub(pending.delivered_at_ms);
            if left > 0 && waited_ms >= idle_ms {
                left -= 1;
                let name = &group.consumer(tx, pending.consumer)?.name;
                bytes += name.len();
                check_bytes(&limits, bytes)?;
                rows.push(Value::Array(vec![
                    text(id.to_string().as_bytes()),
                    text(name),
                    count(waited_ms),
                    count(pending.deliveries),
                ]));
            }
        }
        let is_full = batch.len() == BATCH_PENDING;
        next = batch.last().filter(|_| is_full).and_then(|(id, _)| id.next());
    }
    context.answer_value(Value::Array(rows));
    Ok(())
}

/// The number of pending entries, the id after which entries are new, and the number of pending entries per consumer.
fn summary(context: &mut Context, call: &Call<'_>, name: &[u8]) -> Result<(), Fault> {
    let limits = context.limits;
    let Some((tx, database)) = call.to_read(context)? else { return Err(no_group(name)) };
    let Found { group, .. } = Found::find(tx, database, call.key, name)?;
    check_elements(&limits, group.group.consumers)?;
    let (mut consumers, mut bytes) = (Vec::new(), 0);
    group.visit_consumers(tx, &mut |_, consumer| {
        bytes += consumer.name.len();
        consumers.push((text(&consumer.name), count(consumer.pending)));
        match bytes > limits.many_bytes_max {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    })?;
    check_bytes(&limits, bytes)?;
    let last_id = text(group.group.last_id.to_string().as_bytes());
    let told = vec![count(group.group.pending), last_id, Value::Map(consumers)];
    context.answer_value(Value::Array(told));
    Ok(())
}
