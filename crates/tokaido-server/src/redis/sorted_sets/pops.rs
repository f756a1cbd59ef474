//! Removing members from an end: ZPOPMIN, ZPOPMAX, ZMPOP.

use std::ops::Range;

use tokaido_store::{Direction, WriteTransaction};

use super::members::{sorted_set, write_members};
use crate::redis::{
    call::Call,
    command::{Command, rows},
    failure::Failure,
    written::Written,
};

pub(in crate::redis) const COMMANDS: &[Command] = rows! {
"zmpop" -4 Write(zmpop), NO_KEY [MOVABLE_KEYS] SortedSet "7.0.0"
    "numkeys key [key ...] <MIN | MAX> [COUNT count]"
    "Removes and returns members of the first sorted set that exists.";
"zpopmax" -2 Write(zpopmax), KEY [FAST BRIEF] SortedSet "5.0.0"
    "key [count]"
    "Removes and returns the members with the highest scores.";
"zpopmin" -2 Write(zpopmin), KEY [FAST BRIEF] SortedSet "5.0.0"
    "key [count]"
    "Removes and returns the members with the lowest scores.";
};

fn zpopmin(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    pop(call, tx, Direction::Forward)
}

fn zpopmax(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    pop(call, tx, Direction::Backward)
}

fn pop(
    call: &mut Call<'_>,
    tx: &mut dyn WriteTransaction,
    direction: Direction,
) -> Result<(), Failure> {
    if call.len() > 3 {
        return Err(Failure::Syntax);
    }
    let set = sorted_set(call, 1);
    if call.len() == 3 {
        let count = call.positive(2)?;
        call.check_visit(count)?;
        write_members(call, true, |show| set.pop(tx, direction, count, show))?;
        return Ok(());
    }
    // Without a count, a single member is not a pair within an array, but the array itself.
    let mut popped = Written::begin(call.reply);
    set.pop(tx, direction, 1, |member, score| {
        popped.bulk(member)?;
        popped.element(|reply| reply.double(score))
    })?;
    popped.end(|reply, len| reply.array(len));
    Ok(())
}

fn zmpop(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    let (keys, direction, count) = keys_to_pop(call, 1)?;
    for index in keys {
        if pop_from(call, tx, index, direction, count)? {
            return Ok(());
        }
    }
    call.reply.null_array();
    Ok(())
}

/// The keys after their number, which is the argument at `index`, and the end and the number of
/// members that follow the keys.
pub(in crate::redis) fn keys_to_pop(
    call: &Call<'_>,
    index: usize,
) -> Result<(Range<usize>, Direction, u64), Failure> {
    let keys = call.keys_after(index)?;
    let direction = if call.is_word(keys.end, "MIN") {
        Direction::Forward
    } else if call.is_word(keys.end, "MAX") {
        Direction::Backward
    } else {
        return Err(Failure::Syntax);
    };
    let count = call.pop_count(keys.end + 1)?;
    Ok((keys, direction, count))
}

/// Takes members from the sorted set named by the argument at `index`, and replies with the key and
/// the members. Returns whether there were any.
pub(in crate::redis) fn pop_from(
    call: &mut Call<'_>,
    tx: &mut dyn WriteTransaction,
    index: usize,
    direction: Direction,
    count: u64,
) -> Result<bool, Failure> {
    let (key, set) = (call.arg(index), sorted_set(call, index));
    let mut popped = Written::begin(call.reply);
    let removed = set.pop(tx, direction, count, |member, score| {
        popped.element(|reply| {
            reply.array(2);
            reply.bulk(member);
            reply.double(score);
        })
    })?;
    if removed == 0 {
        return Ok(false);
    }
    popped.end(|reply, len| {
        reply.array(2);
        reply.bulk(key);
        reply.array(len);
    });
    Ok(true)
}
