//! Operations on sets.

use std::ops::ControlFlow;

use tokaido_collections::Set;
use tokaido_script::Fault;

use super::{Call, Page, answer_boolean, answer_count, answer_text, random, text};
use crate::context::Context;

const HAS: i64 = 0;
const COUNT: i64 = 1;
const ADD: i64 = 2;
const REMOVE: i64 = 3;
const POP: i64 = 4;
const RANDOM: i64 = 5;

pub(super) fn run(context: &mut Context, number: i64, call: &Call<'_>) -> Result<(), Fault> {
    match number {
        ADD..=POP => write(context, number, call),
        _ => read(context, number, call),
    }
}

fn read(context: &mut Context, number: i64, call: &Call<'_>) -> Result<(), Fault> {
    let target = call.to_read(context)?.map(|(tx, id)| (tx, Set::new(id, call.key)));
    match number {
        HAS => {
            let (member, mut is_there) = (call.text(0, "a member")?, false);
            if let Some((tx, set)) = target {
                set.look_up(tx, [&*member], |found| is_there = found)?;
            }
            answer_boolean(context, is_there);
        }
        COUNT => {
            let count = match target {
                Some((tx, set)) => set.len(tx)?,
                None => 0,
            };
            answer_count(context, count);
        }
        RANDOM => {
            let mut member = None;
            if let Some((tx, set)) = target {
                set.draw(tx, 1, &mut random, |drawn| {
                    member = Some(drawn.to_vec());
                    ControlFlow::Break(())
                })?;
            }
            answer_text(context, member);
        }
        // A page of members after one, or from the first one on.
        _ => {
            let after = call.argument(0).optional_text("a member")?;
            let mut page = Page::begin(call.entries(1)?);
            if let Some((tx, set)) = target {
                let _ = set.visit_after(tx, after.as_deref(), |member| {
                    page.push(text(member), member.len())
                })?;
            }
            page.answer(context);
        }
    }
    Ok(())
}

fn write(context: &mut Context, number: i64, call: &Call<'_>) -> Result<(), Fault> {
    let (tx, id) = call.to_write(context)?;
    let set = Set::new(id, call.key);
    match number {
        ADD => {
            let member = call.text(0, "a member")?;
            let added = set.add(tx, context.limits.packing, [&*member]);
            answer_boolean(context, added.map_err(Fault::half_done)? > 0);
        }
        REMOVE => {
            let member = call.text(0, "a member")?;
            let removed = set.remove(tx, [&*member]).map_err(Fault::half_done)?;
            answer_boolean(context, removed > 0);
        }
        _ => {
            let mut member = None;
            let popped = set.pop(tx, 1, &mut random, |popped| {
                member = Some(popped.to_vec());
                ControlFlow::Continue(())
            });
            popped.map_err(Fault::half_done)?;
            answer_text(context, member);
        }
    }
    Ok(())
}
