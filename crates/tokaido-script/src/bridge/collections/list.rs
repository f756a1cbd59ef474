//! Calls on lists. Positions begin with 1, and negative ones count from the end, as in Lua's strings.

use std::ops::{ControlFlow, Range};

use tokaido_collections::{End, List};
use tokaido_store::{Direction, ReadError, ReadTransaction};

use super::shared::{Filling, check_elements, check_value, to_read, to_write};
use crate::bridge::{
    context::{Context, Fault, NO, YES},
    write::answer,
};

/// The ends of a list; `lua/list.lua` has the same.
const LEFT: i32 = 0;

fn end(end: i32) -> End {
    if end == LEFT { End::Front } else { End::Back }
}

/// The index for a position. There may be no item at it.
fn index_of(len: u64, position: f64) -> Option<u64> {
    // Positions are integers, which a double represents exactly up to 2^53; none is beyond that.
    let position = position as i64;
    match position {
        1.. => Some(position.unsigned_abs() - 1),
        0 => None,
        _ => len.checked_sub(position.unsigned_abs()),
    }
}

/// The indexes for two positions, both included.
fn indexes_in(len: u64, first: f64, last: f64) -> Range<u64> {
    let start = if first >= 1.0 { first as u64 - 1 } else { index_of(len, first).unwrap_or(0) };
    let end = match index_of(len, last) {
        Some(index) => index.saturating_add(1).min(len),
        None => 0,
    };
    start.min(end)..end
}

/// Copies the item at an index; tells whether there is one.
fn copy_item(
    tx: &mut (impl ReadTransaction + ?Sized),
    list: &List<'_>,
    index: u64,
    copy: &mut Vec<u8>,
) -> Result<bool, ReadError> {
    let mut is_there = false;
    let range = index..index.saturating_add(1);
    list.visit(tx, range, Direction::Forward, |_, item| {
        is_there = true;
        copy.clear();
        copy.extend_from_slice(item);
        ControlFlow::Break(())
    })?;
    Ok(is_there)
}

/// The number of items, as the reply's number.
pub(crate) fn list_count(context: &mut Context, index: i32, key: &[u8]) -> Result<i32, Fault> {
    context.reply.number = match to_read(context, index)? {
        Some((tx, id)) => List::new(id, key).len(tx)? as f64,
        None => 0.0,
    };
    Ok(YES)
}

/// The item at a position, as the reply's data.
pub(crate) fn list_get(
    context: &mut Context,
    index: i32,
    key: &[u8],
    position: f64,
) -> Result<i32, Fault> {
    let Some((tx, id)) = to_read(context, index)? else { return Ok(NO) };
    let list = List::new(id, key);
    let Some(at) = index_of(list.len(tx)?, position) else { return Ok(NO) };
    let is_there = copy_item(tx, &list, at, &mut context.scratch)?;
    context.reply.data(&context.scratch);
    Ok(answer(is_there))
}

/// Adds an item at one end; the new number of items is the reply's number.
pub(crate) fn list_push(
    context: &mut Context,
    index: i32,
    key: &[u8],
    at: i32,
    item: &[u8],
) -> Result<i32, Fault> {
    let (tx, id) = to_write(context, index)?;
    check_value(item)?;
    let packing = context.limits.packing;
    let len = List::new(id, key).push(tx, packing, end(at), [item]).map_err(Fault::half_done)?;
    context.reply.number = len as f64;
    Ok(YES)
}

/// Takes an item from one end, as the reply's data.
pub(crate) fn list_pop(
    context: &mut Context,
    index: i32,
    key: &[u8],
    at: i32,
) -> Result<i32, Fault> {
    let (tx, id) = to_write(context, index)?;
    let item = &mut context.scratch;
    let popped = List::new(id, key).pop(tx, end(at), 1, |popped| {
        item.clear();
        item.extend_from_slice(popped);
        ControlFlow::Continue(())
    });
    let popped = popped.map_err(Fault::half_done)?;
    context.reply.data(&context.scratch);
    Ok(answer(popped > 0))
}

/// Replaces the item at a position; tells whether there was one.
pub(crate) fn list_set(
    context: &mut Context,
    index: i32,
    key: &[u8],
    position: f64,
    item: &[u8],
) -> Result<i32, Fault> {
    let (tx, id) = to_write(context, index)?;
    check_value(item)?;
    let list = List::new(id, key);
    let Some(at) = index_of(list.len(tx)?, position) else { return Ok(NO) };
    Ok(answer(list.set(tx, context.limits.packing, at, item).map_err(Fault::half_done)?))
}

/// Inserts an item before the one at a position, or after the last one; the new number of items is the
/// reply's number. `NO` if there is no such position.
pub(crate) fn list_insert(
    context: &mut Context,
    index: i32,
    key: &[u8],
    position: f64,
    item: &[u8],
) -> Result<i32, Fault> {
    let (tx, id) = to_write(context, index)?;
    check_value(item)?;
    let list = List::new(id, key);
    let len = list.len(tx)?;
    let Some(at) = index_of(len, position).filter(|&at| at <= len) else { return Ok(NO) };
    check_elements(&context.limits, at.min(len - at))?;
    let len = list.insert(tx, context.limits.packing, at, item).map_err(Fault::half_done)?;
    context.reply.number = len as f64;
    Ok(YES)
}

/// Takes out the item at a position, as the reply's data.
pub(crate) fn list_remove(
    context: &mut Context,
    index: i32,
    key: &[u8],
    position: f64,
) -> Result<i32, Fault> {
    let (tx, id) = to_write(context, index)?;
    let list = List::new(id, key);
    let len = list.len(tx)?;
    let Some(at) = index_of(len, position).filter(|&at| at < len) else { return Ok(NO) };
    check_elements(&context.limits, at.min(len - at))?;
    copy_item(tx, &list, at, &mut context.scratch)?;
    list.remove(tx, &[at]).map_err(Fault::half_done)?;
    context.reply.data(&context.scratch);
    Ok(YES)
}

/// Removes all items but those from one position to another.
pub(crate) fn list_trim(
    context: &mut Context,
    index: i32,
    key: &[u8],
    first: f64,
    last: f64,
) -> Result<i32, Fault> {
    let (tx, id) = to_write(context, index)?;
    let list = List::new(id, key);
    let len = list.len(tx)?;
    let kept = indexes_in(len, first, last);
    if kept == (0..len) {
        return Ok(YES);
    }
    // A list without items is deleted, which takes no time.
    if !kept.is_empty() {
        check_elements(&context.limits, len - (kept.end - kept.start))?;
    }
    list.trim(tx, kept).map_err(Fault::half_done)?;
    Ok(YES)
}

/// The position of the first item equal to this one, as the reply's number.
pub(crate) fn list_find(
    context: &mut Context,
    index: i32,
    key: &[u8],
    item: &[u8],
) -> Result<i32, Fault> {
    let Some((tx, id)) = to_read(context, index)? else { return Ok(NO) };
    let (list, mut at) = (List::new(id, key), None);
    let (mut seen, seen_max) = (0, context.limits.many_keys_max as u64);
    list.visit(tx, 0..u64::MAX, Direction::Forward, |index, found| {
        seen += 1;
        if found == item {
            at = Some(index);
        }
        if at.is_some() || seen > seen_max {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    })?;
    let Some(at) = at else {
        check_elements(&context.limits, seen)?;
        return Ok(NO);
    };
    context.reply.number = at as f64 + 1.0;
    Ok(YES)
}

/// Where the items from one position to another begin and end: the reply's number and flags. Both
/// positions count from the beginning, and the second is below the first if there are no items.
pub(crate) fn list_range(
    context: &mut Context,
    index: i32,
    key: &[u8],
    first: f64,
    last: f64,
) -> Result<i32, Fault> {
    let range = match to_read(context, index)? {
        Some((tx, id)) => indexes_in(List::new(id, key).len(tx)?, first, last),
        None => 0..0,
    };
    context.reply.number = range.start as f64 + 1.0;
    context.reply.flags = range.end as f64;
    Ok(YES)
}

/// Loads up to `entries` items from one position to another, forwards if `step` is above 0, else backwards.
/// The position of the first item found is the reply's flags. The code is `NO` if the list has ended.
pub(crate) fn list_page(
    context: &mut Context,
    index: i32,
    key: &[u8],
    from: f64,
    to: f64,
    entries: i32,
    step: i32,
) -> Result<i32, Fault> {
    let target = to_read(context, index)?;
    let mut page = Filling::begin(&mut context.page, entries);
    let Some((tx, id)) = target else { return Ok(NO) };
    let (direction, first, last) = match step {
        1.. => (Direction::Forward, from, to),
        _ => (Direction::Backward, to, from),
    };
    let (mut flow, mut start) = (ControlFlow::Continue(()), None);
    List::new(id, key).visit(
        tx,
        (first as u64).saturating_sub(1)..last as u64,
        direction,
        |index, item| {
            start.get_or_insert(index);
            flow = page.push(item, &[]);
            flow
        },
    )?;
    context.reply.flags = start.map_or(0.0, |index| index as f64 + 1.0);
    Ok(answer(flow.is_break()))
}
