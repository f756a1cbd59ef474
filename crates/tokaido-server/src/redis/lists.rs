//! Lists: items in the order in which they were put.

use std::ops::{ControlFlow, Range};

use tokaido_collections::{End, List};
use tokaido_store::{Direction, ReadTransaction, WriteTransaction};

use super::{
    call::Call,
    command::{Command, rows},
    failure::Failure,
    number::range_in,
    written::Written,
};

pub(super) const COMMANDS: &[Command] = rows! {
"lindex" 3 Read(lindex), KEY [] List "1.0.0"
    "key index"
    "Returns the element at an index; negative indexes count from the end.";
"linsert" 5 Write(linsert), KEY [DENYOOM] List "2.2.0"
    "key <BEFORE | AFTER> pivot element"
    "Inserts an element before or after the first one that equals the pivot.";
"llen" 2 Read(llen), KEY [FAST] List "1.0.0"
    "key"
    "Returns the number of elements of a list.";
"lmove" 5 Write(lmove), TWO_KEYS [DENYOOM] List "6.2.0"
    "source destination <LEFT | RIGHT> <LEFT | RIGHT>"
    "Moves an element from one end of a list to one end of another list, or of the same one.";
"lmpop" -4 Write(lmpop), NO_KEY [MOVABLE_KEYS] List "7.0.0"
    "numkeys key [key ...] <LEFT | RIGHT> [COUNT count]"
    "Removes and returns elements of the first list that exists.";
"lpop" -2 Write(lpop), KEY [FAST BRIEF] List "1.0.0"
    "key [count]"
    "Removes and returns the first elements of a list. The list is deleted with its last element.";
"lpos" -3 Read(lpos), KEY [] List "6.0.6"
    "key element [RANK rank] [COUNT num-matches] [MAXLEN len]"
    "Returns the index of an element that equals the given one; with COUNT, an array of such indexes.";
"lpush" -3 Write(lpush), KEY [FAST DENYOOM BRIEF] List "1.0.0"
    "key element [element ...]"
    "Inserts elements at the start of a list, one after the other; returns the length of the list.";
"lpushx" -3 Write(lpushx), KEY [FAST DENYOOM BRIEF] List "2.2.0"
    "key element [element ...]"
    "Inserts elements at the start of a list, if it exists.";
"lrange" 4 Read(lrange), KEY [] List "1.0.0"
    "key start stop"
    "Returns the elements in a range of indexes, including both ends; negative indexes count from the end.";
"lrem" 4 Write(lrem), KEY [] List "1.0.0"
    "key count element"
    "Removes elements that equal the given one: all with a count of 0, the last ones with a negative count.";
"lset" 4 Write(lset), KEY [DENYOOM] List "1.0.0"
    "key index element"
    "Replaces the element at an index.";
"ltrim" 4 Write(ltrim), KEY [] List "1.0.0"
    "key start stop"
    "Removes all elements except those in a range of indexes.";
"rpop" -2 Write(rpop), KEY [FAST BRIEF] List "1.0.0"
    "key [count]"
    "Removes and returns the last elements of a list, the last one first.";
"rpoplpush" 3 Write(rpoplpush), TWO_KEYS [DENYOOM] List "1.2.0"
    "source destination"
    "Moves the last element of a list to the start of another list, or of the same one.";
"rpush" -3 Write(rpush), KEY [FAST DENYOOM BRIEF] List "1.0.0"
    "key element [element ...]"
    "Appends elements to a list, one after the other; returns the length of the list.";
"rpushx" -3 Write(rpushx), KEY [FAST DENYOOM BRIEF] List "2.2.0"
    "key element [element ...]"
    "Appends elements to a list, if it exists.";
};

/// The list named by the argument at `index`.
fn list<'c>(call: &Call<'c>, index: usize) -> List<'c> {
    List::new(call.database, call.arg(index))
}

fn lpush(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    push(call, tx, End::Front, false)
}

fn rpush(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    push(call, tx, End::Back, false)
}

fn lpushx(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    push(call, tx, End::Front, true)
}

fn rpushx(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    push(call, tx, End::Back, true)
}

fn push(
    call: &mut Call<'_>,
    tx: &mut dyn WriteTransaction,
    end: End,
    only_if_there: bool,
) -> Result<(), Failure> {
    let list = list(call, 1);
    if only_if_there && list.is_empty(tx)? {
        call.reply.integer(0);
        return Ok(());
    }
    let len = list.push(tx, call.packing(), end, call.request.arguments().skip(1))?;
    call.reply.integer(len as i64);
    Ok(())
}

fn lpop(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    pop(call, tx, End::Front, "lpop")
}

fn rpop(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    pop(call, tx, End::Back, "rpop")
}

fn pop(
    call: &mut Call<'_>,
    tx: &mut dyn WriteTransaction,
    end: End,
    command: &str,
) -> Result<(), Failure> {
    let list = list(call, 1);
    if call.len() == 2 {
        let mut popped = Written::begin(call.reply);
        list.pop(tx, end, 1, |item| popped.bulk(item))?;
        popped.end_as_one();
        return Ok(());
    }
    if call.len() > 3 {
        return Err(call.wrong_arity(command));
    }
    let count = call.positive(2)?;
    call.check_visit(count)?;
    let mut popped = Written::begin(call.reply);
    let removed = list.pop(tx, end, count, |item| popped.bulk(item))?;
    let is_there = removed > 0 || !list.is_empty(tx)?;
    popped.end(|reply, len| if is_there { reply.array(len) } else { reply.null_array() });
    Ok(())
}

fn lmpop(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    let (keys, end, count) = keys_to_pop(call, 1)?;
    for index in keys {
        if pop_from(call, tx, index, end, count)? {
            return Ok(());
        }
    }
    call.reply.null_array();
    Ok(())
}

/// The keys after their number, which is the argument at `index`, and the end and the number of
/// items that follow the keys.
pub(super) fn keys_to_pop(
    call: &Call<'_>,
    index: usize,
) -> Result<(Range<usize>, End, u64), Failure> {
    let keys = call.keys_after(index)?;
    let end = end_at(call, keys.end)?;
    let count = call.pop_count(keys.end + 1)?;
    Ok((keys, end, count))
}

/// Takes items from the list named by the argument at `index`, and replies with the key and the
/// items. Returns whether there were any.
pub(super) fn pop_from(
    call: &mut Call<'_>,
    tx: &mut dyn WriteTransaction,
    index: usize,
    end: End,
    count: u64,
) -> Result<bool, Failure> {
    let (key, list) = (call.arg(index), list(call, index));
    let mut popped = Written::begin(call.reply);
    if list.pop(tx, end, count, |item| popped.bulk(item))? == 0 {
        return Ok(false);
    }
    popped.end(|reply, len| {
        reply.array(2);
        reply.bulk(key);
        reply.array(len);
    });
    Ok(true)
}

/// The end named by the argument at `index`.
pub(super) fn end_at(call: &Call<'_>, index: usize) -> Result<End, Failure> {
    if call.is_word(index, "LEFT") {
        Ok(End::Front)
    } else if call.is_word(index, "RIGHT") {
        Ok(End::Back)
    } else {
        Err(Failure::Syntax)
    }
}

fn lmove(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    let (from, to) = (end_at(call, 3)?, end_at(call, 4)?);
    move_item(call, tx, from, to)
}

fn rpoplpush(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    move_item(call, tx, End::Back, End::Front)
}

pub(super) fn move_item(
    call: &mut Call<'_>,
    tx: &mut dyn WriteTransaction,
    from: End,
    to: End,
) -> Result<(), Failure> {
    let (source, target) = (list(call, 1), list(call, 2));
    let len = source.len(tx)?;
    if len == 0 {
        call.reply.null();
        return Ok(());
    }
    target.len(tx)?;
    let is_same = call.arg(1) == call.arg(2);
    if is_same && len == 1 {
        // Removing the only item would delete the list, and its expiry with it.
        return write_item(call, tx, 0);
    }
    let mut item = Vec::new();
    source.pop(tx, from, 1, |popped| {
        item = popped.to_vec();
        ControlFlow::Continue(())
    })?;
    target.push(tx, call.packing(), to, [&item[..]])?;
    call.reply.bulk(&item);
    Ok(())
}

/// Writes the item at an index, or null if there is none.
fn write_item(
    call: &mut Call<'_>,
    tx: &mut (impl ReadTransaction + ?Sized),
    index: u64,
) -> Result<(), Failure> {
    let mut is_there = false;
    list(call, 1).visit(tx, index..index + 1, Direction::Forward, |_, item| {
        is_there = true;
        call.reply.bulk(item);
        ControlFlow::Break(())
    })?;
    if !is_there {
        call.reply.null();
    }
    Ok(())
}

fn llen(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    let len = list(call, 1).len(tx)?;
    call.reply.integer(len as i64);
    Ok(())
}

fn lindex(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    let len = list(call, 1).len(tx)?;
    if len == 0 {
        call.reply.null();
        return Ok(());
    }
    match index_in(len, call.integer(2)?) {
        Some(index) => write_item(call, tx, index),
        None => {
            call.reply.null();
            Ok(())
        }
    }
}

/// The index that a number stands for. Negative numbers count from the end.
fn index_in(len: u64, number: i64) -> Option<u64> {
    let index =
        if number < 0 { len.checked_sub(number.unsigned_abs())? } else { number.unsigned_abs() };
    (index < len).then_some(index)
}

fn lrange(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    let (start, stop) = (call.integer(2)?, call.integer(3)?);
    let list = list(call, 1);
    let range = range_in(list.len(tx)?, start, stop);
    let count = range.end - range.start;
    call.check_visit(count)?;
    call.reply.array(count as usize);
    let mut written = 0;
    list.visit(tx, range, Direction::Forward, |_, item| {
        written += 1;
        call.reply.bulk(item);
        call.reply.flow()
    })?;
    call.check_written(written, count as usize)
}

fn ltrim(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    let (start, stop) = (call.integer(2)?, call.integer(3)?);
    let list = list(call, 1);
    let len = list.len(tx)?;
    let range = range_in(len, start, stop);
    if range != (0..len) {
        list.trim(tx, range)?;
    }
    call.reply.ok();
    Ok(())
}

fn lset(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    let list = list(call, 1);
    let len = list.len(tx)?;
    if len == 0 {
        return Err(Failure::NoSuchKey);
    }
    let index = index_in(len, call.integer(2)?);
    let index = index.ok_or_else(|| Failure::other("index out of range"))?;
    list.set(tx, call.packing(), index, call.arg(3))?;
    call.reply.ok();
    Ok(())
}

fn linsert(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    let behind = if call.is_word(2, "AFTER") {
        1
    } else if call.is_word(2, "BEFORE") {
        0
    } else {
        return Err(Failure::Syntax);
    };
    let (list, pivot) = (list(call, 1), call.arg(3));
    let len = list.len(tx)?;
    let mut found = None;
    list.visit(tx, 0..len, Direction::Forward, |index, item| {
        if item == pivot {
            found = Some(index);
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    })?;
    let reply = match found {
        Some(index) => list.insert(tx, call.packing(), index + behind, call.arg(4))? as i64,
        None if len == 0 => 0,
        None => -1,
    };
    call.reply.integer(reply);
    Ok(())
}

fn lrem(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    let (count, element) = (call.integer(2)?, call.arg(3));
    let list = list(call, 1);
    let len = list.len(tx)?;
    let most = if count == 0 { u64::MAX } else { count.unsigned_abs() };
    let direction = if count < 0 { Direction::Backward } else { Direction::Forward };
    let mut found = Vec::new();
    list.visit(tx, 0..len, direction, |index, item| {
        if item == element {
            found.push(index);
        }
        if found.len() as u64 == most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    found.sort_unstable();
    list.remove(tx, &found)?;
    call.reply.integer(found.len() as i64);
    Ok(())
}

/// The options of LPOS.
struct Search {
    /// How many matches to skip first.
    skipped: u64,
    direction: Direction,
    /// How many matches to return; if `None`, one, which is not returned as an array.
    count: Option<u64>,
    /// Maximum number of items to look at.
    looked_at_max: u64,
}

impl Search {
    fn read(call: &Call<'_>) -> Result<Self, Failure> {
        let direction = Direction::Forward;
        let mut search = Self { skipped: 0, direction, count: None, looked_at_max: 0 };
        for at in (3..call.len()).step_by(2) {
            if at + 1 == call.len() {
                return Err(Failure::Syntax);
            }
            search.read_option(call, at)?;
        }
        if search.looked_at_max == 0 {
            search.looked_at_max = u64::MAX;
        }
        Ok(search)
    }

    fn read_option(&mut self, call: &Call<'_>, at: usize) -> Result<(), Failure> {
        if call.is_word(at, "RANK") {
            let rank = call.integer(at + 1)?;
            if rank == 0 {
                return Err(Failure::other(
                    "RANK can't be zero: use 1 to start from the first match, 2 from the second \
                     ... or use negative to start from the end of the list",
                ));
            }
            if rank == i64::MIN {
                return Err(Failure::OutOfRange);
            }
            self.skipped = rank.unsigned_abs() - 1;
            self.direction = if rank < 0 { Direction::Backward } else { Direction::Forward };
        } else if call.is_word(at, "COUNT") {
            self.count = Some(call.number(at + 1, 0, "COUNT can't be negative")?);
        } else if call.is_word(at, "MAXLEN") {
            self.looked_at_max = call.number(at + 1, 0, "MAXLEN can't be negative")?;
        } else {
            return Err(Failure::Syntax);
        }
        Ok(())
    }
}

fn lpos(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    let mut search = Search::read(call)?;
    let (list, element) = (list(call, 1), call.arg(2));
    let len = list.len(tx)?;
    call.check_visit(len.min(search.looked_at_max))?;
    let most = match search.count {
        None => 1,
        Some(0) => u64::MAX,
        Some(count) => count,
    };
    let range = match search.direction {
        Direction::Forward => 0..len.min(search.looked_at_max),
        Direction::Backward => len.saturating_sub(search.looked_at_max)..len,
    };
    let (mut found, mut left) = (Written::begin(call.reply), most);
    list.visit(tx, range, search.direction, |index, item| {
        if item != element {
            return ControlFlow::Continue(());
        }
        if search.skipped > 0 {
            search.skipped -= 1;
            return ControlFlow::Continue(());
        }
        left -= 1;
        found.element(|reply| reply.integer(index as i64))?;
        if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    match search.count {
        Some(_) => found.end(|reply, len| reply.array(len)),
        None => found.end_as_one(),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_mean_indexes_from_either_end() {
        assert_eq!([0, 2, -1, -3].map(|n| index_in(3, n)), [Some(0), Some(2), Some(2), Some(0)]);
        assert_eq!([3, -4, i64::MIN, i64::MAX].map(|n| index_in(3, n)), [None; 4]);
    }
}
