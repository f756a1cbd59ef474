//! Members taken from an end: ZPOPMIN, ZPOPMAX, ZMPOP.

use tokaido_store::{Direction, WriteTransaction, collections::SortedSet};

use super::members::{sorted_set, write_members};
use crate::redis::{
    call::Call,
    command::{Command, rows},
    failure::Failure,
};

pub(in crate::redis) const COMMANDS: &[Command] = rows! {
"zmpop" -4 Write(zmpop), NO_KEY [MOVABLE_KEYS] SortedSet "7.0.0"
    "numkeys key [key ...] <MIN | MAX> [COUNT count]"
    "Removes and gives members of the first of the sorted sets that is there.";
"zpopmax" -2 Write(zpopmax), KEY [FAST] SortedSet "5.0.0"
    "key [count]"
    "Removes and gives the members of the highest scores.";
"zpopmin" -2 Write(zpopmin), KEY [FAST] SortedSet "5.0.0"
    "key [count]"
    "Removes and gives the members of the lowest scores.";
};

fn zpopmin(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    pop(call, tx, Direction::Forward)
}

fn zpopmax(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    pop(call, tx, Direction::Backward)
}

/// Takes so many members, from the end that the direction begins at.
fn take(
    tx: &mut dyn WriteTransaction,
    set: &SortedSet<'_>,
    direction: Direction,
    count: u64,
) -> Result<Vec<(Vec<u8>, f64)>, Failure> {
    let len = set.len(tx)?;
    let count = count.min(len);
    if count == 0 {
        return Ok(Vec::new());
    }
    let ranks = match direction {
        Direction::Forward => 0..count,
        Direction::Backward => len - count..len,
    };
    Ok(set.remove_ranks(tx, ranks, direction)?)
}

fn pop(
    call: &mut Call<'_>,
    tx: &mut dyn WriteTransaction,
    direction: Direction,
) -> Result<(), Failure> {
    if call.len() > 3 {
        return Err(Failure::Syntax);
    }
    let count = match call.len() {
        2 => None,
        _ => Some(call.positive(2)?),
    };
    let members = take(tx, &sorted_set(call, 1), direction, count.unwrap_or(1))?;
    if count.is_some() {
        write_members(call, &members, true);
        return Ok(());
    }
    // One member without a count is no pair within an array, but the array itself.
    call.reply.array(2 * members.len());
    for (member, score) in &members {
        call.reply.bulk(member);
        call.reply.double(*score);
    }
    Ok(())
}

fn zmpop(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    let keys = 2..call.key_count(1)?.saturating_add(2);
    let direction = if call.is_word(keys.end, "MIN") {
        Direction::Forward
    } else if call.is_word(keys.end, "MAX") {
        Direction::Backward
    } else {
        return Err(Failure::Syntax);
    };
    let count = match call.len() - keys.end {
        1 => 1,
        3 if call.is_word(keys.end + 1, "COUNT") => {
            let count = call.integer(keys.end + 2).ok().filter(|&count| count > 0);
            count.ok_or_else(|| Failure::other("count should be greater than 0"))? as u64
        }
        _ => return Err(Failure::Syntax),
    };
    for index in keys {
        let members = take(tx, &sorted_set(call, index), direction, count)?;
        if !members.is_empty() {
            call.reply.array(2);
            call.reply.bulk(call.arg(index));
            call.reply.array(members.len());
            for (member, score) in &members {
                call.reply.array(2);
                call.reply.bulk(member);
                call.reply.double(*score);
            }
            return Ok(());
        }
    }
    call.reply.null_array();
    Ok(())
}
