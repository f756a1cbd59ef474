//! Operations on sorted sets. Ranks start at 0.

use std::ops::{Bound, ControlFlow};

use tokaido_collections::{SortedSet, Span};
use tokaido_script::{Fault, Value, check_elements};
use tokaido_store::Direction;

use super::{Call, Page, answer_boolean, answer_count, pair, random};
use crate::{context::Context, items};

const SCORE: i64 = 0;
const RANK: i64 = 1;
const COUNT: i64 = 2;
const COUNT_IN: i64 = 3;
const RANDOM: i64 = 4;
const ADD: i64 = 5;
const INCREMENT: i64 = 6;
const REMOVE: i64 = 7;
const POP: i64 = 8;
const REMOVE_IN: i64 = 9;

pub(super) fn run(context: &mut Context, number: i64, call: &Call<'_>) -> Result<(), Fault> {
    match number {
        ADD..=REMOVE_IN => write(context, number, call),
        _ => read(context, number, call),
    }
}

/// An argument that selects an end or a direction: true for the highest score.
fn direction(call: &Call<'_>, place: usize) -> Direction {
    if call.argument(place).is_true() { Direction::Backward } else { Direction::Forward }
}

/// The range of scores in the arguments from `place` on: lowest and highest, each with whether it is included.
fn span(call: &Call<'_>, place: usize) -> Result<Span, Fault> {
    let bound = |place: usize| {
        let is_within = call.argument(place + 1).is_true();
        Ok::<_, Fault>(match call.argument(place) {
            items::Argument::Nil => Bound::Unbounded,
            _ if is_within => Bound::Included(call.number(place, "a score")?),
            _ => Bound::Excluded(call.number(place, "a score")?),
        })
    };
    Ok(Span::of_scores(bound(place)?, bound(place + 2)?))
}

fn scored(member: &[u8], score: f64) -> Value {
    pair(member, Value::Number(score))
}

fn read(context: &mut Context, number: i64, call: &Call<'_>) -> Result<(), Fault> {
    let Some((tx, id)) = call.to_read(context)? else {
        match number {
            COUNT | COUNT_IN => answer_count(context, 0),
            SCORE | RANK | RANDOM => {}
            _ => Page::begin(1).answer(context),
        }
        return Ok(());
    };
    let set = SortedSet::new(id, call.key);
    match number {
        SCORE => {
            let (member, mut score) = (call.text(0, "a member")?, None);
            set.look_up(tx, [&*member], |found| score = found)?;
            context.answer.extend(score.map(items::number));
        }
        RANK => {
            let member = call.text(0, "a member")?;
            if let Some((before, _)) = set.rank(tx, &member)? {
                let rank = match direction(call, 1) {
                    Direction::Forward => before,
                    Direction::Backward => set.len(tx)?.saturating_sub(before + 1),
                };
                answer_count(context, rank);
            }
        }
        COUNT => {
            let count = set.len(tx)?;
            answer_count(context, count);
        }
        COUNT_IN => {
            let ranks = set.ranks(tx, &span(call, 0)?)?;
            answer_count(context, ranks.end - ranks.start);
        }
        RANDOM => {
            let mut found = None;
            set.draw(tx, 1, &mut random, |member, score| {
                found = Some(scored(member, score));
                ControlFlow::Break(())
            })?;
            found.into_iter().for_each(|found| context.answer_value(found));
        }
        // A page of a range, in one direction, after a given member and its score.
        _ => {
            let (direction, mut range) = (direction(call, 4), span(call, 0)?);
            let mut page = Page::begin(call.entries(5)?);
            if let Some(after) = call.argument(6).optional_text("a member")? {
                let score = call.number(7, "a score");
                range = match direction {
                    Direction::Forward => range.after(score?, &after),
                    Direction::Backward => range.before(score?, &after),
                };
            }
            set.visit(tx, &range, direction, |member, score| {
                page.push(scored(member, score), member.len())
            })?;
            page.answer(context);
        }
    }
    Ok(())
}

fn write(context: &mut Context, number: i64, call: &Call<'_>) -> Result<(), Fault> {
    let (tx, id) = call.to_write(context)?;
    let (set, limits) = (SortedSet::new(id, call.key), context.limits);
    match number {
        ADD => {
            let (member, score) = (call.text(0, "a member")?, call.number(1, "a score")?);
            let mut is_new = false;
            let updated = set.update(tx, limits.packing, [(&*member, score)], |old, offered| {
                is_new = old.is_none();
                Some(offered)
            });
            updated.map_err(Fault::half_done)?;
            answer_boolean(context, is_new);
        }
        INCREMENT => {
            let (member, by) = (call.text(0, "a member")?, call.number(1, "what is added")?);
            let mut new = by;
            let updated = set.update(tx, limits.packing, [(&*member, by)], |old, by| {
                new = old.unwrap_or(0.0) + by;
                (!new.is_nan()).then_some(new)
            });
            updated.map_err(Fault::half_done)?;
            if new.is_nan() {
                return Err(Fault::refused("the sum of these two infinities is no score"));
            }
            context.answer.push(items::number(new));
        }
        REMOVE => {
            let member = call.text(0, "a member")?;
            let removed = set.remove(tx, [&*member]).map_err(Fault::half_done)?;
            answer_boolean(context, removed > 0);
        }
        POP => {
            let mut found = None;
            let popped = set.pop(tx, direction(call, 0), 1, |member, score| {
                found = Some(scored(member, score));
                ControlFlow::Continue(())
            });
            popped.map_err(Fault::half_done)?;
            found.into_iter().for_each(|found| context.answer_value(found));
        }
        _ => {
            let ranks = set.ranks(tx, &span(call, 0)?)?;
            // Removing all of them deletes the record at once.
            if ranks != (0..set.len(tx)?) {
                check_elements(&limits, ranks.end - ranks.start)?;
            }
            let keep_on = |_: &[u8], _| ControlFlow::Continue(());
            let removed = set.remove_ranks(tx, ranks, Direction::Forward, keep_on);
            answer_count(context, removed.map_err(Fault::half_done)?);
        }
    }
    Ok(())
}
