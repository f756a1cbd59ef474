//! Ranges: ZRANGE with its older forms, ZRANGESTORE, and commands to count or remove ranges.

use std::ops::{ControlFlow, Range};

use tokaido_collections::SortedSet;
use tokaido_store::{Direction, ReadTransaction, WriteTransaction};

use super::{
    members::{sorted_set, write_members},
    range::{By, Ends},
};
use crate::redis::{
    call::{Call, check_visit},
    command::{Command, rows},
    failure::Failure,
};

pub(in crate::redis) const COMMANDS: &[Command] = rows! {
"zcount" 4 Read(zcount), KEY [FAST] SortedSet "2.0.0"
    "key min max"
    "Returns the number of members with scores between two limits; `(` before a limit excludes it.";
"zlexcount" 4 Read(zlexcount), KEY [FAST] SortedSet "2.8.9"
    "key min max"
    "Returns the number of members between two others in byte order, if all have the same score.";
"zrange" -4 Read(zrange), KEY [] SortedSet "1.2.0"
    "key start stop [BYSCORE | BYLEX] [REV] [LIMIT offset count] [WITHSCORES]"
    "Returns the members in a range of ranks, of scores or of members in byte order.";
"zrangebylex" -4 Read(zrangebylex), KEY [] SortedSet "2.8.9"
    "key min max [LIMIT offset count]"
    "Returns the members between two others in byte order, if all have the same score.";
"zrangebyscore" -4 Read(zrangebyscore), KEY [] SortedSet "1.0.5"
    "key min max [WITHSCORES] [LIMIT offset count]"
    "Returns the members with scores between two limits; `(` before a limit excludes it.";
"zrangestore" -5 Write(zrangestore), TWO_KEYS [DENYOOM] SortedSet "6.2.0"
    "destination source min max [BYSCORE | BYLEX] [REV] [LIMIT offset count]"
    "Stores the members in a range; returns their number.";
"zremrangebylex" 4 Write(zremrangebylex), KEY [] SortedSet "2.8.9"
    "key min max"
    "Removes the members between two others in byte order; returns how many were removed.";
"zremrangebyrank" 4 Write(zremrangebyrank), KEY [] SortedSet "2.0.0"
    "key start stop"
    "Removes the members in a range of ranks; returns how many were removed.";
"zremrangebyscore" 4 Write(zremrangebyscore), KEY [] SortedSet "1.2.0"
    "key min max"
    "Removes the members with scores between two limits; returns how many were removed.";
"zrevrange" -4 Read(zrevrange), KEY [] SortedSet "1.2.0"
    "key start stop [WITHSCORES]"
    "Returns the members in a range of ranks, counted from the highest score.";
"zrevrangebylex" -4 Read(zrevrangebylex), KEY [] SortedSet "2.8.9"
    "key max min [LIMIT offset count]"
    "Returns the members between two others in byte order, the last one first.";
"zrevrangebyscore" -4 Read(zrevrangebyscore), KEY [] SortedSet "2.2.0"
    "key max min [WITHSCORES] [LIMIT offset count]"
    "Returns the members with scores between two limits, the highest score first.";
};

/// What a command's name says about the range.
#[derive(Clone, Copy, Default)]
struct Form {
    by: Option<By>,
    direction: Option<Direction>,
    stores: bool,
}

/// A range of a sorted set with the options of the command.
struct Query<'c> {
    ends: Ends<'c>,
    direction: Direction,
    /// How many members of the range to skip.
    offset: i64,
    /// How many members to return after that; negative: all.
    limit: i64,
    with_scores: bool,
    /// Whether nothing else waits for the thread.
    may_take_long: bool,
}

impl<'c> Query<'c> {
    /// Parses a query from the arguments, with the ends at `first` and after it.
    fn read(call: &Call<'c>, form: Form, first: usize) -> Result<Self, Failure> {
        let Form { mut by, mut direction, stores } = form;
        let (mut offset, mut limit, mut with_scores) = (0, -1, false);
        let mut at = first + 2;
        while at < call.len() {
            if !stores && call.is_word(at, "WITHSCORES") {
                with_scores = true;
            } else if call.is_word(at, "LIMIT") && at + 2 < call.len() {
                (offset, limit) = (call.integer(at + 1)?, call.integer(at + 2)?);
                at += 2;
            } else if direction.is_none() && call.is_word(at, "REV") {
                direction = Some(Direction::Backward);
            } else if by.is_none() && call.is_word(at, "BYLEX") {
                by = Some(By::Member);
            } else if by.is_none() && call.is_word(at, "BYSCORE") {
                by = Some(By::Score);
            } else {
                return Err(Failure::Syntax);
            }
            at += 1;
        }
        let by = by.unwrap_or(By::Rank);
        if limit != -1 && by == By::Rank {
            return Err(Failure::other(
                "syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX",
            ));
        }
        if with_scores && by == By::Member {
            return Err(Failure::other(
                "syntax error, WITHSCORES not supported in combination with BYLEX",
            ));
        }
        let direction = direction.unwrap_or(Direction::Forward);
        let is_turned = direction == Direction::Backward && by != By::Rank;
        let (low, high) = if is_turned { (first + 1, first) } else { (first, first + 1) };
        let ends = Ends::read(call, by, low, high)?;
        let may_take_long = call.may_take_long;
        Ok(Self { ends, direction, offset, limit, with_scores, may_take_long })
    }

    /// Calls `visit` with each member of the range until it returns `Break`.
    fn visit(
        &self,
        tx: &mut (impl ReadTransaction + ?Sized),
        set: &SortedSet<'_>,
        visit: &mut dyn FnMut(&[u8], f64) -> ControlFlow<()>,
    ) -> Result<(), Failure> {
        /// Up to this many members are skipped one by one.
        const WALKED_MAX: u64 = 256;
        if set.is_empty(tx)? || self.offset < 0 || self.limit == 0 {
            return Ok(());
        }
        let limit = u64::try_from(self.limit).unwrap_or(u64::MAX);
        let by_ranks = matches!(self.ends, Ends::Ranks(..));
        let offset = self.offset.unsigned_abs();
        if !by_ranks
            && offset <= WALKED_MAX
            && check_visit(self.may_take_long, limit.saturating_add(offset)).is_ok()
        {
            // The ranks are not needed.
            let Some(span) = self.ends.span(tx, set)? else { return Ok(()) };
            let (mut skipped, mut left) = (offset, limit);
            set.visit(tx, &span, self.direction, |member, score| {
                if skipped > 0 {
                    skipped -= 1;
                    return ControlFlow::Continue(());
                }
                left -= 1;
                visit(member, score)?;
                if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })?;
            return Ok(());
        }
        if !by_ranks {
            check_visit(self.may_take_long, set.uncounted(tx)?)?;
        }
        let ranks = self.ends.ranks(tx, set, self.direction)?;
        let ranks = self.cut(ranks, limit);
        check_visit(self.may_take_long, ranks.end - ranks.start)?;
        if ranks.start.min(set.len(tx)?.saturating_sub(ranks.end)) > WALKED_MAX {
            check_visit(self.may_take_long, set.uncounted(tx)?)?;
        }
        set.visit_ranks(tx, ranks, self.direction, visit)?;
        Ok(())
    }

    /// The ranks without those skipped and those beyond the limit.
    fn cut(&self, ranks: Range<u64>, limit: u64) -> Range<u64> {
        let offset = self.offset.unsigned_abs().min(ranks.end - ranks.start);
        match self.direction {
            Direction::Forward => {
                let start = ranks.start + offset;
                start..ranks.end.min(start.saturating_add(limit))
            }
            Direction::Backward => {
                let end = ranks.end - offset;
                ranks.start.max(end.saturating_sub(limit))..end
            }
        }
    }
}

fn zrange(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    give(call, tx, Form::default())
}

fn zrevrange(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    give(call, tx, Form { by: Some(By::Rank), direction: Some(Direction::Backward), stores: false })
}

fn zrangebyscore(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    give(call, tx, Form { by: Some(By::Score), direction: Some(Direction::Forward), stores: false })
}

fn zrevrangebyscore(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    give(
        call,
        tx,
        Form { by: Some(By::Score), direction: Some(Direction::Backward), stores: false },
    )
}

fn zrangebylex(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    give(
        call,
        tx,
        Form { by: Some(By::Member), direction: Some(Direction::Forward), stores: false },
    )
}

fn zrevrangebylex(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    give(
        call,
        tx,
        Form { by: Some(By::Member), direction: Some(Direction::Backward), stores: false },
    )
}

fn give(call: &mut Call<'_>, tx: &mut dyn ReadTransaction, form: Form) -> Result<(), Failure> {
    let query = Query::read(call, form, 2)?;
    let set = sorted_set(call, 1);
    write_members(call, query.with_scores, |show| query.visit(tx, &set, show))
}

fn zrangestore(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    let query = Query::read(call, Form { stores: true, ..Form::default() }, 3)?;
    let (mut members, mut room) = (Vec::new(), call.room());
    query.visit(tx, &sorted_set(call, 2), &mut |member, score| {
        members.push((member.to_vec(), score));
        room.take(member.len())
    })?;
    call.check_room(&room)?;
    let members = members.iter().map(|(member, score)| (&member[..], *score));
    let count = sorted_set(call, 1).replace(tx, call.packing(), members)?;
    call.reply.integer(count as i64);
    Ok(())
}

fn zcount(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    count(call, tx, By::Score)
}

fn zlexcount(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    count(call, tx, By::Member)
}

fn count(call: &mut Call<'_>, tx: &mut dyn ReadTransaction, by: By) -> Result<(), Failure> {
    let ends = Ends::read(call, by, 2, 3)?;
    let set = sorted_set(call, 1);
    let span = ends.span(tx, &set)?;
    call.check_visit(set.uncounted(tx)?)?;
    let count = span.map_or(Ok(0), |span| set.count(tx, &span))?;
    call.reply.integer(count as i64);
    Ok(())
}

fn zremrangebyrank(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    remove(call, tx, By::Rank)
}

fn zremrangebyscore(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    remove(call, tx, By::Score)
}

fn zremrangebylex(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    remove(call, tx, By::Member)
}

fn remove(call: &mut Call<'_>, tx: &mut dyn WriteTransaction, by: By) -> Result<(), Failure> {
    let ends = Ends::read(call, by, 2, 3)?;
    let set = sorted_set(call, 1);
    let ranks = ends.ranks(tx, &set, Direction::Forward)?;
    let direction = Direction::Forward;
    let removed = set.remove_ranks(tx, ranks, direction, |_, _| ControlFlow::Continue(()))?;
    call.reply.integer(removed as i64);
    Ok(())
}
