//! Calls on sets.

use std::ops::ControlFlow;

use tokaido_collections::{Set, intersect, subtract, unite};

use super::shared::{Filling, check_elements, random, to_read, to_write};
use crate::bridge::{
    context::{Context, Fault, NO, YES, database},
    many::{Many, many_add},
    write::answer,
};

/// How several sets are combined; `lua/set.lua` has the same.
const UNION: i32 = 0;
const INTERSECTION: i32 = 1;

/// Whether there is a member.
pub(crate) fn set_has(
    context: &mut Context,
    index: i32,
    key: &[u8],
    member: &[u8],
) -> Result<i32, Fault> {
    let Some((tx, id)) = to_read(context, index)? else { return Ok(NO) };
    let mut is_there = false;
    Set::new(id, key).look_up(tx, [member], |found| is_there = found)?;
    Ok(answer(is_there))
}

/// The number of members, as the reply's number.
pub(crate) fn set_count(context: &mut Context, index: i32, key: &[u8]) -> Result<i32, Fault> {
    context.reply.number = match to_read(context, index)? {
        Some((tx, id)) => Set::new(id, key).len(tx)? as f64,
        None => 0.0,
    };
    Ok(YES)
}

/// Adds a member; tells whether it is new.
pub(crate) fn set_add(
    context: &mut Context,
    index: i32,
    key: &[u8],
    member: &[u8],
) -> Result<i32, Fault> {
    let (tx, id) = to_write(context, index)?;
    let added =
        Set::new(id, key).add(tx, context.limits.packing, [member]).map_err(Fault::half_done)?;
    Ok(answer(added > 0))
}

/// Removes a member; tells whether there was one.
pub(crate) fn set_remove(
    context: &mut Context,
    index: i32,
    key: &[u8],
    member: &[u8],
) -> Result<i32, Fault> {
    let (tx, id) = to_write(context, index)?;
    Ok(answer(Set::new(id, key).remove(tx, [member]).map_err(Fault::half_done)? > 0))
}

/// Takes out a random member, as the reply's data.
pub(crate) fn set_pop(context: &mut Context, index: i32, key: &[u8]) -> Result<i32, Fault> {
    let (tx, id) = to_write(context, index)?;
    let member = &mut context.scratch;
    let popped = Set::new(id, key).pop(tx, 1, &mut random, |popped| {
        member.clear();
        member.extend_from_slice(popped);
        ControlFlow::Continue(())
    });
    let popped = popped.map_err(Fault::half_done)?;
    context.reply.data(&context.scratch);
    Ok(answer(popped > 0))
}

/// A random member, as the reply's data.
pub(crate) fn set_random(context: &mut Context, index: i32, key: &[u8]) -> Result<i32, Fault> {
    let Some((tx, id)) = to_read(context, index)? else { return Ok(NO) };
    let (member, mut is_there) = (&mut context.scratch, false);
    Set::new(id, key).draw(tx, 1, &mut random, |drawn| {
        is_there = true;
        member.clear();
        member.extend_from_slice(drawn);
        ControlFlow::Break(())
    })?;
    context.reply.data(&context.scratch);
    Ok(answer(is_there))
}

/// Loads about `entries` members after `after`, or from the first one on. The code is `NO` if there are
/// no more.
pub(crate) fn set_page(
    context: &mut Context,
    index: i32,
    key: &[u8],
    after: Option<&[u8]>,
    entries: i32,
) -> Result<i32, Fault> {
    let target = to_read(context, index)?;
    let mut page = Filling::begin(&mut context.page, entries);
    let Some((tx, id)) = target else { return Ok(NO) };
    let flow = Set::new(id, key).visit_after(tx, after, |member| page.push(member, &[]))?;
    Ok(answer(flow.is_break()))
}

/// Replaces what is under the key by a set of exactly the gathered members; the reply's number is how
/// many there are.
pub(crate) fn set_replace(context: &mut Context, index: i32, key: &[u8]) -> Result<i32, Fault> {
    let (tx, id) = to_write(context, index)?;
    let (set, packing) = (Set::new(id, key), context.limits.packing);
    let members = context.many.list.strings();
    // The old value is deleted first, so no failure leaves the transaction as it was.
    let count =
        set.replace(tx, packing, members).map_err(|error| Fault::Poisoned(error.to_string()))?;
    context.reply.number = count as f64;
    Ok(YES)
}

/// Adds a set to those that [`set_combine`] combines. Their list has been begun.
pub(crate) fn set_gather(context: &mut Context, index: i32, key: &[u8]) -> Result<i32, Fault> {
    let code = many_add(context, key)?;
    context.many.indexes.push(index);
    Ok(code)
}

/// The union or intersection of the gathered sets, or what only the first one has: for `many_next`. The
/// reply's number is how many members there are.
pub(crate) fn set_combine(context: &mut Context, operation: i32) -> Result<i32, Fault> {
    let limits = context.limits;
    let tx = context.read()?;
    let (mut sets, mut elements, mut is_empty) = (Vec::new(), 0u64, false);
    let Many { list, indexes, found } = &mut context.many;
    for (at, (&index, key)) in indexes.iter().zip(list.strings()).enumerate() {
        // A database that does not exist has no set.
        let Some(id) = database(index)? else {
            is_empty |= operation == INTERSECTION || operation != UNION && at == 0;
            continue;
        };
        let set = Set::new(id, key);
        elements = elements.saturating_add(set.len(tx)?);
        sets.push(set);
    }
    check_elements(&limits, elements)?;
    let mut found = found.begin(limits.many_bytes_max);
    if !is_empty {
        let push = |member: &[u8]| found.push(Some(member));
        match operation {
            UNION => unite(tx, &sets, push)?,
            INTERSECTION => intersect(tx, &sets, push)?,
            _ => subtract(tx, &sets, push)?,
        }
    }
    context.reply.number = found.count() as f64;
    found.end()
}
