//! Command table rows, and parsing arguments into a [`Plan`].

use tokaido_collections::End;
use tokaido_store::Direction;

use super::plan::{Plan, Take, timeout_at};
use crate::redis::{
    call::Call,
    command::{Command, rows},
    failure::Failure,
    lists, sorted_sets,
};

pub(in crate::redis) const COMMANDS: &[Command] = rows! {
"blmove" 6 Blocking(blmove), TWO_KEYS [DENYOOM] List "6.2.0"
    "source destination <LEFT | RIGHT> <LEFT | RIGHT> timeout"
    "Moves an element as LMOVE does, and waits for one if there is none.";
"blmpop" -5 Blocking(blmpop), NO_KEY [MOVABLE_KEYS] List "7.0.0"
    "timeout numkeys key [key ...] <LEFT | RIGHT> [COUNT count]"
    "Removes and returns elements as LMPOP does, and waits for one if there are none.";
"blpop" -3 Blocking(blpop), KEYS_BUT_LAST [] List "2.0.0"
    "key [key ...] timeout"
    "Removes and returns the first element of the first list that exists, and waits for one if none does.";
"brpop" -3 Blocking(brpop), KEYS_BUT_LAST [] List "2.0.0"
    "key [key ...] timeout"
    "Removes and returns the last element of the first list that exists, and waits for one if none does.";
"brpoplpush" 4 Blocking(brpoplpush), TWO_KEYS [DENYOOM] List "2.2.0"
    "source destination timeout"
    "Moves an element as RPOPLPUSH does, and waits for one if there is none.";
"bzmpop" -5 Blocking(bzmpop), NO_KEY [MOVABLE_KEYS] SortedSet "7.0.0"
    "timeout numkeys key [key ...] <MIN | MAX> [COUNT count]"
    "Removes and returns members as ZMPOP does, and waits for one if there are none.";
"bzpopmax" -3 Blocking(bzpopmax), KEYS_BUT_LAST [FAST] SortedSet "5.0.0"
    "key [key ...] timeout"
    "Removes and returns the member with the highest score of the first sorted set that exists; waits if none does.";
"bzpopmin" -3 Blocking(bzpopmin), KEYS_BUT_LAST [FAST] SortedSet "5.0.0"
    "key [key ...] timeout"
    "Removes and returns the member with the lowest score of the first sorted set that exists; waits if none does.";
};

fn blpop(call: &Call<'_>) -> Result<Plan, Failure> {
    all_but_last(call, Take::Item(End::Front))
}

fn brpop(call: &Call<'_>) -> Result<Plan, Failure> {
    all_but_last(call, Take::Item(End::Back))
}

fn bzpopmin(call: &Call<'_>) -> Result<Plan, Failure> {
    all_but_last(call, Take::Member(Direction::Forward))
}

fn bzpopmax(call: &Call<'_>) -> Result<Plan, Failure> {
    all_but_last(call, Take::Member(Direction::Backward))
}

fn all_but_last(call: &Call<'_>, take: Take) -> Result<Plan, Failure> {
    let last = call.len() - 1;
    Ok(Plan { keys: 1..last, take, timeout: timeout_at(call, last)? })
}

fn blmove(call: &Call<'_>) -> Result<Plan, Failure> {
    let (from, to) = (lists::end_at(call, 3)?, lists::end_at(call, 4)?);
    Ok(Plan { keys: 1..2, take: Take::Moved { from, to }, timeout: timeout_at(call, 5)? })
}

fn brpoplpush(call: &Call<'_>) -> Result<Plan, Failure> {
    let take = Take::Moved { from: End::Back, to: End::Front };
    Ok(Plan { keys: 1..2, take, timeout: timeout_at(call, 3)? })
}

fn blmpop(call: &Call<'_>) -> Result<Plan, Failure> {
    let (keys, end, count) = lists::keys_to_pop(call, 2)?;
    Ok(Plan { keys, take: Take::Items(end, count), timeout: timeout_at(call, 1)? })
}

fn bzmpop(call: &Call<'_>) -> Result<Plan, Failure> {
    let (keys, direction, count) = sorted_sets::keys_to_pop(call, 2)?;
    Ok(Plan { keys, take: Take::Members(direction, count), timeout: timeout_at(call, 1)? })
}
