//! Calls on sorted sets. Ranks begin with 1.

use std::ops::{Bound, ControlFlow, Range};

use tokaido_collections::{SortedSet, Span, count_requested};
use tokaido_store::{Direction, ReadError, ReadTransaction};

use super::shared::{Filling, check_elements, random, to_read, to_write};
use crate::bridge::{
    context::{Context, Fault, NO, YES},
    write::answer,
};

/// The bits of a plan; `lua/sorted_set.lua` has the same.
const BACKWARD: i32 = 1;
const LOW_GIVEN: i32 = 2;
const LOW_INCLUDED: i32 = 4;
const HIGH_GIVEN: i32 = 8;
const HIGH_INCLUDED: i32 = 16;

fn direction_of(plan: i32) -> Direction {
    if plan & BACKWARD == 0 { Direction::Forward } else { Direction::Backward }
}

/// The two bounds that a plan makes of the given values.
fn bounds<B>(plan: i32, low: B, high: B) -> (Bound<B>, Bound<B>) {
    let bound = |value, given, included| match (plan & given, plan & included) {
        (0, _) => Bound::Unbounded,
        (_, 0) => Bound::Excluded(value),
        _ => Bound::Included(value),
    };
    (bound(low, LOW_GIVEN, LOW_INCLUDED), bound(high, HIGH_GIVEN, HIGH_INCLUDED))
}

fn span_of(plan: i32, low: f64, high: f64) -> Span {
    let (low, high) = bounds(plan, low, high);
    Span::of_scores(low, high)
}

/// Counts members of the sorted set, if there are many uncounted ones, earlier calls have asked for it, and the
/// transaction may write. A server would do this between transactions, but a script may have no server.
fn count_members(context: &mut Context, index: i32, key: &[u8]) -> Result<(), Fault> {
    /// Fewer uncounted members take no longer than counted ones.
    const UNCOUNTED_MAX: u64 = 256;
    /// How many members one call counts at most.
    const COUNTED_MAX: usize = 10_000;
    let Some((tx, id)) = to_read(context, index)? else { return Ok(()) };
    if SortedSet::new(id, key).uncounted(tx)? > UNCOUNTED_MAX
        && let Ok(tx) = context.write()
    {
        count_requested(tx, COUNTED_MAX).map_err(Fault::half_done)?;
    }
    Ok(())
}

/// The ranks of a span, without the first `skipped` in the plan's direction, and with at most
/// `limit` of the rest.
fn ranks_of(
    tx: &mut (impl ReadTransaction + ?Sized),
    set: &SortedSet<'_>,
    span: &Span,
    direction: Direction,
    skipped: f64,
    limit: f64,
) -> Result<Range<u64>, ReadError> {
    let Range { start, end } = set.ranks(tx, span)?;
    // Both are integers from 0 up; a double beyond 64 bits is more than there are.
    let (skipped, limit) = (skipped as u64, limit as u64);
    Ok(match direction {
        Direction::Forward => {
            let start = start.saturating_add(skipped).min(end);
            start..start.saturating_add(limit).min(end)
        }
        Direction::Backward => {
            let end = end.saturating_sub(skipped).max(start);
            end.saturating_sub(limit).max(start)..end
        }
    })
}

/// The number of members, as the reply's number.
pub(crate) fn sorted_count(context: &mut Context, index: i32, key: &[u8]) -> Result<i32, Fault> {
    context.reply.number = match to_read(context, index)? {
        Some((tx, id)) => SortedSet::new(id, key).len(tx)? as f64,
        None => 0.0,
    };
    Ok(YES)
}

/// The number of members of a range, as the reply's number.
pub(crate) fn sorted_count_in(
    context: &mut Context,
    index: i32,
    key: &[u8],
    plan: i32,
    low: f64,
    high: f64,
) -> Result<i32, Fault> {
    count_members(context, index, key)?;
    context.reply.number = match to_read(context, index)? {
        Some((tx, id)) => SortedSet::new(id, key).count(tx, &span_of(plan, low, high))? as f64,
        None => 0.0,
    };
    Ok(YES)
}

/// The score of a member, as the reply's number.
pub(crate) fn sorted_score(
    context: &mut Context,
    index: i32,
    key: &[u8],
    member: &[u8],
) -> Result<i32, Fault> {
    let Some((tx, id)) = to_read(context, index)? else { return Ok(NO) };
    let mut score = None;
    SortedSet::new(id, key).look_up(tx, [member], |found| score = found)?;
    context.reply.number = score.unwrap_or(0.0);
    Ok(answer(score.is_some()))
}

/// The rank of a member, as the reply's flags: counted from the lowest score or, if `plan` says backward,
/// from the highest one. Its score is the reply's number.
pub(crate) fn sorted_rank(
    context: &mut Context,
    index: i32,
    key: &[u8],
    member: &[u8],
    plan: i32,
) -> Result<i32, Fault> {
    count_members(context, index, key)?;
    let Some((tx, id)) = to_read(context, index)? else { return Ok(NO) };
    let set = SortedSet::new(id, key);
    let Some((before, score)) = set.rank(tx, member)? else { return Ok(NO) };
    let rank = match direction_of(plan) {
        Direction::Forward => before + 1,
        Direction::Backward => set.len(tx)?.saturating_sub(before),
    };
    (context.reply.flags, context.reply.number) = (rank as f64, score);
    Ok(YES)
}

/// Gives a member a score; tells whether it is new.
pub(crate) fn sorted_add(
    context: &mut Context,
    index: i32,
    key: &[u8],
    member: &[u8],
    score: f64,
) -> Result<i32, Fault> {
    let (tx, id) = to_write(context, index)?;
    let (set, mut is_new) = (SortedSet::new(id, key), false);
    let updated = set.update(tx, context.limits.packing, [(member, score)], |old, offered| {
        is_new = old.is_none();
        Some(offered)
    });
    updated.map_err(Fault::half_done)?;
    Ok(answer(is_new))
}

/// Adds to the score of a member, which starts at 0 if it is new; the new score is the reply's
/// number.
pub(crate) fn sorted_increment(
    context: &mut Context,
    index: i32,
    key: &[u8],
    member: &[u8],
    by: f64,
) -> Result<i32, Fault> {
    let (tx, id) = to_write(context, index)?;
    let (set, mut new) = (SortedSet::new(id, key), by);
    let updated = set.update(tx, context.limits.packing, [(member, by)], |old, by| {
        new = old.unwrap_or(0.0) + by;
        (!new.is_nan()).then_some(new)
    });
    updated.map_err(Fault::half_done)?;
    if new.is_nan() {
        return Err(Fault::Refused("the sum of these two infinities is no score".to_owned()));
    }
    context.reply.number = new;
    Ok(YES)
}

/// Removes a member; tells whether there was one.
pub(crate) fn sorted_remove(
    context: &mut Context,
    index: i32,
    key: &[u8],
    member: &[u8],
) -> Result<i32, Fault> {
    let (tx, id) = to_write(context, index)?;
    let removed = SortedSet::new(id, key).remove(tx, [member]).map_err(Fault::half_done)?;
    Ok(answer(removed > 0))
}

/// Removes the members of a range, as [`sorted_page`] shows them; the reply's number is how many
/// there were.
#[allow(clippy::too_many_arguments)]
pub(crate) fn sorted_remove_in(
    context: &mut Context,
    index: i32,
    key: &[u8],
    plan: i32,
    low: f64,
    high: f64,
    skipped: f64,
    limit: f64,
) -> Result<i32, Fault> {
    let (tx, id) = to_write(context, index)?;
    let (set, direction) = (SortedSet::new(id, key), direction_of(plan));
    let ranks = ranks_of(tx, &set, &span_of(plan, low, high), direction, skipped, limit)?;
    // If all are removed, they go at once, with the record.
    if ranks != (0..set.len(tx)?) {
        check_elements(&context.limits, ranks.end - ranks.start)?;
    }
    let keep_on = |_: &[u8], _| ControlFlow::Continue(());
    let removed = set.remove_ranks(tx, ranks, direction, keep_on).map_err(Fault::half_done)?;
    context.reply.number = removed as f64;
    Ok(YES)
}

/// Takes out the member with the lowest score or, if `plan` says backward, the highest one: the
/// reply's data, and its score the reply's number.
pub(crate) fn sorted_pop(
    context: &mut Context,
    index: i32,
    key: &[u8],
    plan: i32,
) -> Result<i32, Fault> {
    let (tx, id) = to_write(context, index)?;
    let (member, number) = (&mut context.scratch, &mut context.reply.number);
    let popped = SortedSet::new(id, key).pop(tx, direction_of(plan), 1, |popped, score| {
        member.clear();
        member.extend_from_slice(popped);
        *number = score;
        ControlFlow::Continue(())
    });
    let popped = popped.map_err(Fault::half_done)?;
    context.reply.data(&context.scratch);
    Ok(answer(popped > 0))
}

/// A random member, as the reply's data, and its score as the reply's number.
pub(crate) fn sorted_random(context: &mut Context, index: i32, key: &[u8]) -> Result<i32, Fault> {
    let Some((tx, id)) = to_read(context, index)? else { return Ok(NO) };
    let (member, number, mut is_there) = (&mut context.scratch, &mut context.reply.number, false);
    SortedSet::new(id, key).draw(tx, 1, &mut random, |drawn, score| {
        is_there = true;
        member.clear();
        member.extend_from_slice(drawn);
        *number = score;
        ControlFlow::Break(())
    })?;
    context.reply.data(&context.scratch);
    Ok(answer(is_there))
}

/// Loads up to `entries` members of a range with their scores, in the plan's direction: those after the
/// member `after`, whose score is `place`, or, without one, after the first `place` members. The code is
/// `NO` if there are no more.
#[allow(clippy::too_many_arguments)]
pub(crate) fn sorted_page(
    context: &mut Context,
    index: i32,
    key: &[u8],
    plan: i32,
    low: f64,
    high: f64,
    after: Option<&[u8]>,
    place: f64,
    entries: i32,
) -> Result<i32, Fault> {
    if after.is_none() && place > 0.0 {
        count_members(context, index, key)?;
    }
    let target = to_read(context, index)?;
    let page = Filling::begin(&mut context.page, entries);
    let Some((tx, id)) = target else { return Ok(NO) };
    let (set, span, direction) =
        (SortedSet::new(id, key), span_of(plan, low, high), direction_of(plan));
    let Some(after) = after else {
        if place > 0.0 {
            let ranks = ranks_of(tx, &set, &span, direction, place, f64::INFINITY)?;
            return fill(page, |push| set.visit_ranks(tx, ranks, direction, push));
        }
        return fill(page, |push| set.visit(tx, &span, direction, push));
    };
    let rest = rest_of(span, direction, place, after);
    fill(page, |push| set.visit(tx, &rest, direction, push))
}

/// As [`sorted_page`], for the members between two others, all of which have the same score.
#[allow(clippy::too_many_arguments)]
pub(crate) fn sorted_page_of_members(
    context: &mut Context,
    index: i32,
    key: &[u8],
    plan: i32,
    low: &[u8],
    high: &[u8],
    after: Option<&[u8]>,
    place: f64,
    entries: i32,
) -> Result<i32, Fault> {
    let target = to_read(context, index)?;
    let page = Filling::begin(&mut context.page, entries);
    let Some((tx, id)) = target else { return Ok(NO) };
    let (set, direction, mut score) = (SortedSet::new(id, key), direction_of(plan), None);
    set.visit_ranks(tx, 0..1, Direction::Forward, |_, first| {
        score = Some(first);
        ControlFlow::Break(())
    })?;
    let Some(score) = score else { return Ok(NO) };
    let (low, high) = bounds(plan, low, high);
    let mut span = Span::of_members(score, low, high);
    if let Some(after) = after {
        span = rest_of(span, direction, place, after);
    }
    fill(page, |push| set.visit(tx, &span, direction, push))
}

/// The rest of a span after a member with a given score.
fn rest_of(span: Span, direction: Direction, score: f64, member: &[u8]) -> Span {
    match direction {
        Direction::Forward => span.after(score, member),
        Direction::Backward => span.before(score, member),
    }
}

/// Fills a page with what `visit` passes. The code is `NO` if that was all.
fn fill(
    mut page: Filling<'_>,
    visit: impl FnOnce(&mut dyn FnMut(&[u8], f64) -> ControlFlow<()>) -> Result<(), ReadError>,
) -> Result<i32, Fault> {
    let mut flow = ControlFlow::Continue(());
    visit(&mut |member, score| {
        flow = page.push_scored(member, score);
        flow
    })?;
    Ok(answer(flow.is_break()))
}
