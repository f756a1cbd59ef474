//! Operations on lists. Positions start at 0; Ruby converts those that count from the end.

use std::ops::ControlFlow;

use tokaido_collections::{End, List};
use tokaido_script::{Fault, check_elements, check_value};
use tokaido_store::{Direction, ReadError, ReadTransaction};

use super::{Call, Page, answer_boolean, answer_count, answer_text, text};
use crate::context::Context;

const COUNT: i64 = 0;
const INDEX: i64 = 1;
const PUSH: i64 = 2;
const POP: i64 = 3;
const SET: i64 = 4;
const INSERT: i64 = 5;
const REMOVE: i64 = 6;
const TRIM: i64 = 7;

pub(super) fn run(context: &mut Context, number: i64, call: &Call<'_>) -> Result<(), Fault> {
    match number {
        PUSH..=TRIM => write(context, number, call),
        _ => read(context, number, call),
    }
}

/// An argument that is a position, or a number of items.
fn position(call: &Call<'_>, place: usize) -> Result<u64, Fault> {
    Ok(u64::try_from(call.integer(place, "a position")?).unwrap_or(u64::MAX))
}

/// An argument that selects an end: true for the front.
fn end(call: &Call<'_>) -> End {
    if call.argument(0).is_true() { End::Front } else { End::Back }
}

fn read(context: &mut Context, number: i64, call: &Call<'_>) -> Result<(), Fault> {
    let target = call.to_read(context)?;
    match number {
        COUNT => {
            let count = match target {
                Some((tx, id)) => List::new(id, call.key).len(tx)?,
                None => 0,
            };
            answer_count(context, count);
        }
        INDEX => {
            let item = call.text(0, "an item")?;
            if let Some((tx, id)) = target {
                find(context, tx, &List::new(id, call.key), &item)?;
            }
        }
        // A page of the items from one position up to but excluding another; backwards if the third argument is true.
        _ => {
            let (from, to) = (position(call, 0)?, position(call, 1)?);
            let direction = match call.argument(2).is_true() {
                true => Direction::Backward,
                false => Direction::Forward,
            };
            let mut page = Page::begin(call.entries(3)?);
            if let Some((tx, id)) = target {
                List::new(id, call.key)
                    .visit(tx, from..to, direction, |_, item| page.push(text(item), item.len()))?;
            }
            page.answer(context);
        }
    }
    Ok(())
}

/// Answers with the position of the first item that equals `item`.
fn find(
    context: &mut Context,
    tx: &mut (dyn ReadTransaction + 'static),
    list: &List<'_>,
    item: &[u8],
) -> Result<(), Fault> {
    let (mut at, mut seen, seen_max) = (None, 0, context.limits.many_keys_max as u64);
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
    match at {
        Some(at) => answer_count(context, at),
        None => check_elements(&context.limits, seen)?,
    }
    Ok(())
}

fn write(context: &mut Context, number: i64, call: &Call<'_>) -> Result<(), Fault> {
    let (tx, id) = call.to_write(context)?;
    let (list, limits) = (List::new(id, call.key), context.limits);
    match number {
        PUSH => {
            let item = call.text(1, "an item")?;
            check_value(&item)?;
            let pushed = list.push(tx, limits.packing, end(call), [&*item]);
            answer_count(context, pushed.map_err(Fault::half_done)?);
        }
        POP => {
            let mut item = None;
            let popped = list.pop(tx, end(call), 1, |popped| {
                item = Some(popped.to_vec());
                ControlFlow::Continue(())
            });
            popped.map_err(Fault::half_done)?;
            answer_text(context, item);
        }
        SET => {
            let (at, item) = (position(call, 0)?, call.text(1, "an item")?);
            check_value(&item)?;
            let is_set = list.set(tx, limits.packing, at, &item).map_err(Fault::half_done)?;
            answer_boolean(context, is_set);
        }
        INSERT => {
            let (at, item) = (position(call, 0)?, call.text(1, "an item")?);
            check_value(&item)?;
            let len = list.len(tx)?;
            if at > len {
                return Err(Fault::refused("the list ends before that position"));
            }
            check_elements(&limits, at.min(len - at))?;
            let inserted = list.insert(tx, limits.packing, at, &item).map_err(Fault::half_done)?;
            answer_count(context, inserted);
        }
        REMOVE => {
            let (at, len) = (position(call, 0)?, list.len(tx)?);
            if at < len {
                check_elements(&limits, at.min(len - at))?;
                let item = item_at(tx, &list, at)?;
                list.remove(tx, &[at]).map_err(Fault::half_done)?;
                answer_text(context, item);
            }
        }
        _ => {
            let len = list.len(tx)?;
            let (first, end) = (position(call, 0)?.min(len), position(call, 1)?.min(len));
            let kept = first.min(end)..end;
            if kept != (0..len) {
                // If no item is kept, the list is deleted, which is fast.
                if !kept.is_empty() {
                    check_elements(&limits, len - (kept.end - kept.start))?;
                }
                list.trim(tx, kept).map_err(Fault::half_done)?;
            }
        }
    }
    Ok(())
}

fn item_at(
    tx: &mut (impl ReadTransaction + ?Sized),
    list: &List<'_>,
    at: u64,
) -> Result<Option<Vec<u8>>, ReadError> {
    let mut found = None;
    list.visit(tx, at..at.saturating_add(1), Direction::Forward, |_, item| {
        found = Some(item.to_vec());
        ControlFlow::Break(())
    })?;
    Ok(found)
}
