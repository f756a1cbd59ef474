//! Calls on streams. Ids are passed as texts, `ms-number`.

use std::{io::Write as _, ops::RangeInclusive};

use tokaido_collections::{Fields, Stream, StreamId, Trim};
use tokaido_store::{Direction, ReadTransaction, WriteError, limits::VALUE_LEN_MAX};

use super::shared::{Filling, to_read, to_write};
use crate::bridge::{
    context::{Context, Fault, NO, YES},
    pages::LoadedPage,
    write::answer,
};

/// The bits of a plan; `lua/stream.lua` has the same.
const BACKWARD: i32 = 1;
const LOW_EXCLUDED: i32 = 2;
const HIGH_EXCLUDED: i32 = 4;

/// The most that a field or a value takes in an entry besides its own bytes.
const FIELD_HEAD_BYTES_MAX: usize = 10;

/// Parses an id, whose number is `missing` if only its time is given.
fn parse(text: &[u8], missing: u64) -> Result<StreamId, Fault> {
    StreamId::parse(text, missing).ok_or_else(|| {
        let text = String::from_utf8_lossy(text);
        Fault::Refused(format!("{text:?} is no id; an id is like \"1700000000000-0\""))
    })
}

/// Parses an id; without a number it is the first one of its time.
pub(super) fn id_of(text: &[u8]) -> Result<StreamId, Fault> {
    parse(text, 0)
}

/// The ids of a range, whose ends may be left out; `None` if no id is beyond an excluded end.
pub(super) fn ids_of(
    plan: i32,
    low: Option<&[u8]>,
    high: Option<&[u8]>,
) -> Result<Option<RangeInclusive<StreamId>>, Fault> {
    let low = match low {
        None => Some(StreamId::MIN),
        Some(low) if plan & LOW_EXCLUDED != 0 => id_of(low)?.next(),
        Some(low) => Some(id_of(low)?),
    };
    let high = match high {
        None => Some(StreamId::MAX),
        Some(high) if plan & HIGH_EXCLUDED != 0 => id_of(high)?.previous(),
        Some(high) => Some(parse(high, u64::MAX)?),
    };
    Ok(low.zip(high).map(|(low, high)| low..=high))
}

/// Adds an entry to a page: its id with the number of its fields, then each field with its value.
pub(super) fn push_entry(page: &mut LoadedPage, id: StreamId, mut fields: Fields<'_>) {
    page.push(id.to_string().as_bytes(), &[], (fields.len() / 2) as f64);
    while let (Some(field), Some(value)) = (fields.next(), fields.next()) {
        page.push(field, value, 0.0);
    }
}

/// Gives an id as the reply's data.
pub(super) fn reply_id(context: &mut Context, id: StreamId) -> Result<i32, Fault> {
    context.scratch.clear();
    write!(context.scratch, "{id}").map_err(Fault::refused)?;
    context.reply.data(&context.scratch);
    Ok(YES)
}

/// Loads the entry with that id as the page's only one.
pub(super) fn load_entry(
    page: &mut LoadedPage,
    tx: &mut (impl ReadTransaction + ?Sized),
    stream: Stream<'_>,
    id: StreamId,
) -> Result<bool, Fault> {
    page.clear(VALUE_LEN_MAX);
    let Some(state) = stream.state(tx)? else { return Ok(false) };
    Ok(stream.visit_one(tx, &state, id, |fields| push_entry(page, id, fields))?)
}

/// The number of entries, as the reply's number.
pub(crate) fn stream_count(context: &mut Context, index: i32, key: &[u8]) -> Result<i32, Fault> {
    let state = match to_read(context, index)? {
        Some((tx, id)) => Stream::new(id, key).state(tx)?,
        None => None,
    };
    context.reply.number = state.map_or(0, |state| state.len) as f64;
    Ok(YES)
}

/// The largest id that any entry has ever had, as the reply's data.
pub(crate) fn stream_last_id(context: &mut Context, index: i32, key: &[u8]) -> Result<i32, Fault> {
    let Some((tx, id)) = to_read(context, index)? else { return Ok(NO) };
    match Stream::new(id, key).state(tx)? {
        Some(state) => reply_id(context, state.last_id),
        None => Ok(NO),
    }
}

/// The entry with that id, for `page_next`.
pub(crate) fn stream_get(
    context: &mut Context,
    index: i32,
    key: &[u8],
    id: &[u8],
) -> Result<i32, Fault> {
    let id = id_of(id)?;
    let Some((tx, database)) = to_read(context, index)? else { return Ok(NO) };
    Ok(answer(load_entry(&mut context.page, tx, Stream::new(database, key), id)?))
}

/// Adds an entry of the gathered fields and values, in the order of the fields, with an id or one from
/// the clock; its id is the reply's data.
pub(crate) fn stream_add(
    context: &mut Context,
    index: i32,
    key: &[u8],
    id: Option<&[u8]>,
) -> Result<i32, Fault> {
    let given = id.map(id_of).transpose()?;
    let (tx, database) = to_write(context, index)?;
    let texts = context.many.list.strings();
    let mut pairs: Vec<_> = texts.chunks_exact(2).collect();
    // Lua gives them in no particular order.
    pairs.sort_unstable();
    let len = texts.iter().map(|text| text.len() + FIELD_HEAD_BYTES_MAX).sum();
    if len > VALUE_LEN_MAX {
        return Err(Fault::refused(WriteError::ValueLength { len, max: VALUE_LEN_MAX }));
    }
    let stream = Stream::new(database, key);
    let found = stream.state(tx)?;
    let last = found.map_or(StreamId::MIN, |state| state.last_id);
    let id = given.or_else(|| StreamId::after(last, tx.now_ms())).filter(|id| *id > last);
    let id = id.ok_or_else(|| {
        Fault::Refused(format!(
            "an entry's id is larger than that of all before it, here than {last}"
        ))
    })?;
    let mut state = match found {
        Some(state) => state,
        None => stream.open(tx).map_err(Fault::half_done)?,
    };
    let fields = pairs.iter().flat_map(|pair| pair.iter().copied());
    stream.append(tx, &mut state, id, fields).map_err(Fault::half_done)?;
    reply_id(context, id)
}

/// Deletes an entry; tells whether there was one.
pub(crate) fn stream_delete(
    context: &mut Context,
    index: i32,
    key: &[u8],
    id: &[u8],
) -> Result<i32, Fault> {
    let id = id_of(id)?;
    let (tx, database) = to_write(context, index)?;
    let stream = Stream::new(database, key);
    let Some(mut state) = stream.state(tx)? else { return Ok(NO) };
    Ok(answer(stream.delete(tx, &mut state, [id]).map_err(Fault::half_done)? > 0))
}

/// Deletes the first entries, as many as one call may: all but the last `max_count`, and those before `min_id`.
/// The reply's number is how many there were; the code is `NO` if there are no more.
pub(crate) fn stream_trim(
    context: &mut Context,
    index: i32,
    key: &[u8],
    max_count: f64,
    min_id: Option<&[u8]>,
) -> Result<i32, Fault> {
    let min_id = min_id.map(id_of).transpose()?;
    let (tx, database) = to_write(context, index)?;
    let (stream, max) = (Stream::new(database, key), context.limits.many_keys_max as u64);
    context.reply.number = 0.0;
    let Some(mut state) = stream.state(tx)? else { return Ok(NO) };
    // An infinite number means more than there are.
    let to_len = Trim::ToLen(max_count as u64);
    let mut trimmed = stream.trim(tx, &mut state, to_len, max).map_err(Fault::half_done)?;
    if let Some(last) = min_id.and_then(StreamId::previous) {
        let left = max - trimmed;
        trimmed += stream.trim(tx, &mut state, Trim::UpTo(last), left).map_err(Fault::half_done)?;
    }
    context.reply.number = trimmed as f64;
    Ok(answer(trimmed == max))
}

/// Loads up to `entries` entries of a range, in the plan's direction. The code is `NO` if there are no more.
pub(crate) fn stream_page(
    context: &mut Context,
    index: i32,
    key: &[u8],
    plan: i32,
    low: Option<&[u8]>,
    high: Option<&[u8]>,
    entries: i32,
) -> Result<i32, Fault> {
    let ids = ids_of(plan, low, high)?;
    let target = to_read(context, index)?;
    let mut page = Filling::begin(&mut context.page, entries);
    let (Some((tx, database)), Some(ids)) = (target, ids) else { return Ok(NO) };
    let stream = Stream::new(database, key);
    let Some(state) = stream.state(tx)? else { return Ok(NO) };
    let direction = match plan & BACKWARD {
        0 => Direction::Forward,
        _ => Direction::Backward,
    };
    let mut is_full = false;
    stream.visit(tx, &state, ids, direction, &mut |id, fields| {
        let flow = page.push_all(|page| push_entry(page, id, fields));
        is_full = flow.is_break();
        flow
    })?;
    Ok(answer(is_full))
}
