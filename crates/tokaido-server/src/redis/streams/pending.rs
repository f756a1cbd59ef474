//! Pending entries: XPENDING.

use std::ops::{ControlFlow, RangeInclusive};

use tokaido_collections::{OpenGroup, StreamId};
use tokaido_store::{Direction, ReadTransaction};

use super::{
    ids,
    writing::{no_group, stream, write_id},
};
use crate::redis::{
    call::{Call, check_visit},
    command::{Command, rows},
    failure::Failure,
    written::Written,
};

pub(in crate::redis) const COMMANDS: &[Command] = rows! {
"xpending" -3 Read(xpending), KEY [] Stream "5.0.0"
    "key group [[IDLE min-idle-time] start end count [consumer]]"
    "Returns the entries of a group that are delivered but not acknowledged: a summary by consumer, or a list.";
};

/// Which pending entries to report.
struct Asked {
    min_idle_ms: i64,
    ids: RangeInclusive<StreamId>,
    count: u64,
    /// The index of the consumer's name.
    consumer: Option<usize>,
}

fn xpending(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    let asked = asked(call)?;
    let stream = stream(call, 1);
    let group = match stream.state(tx)? {
        Some(state) => stream.group(tx, &state, call.arg(2))?,
        None => None,
    };
    let group = group.ok_or_else(|| no_group(call, 1, 2, ""))?;
    match asked {
        Some(asked) => entries(call, tx, group, &asked),
        None => summary(call, tx, &group),
    }
}

fn asked(call: &Call<'_>) -> Result<Option<Asked>, Failure> {
    let (has_idle, len) = (call.is_word(3, "IDLE"), call.len());
    match len {
        3 => return Ok(None),
        6..=9 => {}
        _ => return Err(Failure::Syntax),
    }
    let min_idle_ms = if has_idle { call.integer(4)? } else { 0 };
    if has_idle && len < 8 {
        return Err(Failure::Syntax);
    }
    let start = if has_idle { 5 } else { 3 };
    let count = u64::try_from(call.integer(start + 2)?).unwrap_or(0);
    let ids = ids::range(call, start, start + 1)?;
    let consumer = Some(start + 3).filter(|index| *index < len);
    Ok(Some(Asked { min_idle_ms, ids, count, consumer }))
}

fn summary(
    call: &mut Call<'_>,
    tx: &mut dyn ReadTransaction,
    group: &OpenGroup<'_>,
) -> Result<(), Failure> {
    call.check_visit(group.group.consumers)?;
    call.reply.array(4);
    call.reply.integer(group.group.pending as i64);
    if group.group.pending == 0 {
        call.reply.null();
        call.reply.null();
        call.reply.null_array();
        return Ok(());
    }
    for direction in [Direction::Forward, Direction::Backward] {
        let mut end = StreamId::MIN;
        let all = StreamId::MIN..=StreamId::MAX;
        group.visit_pending(tx, all, direction, &mut |id, _| {
            end = id;
            ControlFlow::Break(())
        })?;
        write_id(call.reply, end);
    }
    let mut written = Written::begin(call.reply);
    group.visit_consumers(tx, &mut |_, consumer| {
        if consumer.pending == 0 {
            return ControlFlow::Continue(());
        }
        written.element(|reply| {
            reply.array(2);
            reply.bulk(&consumer.name);
            reply.bulk(consumer.pending.to_string().as_bytes());
        })
    })?;
    written.end(|reply, len| reply.array(len));
    Ok(())
}

fn entries(
    call: &mut Call<'_>,
    tx: &mut dyn ReadTransaction,
    mut group: OpenGroup<'_>,
    asked: &Asked,
) -> Result<(), Failure> {
    /// The number to look up at a time.
    const BATCH_PENDING: u64 = 256;
    let consumer = match asked.consumer {
        None => None,
        Some(index) => match group.find_consumer(tx, call.arg(index))? {
            Some(number) => Some(number),
            None => {
                call.reply.array(0);
                return Ok(());
            }
        },
    };
    let (now_ms, may_take_long) = (tx.now_ms(), call.may_take_long);
    let (mut left, mut seen, mut next) = (asked.count, 0, Some(*asked.ids.start()));
    let mut written = Written::begin(call.reply);
    while let Some(from) = next.filter(|_| left > 0) {
        let page = group.page(tx, consumer, from..=*asked.ids.end(), BATCH_PENDING as usize)?;
        seen += page.len() as u64;
        check_visit(may_take_long, seen)?;
        for (id, pending) in &page {
            let idle_ms = now_ms.saturating_sub(pending.delivered_at_ms) as i64;
            if left == 0 || idle_ms < asked.min_idle_ms {
                continue;
            }
            left -= 1;
            let name = &group.consumer(tx, pending.consumer)?.name;
            let flow = written.element(|reply| {
                reply.array(4);
                write_id(reply, *id);
                reply.bulk(name);
                reply.integer(idle_ms);
                reply.integer(pending.deliveries as i64);
            });
            left = if flow.is_break() { 0 } else { left };
        }
        let is_full = page.len() as u64 == BATCH_PENDING;
        next = page.last().filter(|_| is_full).and_then(|(id, _)| id.next());
    }
    written.end(|reply, len| reply.array(len));
    Ok(())
}
