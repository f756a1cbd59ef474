//! Sets: members, each once.

use std::ops::ControlFlow;

use tokaido_collections::{Set, intersect, subtract, unite};
use tokaido_store::{ReadError, ReadTransaction, WriteTransaction};

use super::{
    call::Call,
    command::{Command, rows},
    element_scan::{self, ElementScan},
    failure::Failure,
    random::{self, random},
    written::Written,
};

pub(super) const COMMANDS: &[Command] = rows! {
"sadd" -3 Write(sadd), KEY [FAST DENYOOM BRIEF] Set "1.0.0"
    "key member [member ...]"
    "Adds members to a set; returns how many are new.";
"scard" 2 Read(scard), KEY [FAST] Set "1.0.0"
    "key"
    "Returns the number of members of a set.";
"sdiff" -2 Read(sdiff), KEYS [] Set "1.0.0"
    "key [key ...]"
    "Returns the members of the first set that are in none of the others.";
"sdiffstore" -3 Write(sdiffstore), KEYS [DENYOOM] Set "1.0.0"
    "destination key [key ...]"
    "Stores the members of the first set that are in none of the others; returns their number.";
"sinter" -2 Read(sinter), KEYS [] Set "1.0.0"
    "key [key ...]"
    "Returns the members that are in all of the sets.";
"sintercard" -3 Read(sintercard), NO_KEY [MOVABLE_KEYS] Set "7.0.0"
    "numkeys key [key ...] [LIMIT limit]"
    "Returns the number of members that are in all of the sets.";
"sinterstore" -3 Write(sinterstore), KEYS [DENYOOM] Set "1.0.0"
    "destination key [key ...]"
    "Stores the members that are in all of the sets; returns their number.";
"sismember" 3 Read(sismember), KEY [FAST] Set "1.0.0"
    "key member"
    "Returns whether a set has a member.";
"smembers" 2 Read(smembers), KEY [] Set "1.0.0"
    "key"
    "Returns all members of a set.";
"smismember" -3 Read(smismember), KEY [FAST] Set "6.2.0"
    "key member [member ...]"
    "Returns for each of several members whether a set has it.";
"smove" 4 Write(smove), TWO_KEYS [FAST] Set "1.0.0"
    "source destination member"
    "Moves a member from one set to another.";
"spop" -2 Write(spop), KEY [FAST BRIEF] Set "1.0.0"
    "key [count]"
    "Removes and returns random members of a set.";
"srandmember" -2 Read(srandmember), KEY [] Set "1.0.0"
    "key [count]"
    "Returns random members of a set; with a negative count, members may be repeated.";
"srem" -3 Write(srem), KEY [FAST BRIEF] Set "1.0.0"
    "key member [member ...]"
    "Removes members of a set; returns how many existed. The set is deleted with its last member.";
"sscan" -3 Read(sscan), KEY [] Set "2.8.0"
    "key cursor [MATCH pattern] [COUNT count]"
    "Returns some members of a set, and the cursor to continue with.";
"sunion" -2 Read(sunion), KEYS [] Set "1.0.0"
    "key [key ...]"
    "Returns the members that are in any of the sets.";
"sunionstore" -3 Write(sunionstore), KEYS [DENYOOM] Set "1.0.0"
    "destination key [key ...]"
    "Stores the members that are in any of the sets; returns their number.";
};

/// The set named by the argument at `index`.
fn set<'c>(call: &Call<'c>, index: usize) -> Set<'c> {
    Set::new(call.database, call.arg(index))
}

fn sadd(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    let added = set(call, 1).add(tx, call.packing(), call.request.arguments().skip(1))?;
    call.reply.integer(added as i64);
    Ok(())
}

fn srem(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    let removed = set(call, 1).remove(tx, call.request.arguments().skip(1))?;
    call.reply.integer(removed as i64);
    Ok(())
}

fn scard(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    let len = set(call, 1).len(tx)?;
    call.reply.integer(len as i64);
    Ok(())
}

fn sismember(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    let member = call.arg(2);
    set(call, 1).look_up(tx, [member], |is_there| call.reply.integer(i64::from(is_there)))?;
    Ok(())
}

fn smismember(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    let members = call.request.arguments().skip(1);
    call.reply.array(call.len() - 2);
    set(call, 1).look_up(tx, members, |is_there| call.reply.integer(i64::from(is_there)))?;
    Ok(())
}

fn smembers(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    let set = set(call, 1);
    let len = set.len(tx)?;
    call.check_visit(len)?;
    call.reply.set(len as usize);
    let mut written = 0;
    set.visit(tx, |member| {
        written += 1;
        call.reply.bulk(member);
        call.reply.flow()
    })?;
    call.check_written(written, len as usize)
}

fn smove(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    let (source, target, member) = (set(call, 1), set(call, 2), call.arg(3));
    let mut is_there = false;
    if !source.is_empty(tx)? {
        target.len(tx)?;
        source.look_up(tx, [member], |found| is_there = found)?;
    }
    if is_there && call.arg(1) != call.arg(2) {
        source.remove(tx, [member])?;
        target.add(tx, call.packing(), [member])?;
    }
    call.reply.integer(i64::from(is_there));
    Ok(())
}

fn spop(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    let count = match call.len() {
        2 => None,
        3 => Some(call.positive(2)?),
        _ => return Err(Failure::Syntax),
    };
    call.check_visit(count.unwrap_or(1))?;
    let set = set(call, 1);
    let mut members = Written::begin(call.reply);
    set.pop(tx, count.unwrap_or(1), &mut random, |member| members.bulk(member))?;
    match count {
        Some(_) => members.end(|reply, len| reply.set(len)),
        None => members.end_as_one(),
    }
    Ok(())
}

fn srandmember(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    let set = set(call, 1);
    match call.len() {
        2 => {
            let mut member = Written::begin(call.reply);
            set.draw(tx, 1, &mut random, |drawn| member.bulk(drawn))?;
            member.end_as_one();
            return Ok(());
        }
        3 => {}
        _ => return Err(Failure::Syntax),
    }
    let count = random::count(call, 2)?;
    let len = set.len(tx)?;
    let times = random::check_count(call, count, len, false)?;
    let mut members = Written::begin(call.reply);
    if count >= 0 {
        set.sample(tx, times, &mut random, |member| members.bulk(member))?;
    } else {
        set.draw(tx, times, &mut random, |member| members.bulk(member))?;
    }
    members.end(|reply, len| reply.array(len));
    Ok(())
}

fn sscan(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    let cursor = ElementScan::cursor(call)?;
    let set = set(call, 1);
    if set.is_empty(tx)? {
        return element_scan::write(call, |_| Ok(0));
    }
    let scan = ElementScan::read(call)?;
    element_scan::write(call, |found| {
        set.page(tx, cursor, scan.count, |member| match scan.admits(member) {
            true => found.bulk(member),
            false => ControlFlow::Continue(()),
        })
    })
}

/// How to combine several sets.
#[derive(Clone, Copy)]
enum Operation {
    Intersection,
    Union,
    Difference,
}

impl Operation {
    fn visit(
        self,
        tx: &mut (impl ReadTransaction + ?Sized),
        sets: &[Set<'_>],
        visit: impl FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<(), ReadError> {
        match self {
            Self::Intersection => intersect(tx, sets, visit),
            Self::Union => unite(tx, sets, visit),
            Self::Difference => subtract(tx, sets, visit),
        }
    }
}

/// The sets named by the arguments from `first` up to `end`.
fn sets<'c>(call: &Call<'c>, first: usize, end: usize) -> Vec<Set<'c>> {
    (first..end).map(|index| set(call, index)).collect()
}

/// Refuses to visit sets that are large in total where others wait.
fn check_visits(
    call: &Call<'_>,
    tx: &mut dyn ReadTransaction,
    sets: &[Set<'_>],
) -> Result<(), Failure> {
    let mut sum = 0u64;
    for set in sets {
        sum = sum.saturating_add(set.len(tx)?);
    }
    call.check_visit(sum)
}

fn sinter(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    give(call, tx, Operation::Intersection)
}

fn sunion(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    give(call, tx, Operation::Union)
}

fn sdiff(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    give(call, tx, Operation::Difference)
}

fn give(
    call: &mut Call<'_>,
    tx: &mut dyn ReadTransaction,
    operation: Operation,
) -> Result<(), Failure> {
    let sets = sets(call, 1, call.len());
    check_visits(call, tx, &sets)?;
    let mut room = call.room();
    let mut members = Written::begin(call.reply);
    operation.visit(tx, &sets, |member| {
        room.take(member.len())?;
        members.bulk(member)
    })?;
    members.end(|reply, len| reply.set(len));
    call.check_room(&room)
}

fn sinterstore(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    store(call, tx, Operation::Intersection)
}

fn sunionstore(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    store(call, tx, Operation::Union)
}

fn sdiffstore(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    store(call, tx, Operation::Difference)
}

fn store(
    call: &mut Call<'_>,
    tx: &mut dyn WriteTransaction,
    operation: Operation,
) -> Result<(), Failure> {
    let (mut members, mut room) = (Vec::new(), call.room());
    operation.visit(tx, &sets(call, 2, call.len()), |member| {
        members.push(member.to_vec());
        room.take(member.len())
    })?;
    call.check_room(&room)?;
    let members = members.iter().map(Vec::as_slice);
    let count = set(call, 1).replace(tx, call.packing(), members)?;
    call.reply.integer(count as i64);
    Ok(())
}

fn sintercard(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    let keys = call.keys_after(1)?;
    if keys.end > call.len() {
        return Err(Failure::other("Number of keys can't be greater than number of args"));
    }
    let mut limit = 0;
    let mut at = keys.end;
    while at < call.len() {
        if !call.is_word(at, "LIMIT") || at + 1 == call.len() {
            return Err(Failure::Syntax);
        }
        limit = call.number(at + 1, 0, "LIMIT can't be negative")?;
        at += 2;
    }
    let sets = sets(call, keys.start, keys.end);
    check_visits(call, tx, &sets)?;
    let mut count = 0;
    intersect(tx, &sets, |_| {
        count += 1;
        if count == limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    call.reply.integer(count as i64);
    Ok(())
}
