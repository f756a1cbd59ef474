//! Calls on hashes.

use std::ops::ControlFlow;

use tokaido_collections::Hash;
use tokaido_store::{
    DatabaseId, IncrementError, WriteTransaction,
    counter::{self, format_float},
};

use super::shared::{Filling, check_value, random, to_read, to_write};
use crate::bridge::{
    context::{Context, Fault, NO, YES},
    many::Many,
    pages::page_next,
    write::answer,
};

/// The value of a field, as the reply's data.
pub(crate) fn hash_get(
    context: &mut Context,
    index: i32,
    key: &[u8],
    field: &[u8],
) -> Result<i32, Fault> {
    let Some((tx, id)) = to_read(context, index)? else { return Ok(NO) };
    let (value, mut is_there) = (&mut context.scratch, false);
    Hash::new(id, key).look_up(tx, [field], |found| {
        if let Some(found) = found {
            is_there = true;
            value.clear();
            value.extend_from_slice(found);
        }
    })?;
    context.reply.data(&context.scratch);
    Ok(answer(is_there))
}

/// Whether there is a field.
pub(crate) fn hash_has(
    context: &mut Context,
    index: i32,
    key: &[u8],
    field: &[u8],
) -> Result<i32, Fault> {
    let Some((tx, id)) = to_read(context, index)? else { return Ok(NO) };
    let mut is_there = false;
    Hash::new(id, key).look_up(tx, [field], |found| is_there = found.is_some())?;
    Ok(answer(is_there))
}

/// The values of the gathered fields, for `many_next`.
pub(crate) fn hash_get_many(context: &mut Context, index: i32, key: &[u8]) -> Result<i32, Fault> {
    let bytes_max = context.limits.many_bytes_max;
    let target = to_read(context, index)?;
    let Many { list, found, .. } = &mut context.many;
    let mut found = found.begin(bytes_max);
    let Some((tx, id)) = target else { return Ok(YES) };
    Hash::new(id, key).look_up(tx, list.strings(), |value| {
        let _ = found.push(value);
    })?;
    found.end()
}

/// The number of fields, as the reply's number.
pub(crate) fn hash_count(context: &mut Context, index: i32, key: &[u8]) -> Result<i32, Fault> {
    context.reply.number = match to_read(context, index)? {
        Some((tx, id)) => Hash::new(id, key).len(tx)? as f64,
        None => 0.0,
    };
    Ok(YES)
}

/// Sets a field; tells whether it is new.
pub(crate) fn hash_set(
    context: &mut Context,
    index: i32,
    key: &[u8],
    field: &[u8],
    value: &[u8],
) -> Result<i32, Fault> {
    let (tx, id) = to_write(context, index)?;
    check_value(value)?;
    set(context, tx, &Hash::new(id, key), field, value)
}

/// Sets a field if there is none of that name; tells whether it did.
pub(crate) fn hash_add(
    context: &mut Context,
    index: i32,
    key: &[u8],
    field: &[u8],
    value: &[u8],
) -> Result<i32, Fault> {
    let (tx, id) = to_write(context, index)?;
    check_value(value)?;
    let (hash, mut is_there) = (Hash::new(id, key), false);
    hash.look_up(tx, [field], |found| is_there = found.is_some())?;
    if is_there { Ok(NO) } else { set(context, tx, &hash, field, value) }
}

fn set(
    context: &Context,
    tx: &mut dyn WriteTransaction,
    hash: &Hash<'_>,
    field: &[u8],
    value: &[u8],
) -> Result<i32, Fault> {
    let added = hash.set(tx, context.limits.packing, [(field, value)]).map_err(Fault::half_done)?;
    Ok(answer(added > 0))
}

/// Removes a field; tells whether there was one.
pub(crate) fn hash_delete(
    context: &mut Context,
    index: i32,
    key: &[u8],
    field: &[u8],
) -> Result<i32, Fault> {
    let (tx, id) = to_write(context, index)?;
    Ok(answer(Hash::new(id, key).remove(tx, [field]).map_err(Fault::half_done)? > 0))
}

/// Adds to the counter in a field; the code gives the new value's width.
pub(crate) fn hash_increment(
    context: &mut Context,
    index: i32,
    key: &[u8],
    field: &[u8],
    by: i64,
) -> Result<i32, Fault> {
    let (tx, id) = to_write(context, index)?;
    let old = number_in(tx, id, key, field, counter::parse)?.unwrap_or(0);
    let new = old.checked_add(by).ok_or(IncrementError::Overflow)?;
    let text = new.to_string();
    set(context, tx, &Hash::new(id, key), field, text.as_bytes())?;
    Ok(context.reply.integer(new))
}

/// Adds a floating-point number to the counter in a field; the new value is the reply's number.
pub(crate) fn hash_increment_float(
    context: &mut Context,
    index: i32,
    key: &[u8],
    field: &[u8],
    by: f64,
) -> Result<i32, Fault> {
    let (tx, id) = to_write(context, index)?;
    let new = number_in(tx, id, key, field, counter::parse_float)?.unwrap_or(0.0) + by;
    if !new.is_finite() {
        return Err(IncrementError::Overflow.into());
    }
    set(context, tx, &Hash::new(id, key), field, format_float(new).as_bytes())?;
    context.reply.number = new;
    Ok(YES)
}

/// The result of `parse` for the value of a field; `None` if there is none.
fn number_in<N>(
    tx: &mut dyn WriteTransaction,
    id: DatabaseId,
    key: &[u8],
    field: &[u8],
    parse: impl Fn(&[u8]) -> Option<N>,
) -> Result<Option<N>, Fault> {
    let mut number = Ok(None);
    Hash::new(id, key).look_up(tx, [field], |found| {
        if let Some(text) = found {
            number = parse(text).map(Some).ok_or(IncrementError::NotANumber);
        }
    })?;
    Ok(number?)
}

/// A random field with its value: the reply's key and data.
pub(crate) fn hash_random(context: &mut Context, index: i32, key: &[u8]) -> Result<i32, Fault> {
    let Some((tx, id)) = to_read(context, index)? else { return Ok(NO) };
    let mut page = Filling::begin(&mut context.page, 1);
    Hash::new(id, key).draw(tx, 1, &mut random, |field, value| page.push(field, value))?;
    page_next(context)
}

/// Loads about `entries` fields after `after`, or from the first one on, with their values. The code is
/// `NO` if there are no more.
pub(crate) fn hash_page(
    context: &mut Context,
    index: i32,
    key: &[u8],
    after: Option<&[u8]>,
    entries: i32,
) -> Result<i32, Fault> {
    let target = to_read(context, index)?;
    let mut page = Filling::begin(&mut context.page, entries);
    let Some((tx, id)) = target else { return Ok(NO) };
    let flow = Hash::new(id, key).visit_after(tx, after, |field, value| page.push(field, value))?;
    Ok(answer(flow == ControlFlow::Break(())))
}
