//! Members and their scores: ZADD, ZINCRBY, ZREM, ZSCORE, ZRANK and related commands.

use std::ops::ControlFlow;

use tokaido_collections::SortedSet;
use tokaido_store::{ReadTransaction, WriteTransaction};
use tokaido_wire::resp::format_double;

use crate::redis::{
    call::Call,
    command::{Command, rows},
    element_scan::{self, ElementScan},
    failure::Failure,
    number::parse_double,
    random::{self, random},
    reply::Reply,
    written::Written,
};

pub(in crate::redis) const COMMANDS: &[Command] = rows! {
"zadd" -4 Write(zadd), KEY [FAST DENYOOM BRIEF] SortedSet "1.2.0"
    "key [NX | XX] [GT | LT] [CH] [INCR] score member [score member ...]"
    "Sets the scores of members; returns how many members are new.";
"zcard" 2 Read(zcard), KEY [FAST] SortedSet "1.2.0"
    "key"
    "Returns the number of members of a sorted set.";
"zincrby" 4 Write(zincrby), KEY [FAST DENYOOM BRIEF] SortedSet "1.2.0"
    "key increment member"
    "Increments the score of a member by a number; returns the new score.";
"zmscore" -3 Read(zmscore), KEY [FAST] SortedSet "6.2.0"
    "key member [member ...]"
    "Returns the scores of several members.";
"zrandmember" -2 Read(zrandmember), KEY [] SortedSet "6.2.0"
    "key [count [WITHSCORES]]"
    "Returns random members; with a negative count, members may be repeated.";
"zrank" -3 Read(zrank), KEY [FAST] SortedSet "2.0.0"
    "key member [WITHSCORE]"
    "Returns the rank of a member: the number of members before it.";
"zrem" -3 Write(zrem), KEY [FAST BRIEF] SortedSet "1.2.0"
    "key member [member ...]"
    "Removes members; returns how many existed. The sorted set is deleted with its last member.";
"zrevrank" -3 Read(zrevrank), KEY [FAST] SortedSet "2.0.0"
    "key member [WITHSCORE]"
    "Returns the reverse rank of a member: the number of members after it.";
"zscan" -3 Read(zscan), KEY [] SortedSet "2.8.0"
    "key cursor [MATCH pattern] [COUNT count]"
    "Returns some members with their scores, and the cursor to continue with.";
"zscore" 3 Read(zscore), KEY [FAST] SortedSet "1.2.0"
    "key member"
    "Returns the score of a member.";
};

/// The sorted set named by the argument at `index`.
pub(in crate::redis) fn sorted_set<'c>(call: &Call<'c>, index: usize) -> SortedSet<'c> {
    SortedSet::new(call.database, call.arg(index))
}

/// Writes a score, or null.
pub(super) fn write_score(call: &mut Call<'_>, score: Option<f64>) {
    match score {
        Some(score) => call.reply.double(score),
        None => call.reply.null(),
    }
}

/// Which members ZADD changes, and how.
#[derive(Default)]
pub(in crate::redis) struct Rules {
    pub(in crate::redis) only_new: bool,
    pub(in crate::redis) only_old: bool,
    only_greater: bool,
    only_less: bool,
    /// Whether members whose score changes are counted as well.
    pub(in crate::redis) counts_changes: bool,
    adds: bool,
}

/// The result of applying the rules.
#[derive(Default)]
struct Outcome {
    added: i64,
    changed: i64,
    /// The score of the last member, if it was set by this command.
    score: Option<f64>,
    is_nan: bool,
}

impl Rules {
    /// Reads the options. Returns the index after them.
    fn read(call: &Call<'_>) -> (Self, usize) {
        let (mut rules, mut at) = (Self::default(), 2);
        loop {
            *(if call.is_word(at, "NX") {
                &mut rules.only_new
            } else if call.is_word(at, "XX") {
                &mut rules.only_old
            } else if call.is_word(at, "GT") {
                &mut rules.only_greater
            } else if call.is_word(at, "LT") {
                &mut rules.only_less
            } else if call.is_word(at, "CH") {
                &mut rules.counts_changes
            } else if call.is_word(at, "INCR") {
                &mut rules.adds
            } else {
                return (rules, at);
            }) = true;
            at += 1;
        }
    }

    fn check(&self, pairs: usize) -> Result<(), Failure> {
        let Self { only_new, only_old, only_greater, only_less, .. } = *self;
        if only_new && only_old {
            let message = "XX and NX options at the same time are not compatible";
            return Err(Failure::other(message));
        }
        if only_new && (only_greater || only_less) || only_greater && only_less {
            let message = "GT, LT, and/or NX options at the same time are not compatible";
            return Err(Failure::other(message));
        }
        if self.adds && pairs > 1 {
            return Err(Failure::other("INCR option supports a single increment-element pair"));
        }
        Ok(())
    }

    /// The new score of a member, if it is to be set.
    fn decide(&self, old: Option<f64>, offered: f64, outcome: &mut Outcome) -> Option<f64> {
        outcome.score = None;
        let Some(old) = old else {
            if self.only_old {
                return None;
            }
            outcome.added += 1;
            outcome.score = Some(offered);
            return Some(offered);
        };
        if self.only_new {
            return None;
        }
        let score = if self.adds { old + offered } else { offered };
        if score.is_nan() {
            outcome.is_nan = true;
            return None;
        }
        if self.only_less && score >= old || self.only_greater && score <= old {
            return None;
        }
        outcome.changed += i64::from(score != old);
        outcome.score = Some(score);
        Some(score)
    }
}

fn zadd(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    let (rules, first) = Rules::read(call);
    add(call, tx, &rules, first)
}

/// As in Redis, the options of ZADD are accepted here as well.
fn zincrby(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    let (rules, first) = Rules::read(call);
    add(call, tx, &Rules { adds: true, ..rules }, first)
}

/// Sets the scores of members, which are given as arguments from `first` on.
fn add(
    call: &mut Call<'_>,
    tx: &mut dyn WriteTransaction,
    rules: &Rules,
    first: usize,
) -> Result<(), Failure> {
    let texts = call.len() - first;
    if texts == 0 || !texts.is_multiple_of(2) {
        return Err(Failure::Syntax);
    }
    rules.check(texts / 2)?;
    let mut members = Vec::new();
    for at in (first..call.len()).step_by(2) {
        let score = parse_double(call.arg(at)).ok_or(Failure::NotAFloat)?;
        members.push((call.arg(at + 1), score));
    }
    give_scores(call, tx, rules, members)
}

/// Sets scores of members of the sorted set under the first argument, and replies as ZADD does.
pub(in crate::redis) fn give_scores(
    call: &mut Call<'_>,
    tx: &mut dyn WriteTransaction,
    rules: &Rules,
    members: Vec<(&[u8], f64)>,
) -> Result<(), Failure> {
    let mut outcome = Outcome::default();
    sorted_set(call, 1).update(tx, call.packing(), members, |old, offered| {
        rules.decide(old, offered, &mut outcome)
    })?;
    if outcome.is_nan {
        return Err(Failure::other("resulting score is not a number (NaN)"));
    }
    if rules.adds {
        write_score(call, outcome.score);
    } else {
        let changed = if rules.counts_changes { outcome.changed } else { 0 };
        call.reply.integer(outcome.added + changed);
    }
    Ok(())
}

fn zrem(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    let removed = sorted_set(call, 1).remove(tx, call.request.arguments().skip(1))?;
    call.reply.integer(removed as i64);
    Ok(())
}

fn zcard(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    let len = sorted_set(call, 1).len(tx)?;
    call.reply.integer(len as i64);
    Ok(())
}

fn zscore(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    let member = call.arg(2);
    sorted_set(call, 1).look_up(tx, [member], |score| write_score(call, score))?;
    Ok(())
}

fn zmscore(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    let members = call.request.arguments().skip(1);
    call.reply.array(call.len() - 2);
    sorted_set(call, 1).look_up(tx, members, |score| write_score(call, score))?;
    Ok(())
}

fn zrank(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    write_rank(call, tx, false, "zrank")
}

fn zrevrank(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    write_rank(call, tx, true, "zrevrank")
}

fn write_rank(
    call: &mut Call<'_>,
    tx: &mut dyn ReadTransaction,
    is_reverse: bool,
    command: &str,
) -> Result<(), Failure> {
    if call.len() > 4 {
        return Err(call.wrong_arity(command));
    }
    let with_score = call.len() == 4;
    if with_score && !call.is_word(3, "WITHSCORE") {
        return Err(Failure::Syntax);
    }
    let set = sorted_set(call, 1);
    call.check_visit(set.uncounted(tx)?)?;
    let Some((rank, score)) = set.rank(tx, call.arg(2))? else {
        if with_score {
            call.reply.null_array();
        } else {
            call.reply.null();
        }
        return Ok(());
    };
    let rank = if is_reverse { set.len(tx)? - 1 - rank } else { rank };
    if with_score {
        call.reply.array(2);
    }
    call.reply.integer(rank as i64);
    if with_score {
        call.reply.double(score);
    }
    Ok(())
}

fn zrandmember(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    let set = sorted_set(call, 1);
    if call.len() == 2 {
        let mut drawn = Written::begin(call.reply);
        set.draw(tx, 1, &mut random, |member, _| drawn.bulk(member))?;
        drawn.end_as_one();
        return Ok(());
    }
    let count = random::count(call, 2)?;
    let with_scores = match call.len() {
        3 => false,
        4 if call.is_word(3, "WITHSCORES") => true,
        _ => return Err(Failure::Syntax),
    };
    let len = set.len(tx)?;
    let times = random::check_count(call, count, len, with_scores)?;
    write_members(call, with_scores, |show| match count {
        0.. => set.sample(tx, times, &mut random, show),
        _ => set.draw(tx, times, &mut random, show),
    })?;
    Ok(())
}

/// Writes a member, or a pair of a member and its score.
pub(super) fn write_member(reply: &mut dyn Reply, member: &[u8], score: Option<f64>) {
    if score.is_some() {
        reply.pair();
    }
    reply.bulk(member);
    if let Some(score) = score {
        reply.double(score);
    }
}

/// Writes the members that `visit` reports, with their scores if requested.
pub(super) fn write_members<R>(
    call: &mut Call<'_>,
    with_scores: bool,
    visit: impl FnOnce(&mut dyn FnMut(&[u8], f64) -> ControlFlow<()>) -> R,
) -> R {
    let mut members = Written::begin(call.reply);
    let visited = visit(&mut |member, score| {
        members.element(|reply| write_member(reply, member, with_scores.then_some(score)))
    });
    members.end(|reply, len| if with_scores { reply.pairs(len) } else { reply.array(len) });
    visited
}

fn zscan(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    let cursor = ElementScan::cursor(call)?;
    let set = sorted_set(call, 1);
    if set.is_empty(tx)? {
        return element_scan::write(call, |_| Ok(0));
    }
    let scan = ElementScan::read(call)?;
    element_scan::write(call, |found| {
        set.page(tx, cursor, scan.count, |member, score| {
            if !scan.admits(member) {
                return ControlFlow::Continue(());
            }
            found.bulk(member)?;
            found.bulk(format_double(score).as_bytes())
        })
    })
}
