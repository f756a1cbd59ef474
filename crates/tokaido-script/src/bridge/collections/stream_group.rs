//! Calls on consumer groups, among whose consumers the entries of a stream are divided.

use std::ops::ControlFlow;

use tokaido_collections::{OpenGroup, Pending, State, Stream, StreamId};
use tokaido_store::{DatabaseId, Direction, ReadTransaction};

use super::{
    shared::{check_elements, to_read, to_write},
    stream::{id_of, ids_of, load_entry, push_entry, reply_id},
};
use crate::{
    Limits,
    bridge::{
        context::{BUFFER_KEPT_MAX, Context, Fault, NO, YES},
        write::answer,
    },
};

/// How many pending entries are looked up at a time.
const BATCH_PENDING: usize = 256;

/// A group, with its stream.
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

fn too_large(limits: &Limits, advice: &str) -> Fault {
    let max = limits.many_bytes_max;
    Fault::Refused(format!("at most {max} bytes are brought at once; {advice}"))
}

fn no_group(name: &[u8]) -> Fault {
    let name = String::from_utf8_lossy(name);
    Fault::Refused(format!("the stream has no group {name:?}; group:create() makes it"))
}

/// Whether there is a group.
pub(crate) fn group_exists(
    context: &mut Context,
    index: i32,
    key: &[u8],
    name: &[u8],
) -> Result<i32, Fault> {
    let Some((tx, database)) = to_read(context, index)? else { return Ok(NO) };
    let stream = Stream::new(database, key);
    let Some(state) = stream.state(tx)? else { return Ok(NO) };
    Ok(answer(stream.group(tx, &state, name)?.is_some()))
}

/// Makes a group, whose new entries are those after an id, or after all existing ones. Also makes the stream if
/// there is none. Tells whether the group is new.
pub(crate) fn group_create(
    context: &mut Context,
    index: i32,
    key: &[u8],
    name: &[u8],
    after: Option<&[u8]>,
) -> Result<i32, Fault> {
    let after = after.map(id_of).transpose()?;
    let (tx, database) = to_write(context, index)?;
    let stream = Stream::new(database, key);
    let mut state = stream.open(tx).map_err(Fault::half_done)?;
    let after = after.unwrap_or(state.last_id);
    let created =
        stream.create_group(tx, &mut state, name, after, None).map_err(Fault::half_done)?;
    Ok(answer(created))
}

/// Deletes a group with all its state; tells whether there was one.
pub(crate) fn group_destroy(
    context: &mut Context,
    index: i32,
    key: &[u8],
    name: &[u8],
) -> Result<i32, Fault> {
    let (tx, database) = to_write(context, index)?;
    let stream = Stream::new(database, key);
    let Some(mut state) = stream.state(tx)? else { return Ok(NO) };
    Ok(answer(stream.destroy_group(tx, &mut state, name).map_err(Fault::half_done)?))
}

/// Delivers up to `count` new entries to a consumer, as a page. The consumer is made if there is none. The reply's
/// number is how many entries there are.
pub(crate) fn group_read(
    context: &mut Context,
    index: i32,
    key: &[u8],
    name: &[u8],
    consumer: &[u8],
    count: f64,
) -> Result<i32, Fault> {
    let limits = context.limits;
    // An integer, at least 1.
    let count = count as u64;
    check_elements(&limits, count)?;
    let (tx, database) = to_write(context, index)?;
    let Found { stream, state, mut group } = Found::find(tx, database, key, name)?;
    let page = &mut context.page;
    page.clear(BUFFER_KEPT_MAX);
    let (mut ids, mut is_too_large) = (Vec::new(), false);
    if let Some(first) = stream.find_after(tx, &state, group.group.last_id)? {
        stream.visit(
            tx,
            &state,
            first..=StreamId::MAX,
            Direction::Forward,
            &mut |id, fields| {
                push_entry(page, id, fields);
                ids.push(id);
                is_too_large = page.len() > limits.many_bytes_max;
                match is_too_large || ids.len() as u64 == count {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                }
            },
        )?;
    }
    if is_too_large {
        return Err(too_large(&limits, "read fewer entries"));
    }
    if !ids.is_empty() {
        let (consumer, _) = group.open_consumer(tx, consumer).map_err(Fault::half_done)?;
        group.deliver(tx, consumer, &ids, false).map_err(Fault::half_done)?;
        group.save(tx).map_err(Fault::half_done)?;
    }
    context.reply.number = ids.len() as f64;
    Ok(YES)
}

/// Removes an entry from those pending; tells whether it was pending.
pub(crate) fn group_acknowledge(
    context: &mut Context,
    index: i32,
    key: &[u8],
    name: &[u8],
    id: &[u8],
) -> Result<i32, Fault> {
    let id = id_of(id)?;
    let (tx, database) = to_write(context, index)?;
    let Found { mut group, .. } = Found::find(tx, database, key, name)?;
    let was_pending = group.acknowledge(tx, id).map_err(Fault::half_done)?;
    group.save(tx).map_err(Fault::half_done)?;
    Ok(answer(was_pending))
}

/// Gives a consumer an entry that was last delivered at least `idle_ms` ago, as a page. An entry that is no longer
/// in the stream stops being pending.
pub(crate) fn group_claim(
    context: &mut Context,
    index: i32,
    key: &[u8],
    name: &[u8],
    consumer: &[u8],
    id: &[u8],
    idle_ms: f64,
) -> Result<i32, Fault> {
    let id = id_of(id)?;
    let (tx, database) = to_write(context, index)?;
    let Found { stream, mut group, .. } = Found::find(tx, database, key, name)?;
    let is_there = load_entry(&mut context.page, tx, stream, id)?;
    if !is_there {
        group.acknowledge(tx, id).map_err(Fault::half_done)?;
        group.save(tx).map_err(Fault::half_done)?;
        return Ok(NO);
    }
    let Some(pending) = group.pending(tx, id)? else { return Ok(NO) };
    let now_ms = tx.now_ms();
    if (now_ms.saturating_sub(pending.delivered_at_ms) as f64) < idle_ms {
        return Ok(NO);
    }
    let (consumer, _) = group.open_consumer(tx, consumer).map_err(Fault::half_done)?;
    let deliveries = pending.deliveries.saturating_add(1);
    let claimed = Pending { consumer, delivered_at_ms: now_ms, deliveries };
    group.set_pending(tx, id, claimed).map_err(Fault::half_done)?;
    group.save(tx).map_err(Fault::half_done)?;
    Ok(YES)
}

/// Loads up to `limit` entries in a range of ids that have been pending for at least `idle_ms`, of one consumer or
/// of all: ids with the names of their consumers and their idle times, and after each how often it was delivered.
#[allow(clippy::too_many_arguments)]
pub(crate) fn group_pending(
    context: &mut Context,
    index: i32,
    key: &[u8],
    name: &[u8],
    consumer: Option<&[u8]>,
    plan: i32,
    low: Option<&[u8]>,
    high: Option<&[u8]>,
    idle_ms: f64,
    limit: f64,
) -> Result<i32, Fault> {
    let ids = ids_of(plan, low, high)?;
    let limits = context.limits;
    let target = to_read(context, index)?;
    let page = &mut context.page;
    page.clear(BUFFER_KEPT_MAX);
    let Some((tx, database)) = target else { return Err(no_group(name)) };
    let Found { mut group, .. } = Found::find(tx, database, key, name)?;
    let consumer = match consumer {
        None => None,
        Some(consumer) => match group.find_consumer(tx, consumer)? {
            None => return Ok(YES),
            number => number,
        },
    };
    let Some(ids) = ids else { return Ok(YES) };
    let (now_ms, mut seen, mut left) = (tx.now_ms(), 0u64, limit);
    let mut next = Some(*ids.start());
    while let Some(from) = next.filter(|_| left >= 1.0) {
        let batch = group.page(tx, consumer, from..=*ids.end(), BATCH_PENDING)?;
        for (id, pending) in &batch {
            if left < 1.0 {
                break;
            }
            seen += 1;
            check_elements(&limits, seen)?;
            let waited_ms = now_ms.saturating_sub(pending.delivered_at_ms) as f64;
            if waited_ms >= idle_ms {
                left -= 1.0;
                let name = &group.consumer(tx, pending.consumer)?.name;
                page.push(id.to_string().as_bytes(), name, waited_ms);
                page.push(&[], &[], pending.deliveries as f64);
                if page.len() > limits.many_bytes_max {
                    return Err(too_large(&limits, "ask for a smaller range"));
                }
            }
        }
        let is_full = batch.len() == BATCH_PENDING;
        next = batch.last().filter(|_| is_full).and_then(|(id, _)| id.next());
    }
    Ok(YES)
}

/// How many entries are pending, as the reply's number, and the id after which entries are new, as its data; the
/// consumers, with how many are pending for each, are a page.
pub(crate) fn group_summary(
    context: &mut Context,
    index: i32,
    key: &[u8],
    name: &[u8],
) -> Result<i32, Fault> {
    let limits = context.limits;
    let target = to_read(context, index)?;
    let page = &mut context.page;
    page.clear(BUFFER_KEPT_MAX);
    let Some((tx, database)) = target else { return Err(no_group(name)) };
    let Found { group, .. } = Found::find(tx, database, key, name)?;
    check_elements(&limits, group.group.consumers)?;
    group.visit_consumers(tx, &mut |_, consumer| {
        page.push(&consumer.name, &[], consumer.pending as f64);
        match page.len() > limits.many_bytes_max {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    })?;
    if page.len() > limits.many_bytes_max {
        return Err(too_large(&limits, "the group has too many consumers for a summary"));
    }
    context.reply.number = group.group.pending as f64;
    reply_id(context, group.group.last_id)
}
