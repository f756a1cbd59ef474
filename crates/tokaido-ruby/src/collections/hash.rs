//! Operations on hashes.

use tokaido_collections::Hash;
use tokaido_script::{Fault, Value, check_value};
use tokaido_store::{
    IncrementError, WriteTransaction,
    counter::{self, format_float},
};

use super::{Call, Page, answer_boolean, answer_count, answer_text, pair, random, text};
use crate::{
    context::Context,
    items::{self},
};

const GET: i64 = 0;
const HAS: i64 = 1;
const COUNT: i64 = 2;
const SET: i64 = 3;
const ADD: i64 = 4;
const DELETE: i64 = 5;
const INCREMENT: i64 = 6;
const INCREMENT_FLOAT: i64 = 7;
const RANDOM: i64 = 8;

pub(super) fn run(context: &mut Context, number: i64, call: &Call<'_>) -> Result<(), Fault> {
    match number {
        SET..=INCREMENT_FLOAT => write(context, number, call),
        _ => read(context, number, call),
    }
}

fn read(context: &mut Context, number: i64, call: &Call<'_>) -> Result<(), Fault> {
    let target = call.to_read(context)?;
    let hash = target.as_ref().map(|(_, id)| Hash::new(*id, call.key));
    match number {
        GET => {
            let (field, mut value) = (call.text(0, "a field")?, None);
            if let (Some((tx, _)), Some(hash)) = (target, hash) {
                hash.look_up(tx, [&*field], |found| value = found.map(<[u8]>::to_vec))?;
            }
            answer_text(context, value);
        }
        HAS => {
            let (field, mut is_there) = (call.text(0, "a field")?, false);
            if let (Some((tx, _)), Some(hash)) = (target, hash) {
                hash.look_up(tx, [&*field], |found| is_there = found.is_some())?;
            }
            answer_boolean(context, is_there);
        }
        COUNT => {
            let count = match (target, hash) {
                (Some((tx, _)), Some(hash)) => hash.len(tx)?,
                _ => 0,
            };
            answer_count(context, count);
        }
        RANDOM => {
            let mut page = Page::begin(1);
            if let (Some((tx, _)), Some(hash)) = (target, hash) {
                hash.draw(tx, 1, &mut random, |field, value| {
                    page.push(pair(field, text(value)), 0)
                })?;
            }
            page.entries.pop().into_iter().for_each(|drawn| context.answer_value(drawn));
        }
        // A page of fields and values, after a given field or from the first one.
        _ => {
            let after = call.argument(0).optional_text("a field")?;
            let mut page = Page::begin(call.entries(1)?);
            if let (Some((tx, _)), Some(hash)) = (target, hash) {
                let _ = hash.visit_after(tx, after.as_deref(), |field, value| {
                    page.push(pair(field, text(value)), field.len() + value.len())
                })?;
            }
            page.answer(context);
        }
    }
    Ok(())
}

fn write(context: &mut Context, number: i64, call: &Call<'_>) -> Result<(), Fault> {
    let (tx, id) = call.to_write(context)?;
    let (hash, field) = (Hash::new(id, call.key), call.text(0, "a field")?);
    let packing = context.limits.packing;
    let set = |tx: &mut dyn WriteTransaction, value: &[u8]| {
        hash.set(tx, packing, [(&*field, value)]).map_err(Fault::half_done)
    };
    match number {
        SET | ADD => {
            let value = call.text(1, "a value")?;
            check_value(&value)?;
            let mut is_there = false;
            if number == ADD {
                hash.look_up(tx, [&*field], |found| is_there = found.is_some())?;
            }
            let is_new = !is_there && set(tx, &value)? > 0;
            answer_boolean(context, is_new);
        }
        DELETE => {
            let removed = hash.remove(tx, [&*field]).map_err(Fault::half_done)?;
            answer_boolean(context, removed > 0);
        }
        INCREMENT => {
            let by = call.integer(1, "what is added")?;
            let old = number_in(tx, &hash, &field, counter::parse)?.unwrap_or(0);
            let new = old.checked_add(by).ok_or(IncrementError::Overflow)?;
            set(tx, new.to_string().as_bytes())?;
            context.answer.push(items::integer(new));
        }
        _ => {
            let by = call.argument(1).number("what is added")?;
            let new = number_in(tx, &hash, &field, counter::parse_float)?.unwrap_or(0.0) + by;
            if !new.is_finite() {
                return Err(IncrementError::Overflow.into());
            }
            set(tx, format_float(new).as_bytes())?;
            context.answer_value(Value::Number(new));
        }
    }
    Ok(())
}

/// The result of `parse` for the value of a field; `None` if there is none.
fn number_in<N>(
    tx: &mut dyn WriteTransaction,
    hash: &Hash<'_>,
    field: &[u8],
    parse: impl Fn(&[u8]) -> Option<N>,
) -> Result<Option<N>, Fault> {
    let mut number = Ok(None);
    hash.look_up(tx, [field], |found| {
        if let Some(text) = found {
            number = parse(text).map(Some).ok_or(IncrementError::NotANumber);
        }
    })?;
    Ok(number?)
}
