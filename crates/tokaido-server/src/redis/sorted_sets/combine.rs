//! Combining several sorted sets or sets: ZUNION, ZINTER, ZDIFF, and the commands that store or count these.

use std::{collections::HashMap, ops::ControlFlow};

use tokaido_collections::{Set, SortedSet, Span};
use tokaido_store::{Direction, Kind, ReadError, ReadTransaction, WriteTransaction};

use super::members::{sorted_set, write_members};
use crate::redis::{
    call::{Call, Room},
    command::{Command, rows},
    failure::Failure,
    number::parse_double,
};

pub(in crate::redis) const COMMANDS: &[Command] = rows! {
"zdiff" -3 Read(zdiff), NO_KEY [MOVABLE_KEYS] SortedSet "6.2.0"
    "numkeys key [key ...] [WITHSCORES]"
    "Returns the members of the first sorted set that are in none of the others.";
"zdiffstore" -4 Write(zdiffstore), KEY [DENYOOM MOVABLE_KEYS] SortedSet "6.2.0"
    "destination numkeys key [key ...]"
    "Stores the members of the first sorted set that are in none of the others; returns their number.";
"zinter" -3 Read(zinter), NO_KEY [MOVABLE_KEYS] SortedSet "6.2.0"
    "numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE <SUM | MIN | MAX>] [WITHSCORES]"
    "Returns the members that are in all of the sorted sets.";
"zintercard" -3 Read(zintercard), NO_KEY [MOVABLE_KEYS] SortedSet "7.0.0"
    "numkeys key [key ...] [LIMIT limit]"
    "Returns the number of members that are in all of the sorted sets.";
"zinterstore" -4 Write(zinterstore), KEY [DENYOOM MOVABLE_KEYS] SortedSet "2.0.0"
    "destination numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE <SUM | MIN | MAX>]"
    "Stores the members that are in all of the sorted sets; returns their number.";
"zunion" -3 Read(zunion), NO_KEY [MOVABLE_KEYS] SortedSet "6.2.0"
    "numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE <SUM | MIN | MAX>] [WITHSCORES]"
    "Returns the members that are in any of the sorted sets.";
"zunionstore" -4 Write(zunionstore), KEY [DENYOOM MOVABLE_KEYS] SortedSet "2.0.0"
    "destination numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE <SUM | MIN | MAX>]"
    "Stores the members that are in any of the sorted sets; returns their number.";
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Union,
    Intersection,
    Difference,
}

/// What to do with the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Give,
    Count,
    Store,
}

/// How to merge two scores of one member.
#[derive(Clone, Copy)]
enum Aggregate {
    Sum,
    Min,
    Max,
}

impl Aggregate {
    /// Merges two scores. Opposite infinities add up to zero.
    fn join(self, a: f64, b: f64) -> f64 {
        match self {
            Self::Sum => number_or_zero(a + b),
            Self::Min => a.min(b),
            Self::Max => a.max(b),
        }
    }
}

fn number_or_zero(number: f64) -> f64 {
    if number.is_nan() { 0.0 } else { number }
}

/// One of the sets to combine, and the factor for its scores.
#[derive(Clone, Copy)]
struct Source<'c> {
    elements: Elements<'c>,
    weight: f64,
    len: u64,
}

#[derive(Clone, Copy)]
enum Elements<'c> {
    Sorted(SortedSet<'c>),
    /// Each member has score 1.
    Plain(Set<'c>),
}

impl<'c> Source<'c> {
    fn open(
        call: &Call<'c>,
        tx: &mut (impl ReadTransaction + ?Sized),
        index: usize,
    ) -> Result<Self, Failure> {
        let (database, key) = (call.database, call.arg(index));
        let kind = tx.get(database, key)?.map(|record| record.kind);
        let (elements, len) = match kind {
            Some(Kind::Set) => {
                let set = Set::new(database, key);
                (Elements::Plain(set), set.len(tx)?)
            }
            _ => {
                let set = SortedSet::new(database, key);
                (Elements::Sorted(set), set.len(tx)?)
            }
        };
        Ok(Self { elements, weight: 1.0, len })
    }

    fn weigh(&self, score: f64) -> f64 {
        number_or_zero(self.weight * score)
    }

    fn visit(
        &self,
        tx: &mut (impl ReadTransaction + ?Sized),
        mut visit: impl FnMut(&[u8], f64) -> ControlFlow<()>,
    ) -> Result<(), ReadError> {
        match self.elements {
            Elements::Sorted(set) => set.visit(tx, &Span::all(), Direction::Forward, visit),
            Elements::Plain(set) => set.visit(tx, |member| visit(member, 1.0)),
        }
    }

    /// Like [`SortedSet::page`].
    fn page(
        &self,
        tx: &mut (impl ReadTransaction + ?Sized),
        cursor: u64,
        count: usize,
        mut visit: impl FnMut(&[u8], f64) -> ControlFlow<()>,
    ) -> Result<u64, ReadError> {
        match self.elements {
            Elements::Sorted(set) => set.page(tx, cursor, count, visit),
            Elements::Plain(set) => set.page(tx, cursor, count, |member| visit(member, 1.0)),
        }
    }

    /// The scores of members, in the same order.
    fn scores(
        &self,
        tx: &mut (impl ReadTransaction + ?Sized),
        members: &[(Vec<u8>, f64)],
    ) -> Result<Vec<Option<f64>>, ReadError> {
        let (names, mut scores) = (members.iter().map(|(member, _)| &member[..]), Vec::new());
        match self.elements {
            Elements::Sorted(set) => set.look_up(tx, names, |score| scores.push(score))?,
            Elements::Plain(set) => {
                set.look_up(tx, names, |is_there| scores.push(is_there.then_some(1.0)))?;
            }
        }
        Ok(scores)
    }
}

/// A command, parsed from its arguments.
struct Query<'c> {
    operation: Operation,
    sources: Vec<Source<'c>>,
    aggregate: Aggregate,
    with_scores: bool,
    /// Maximum number of members to count.
    limit: usize,
}

impl<'c> Query<'c> {
    /// Parses a command, and checks that all keys hold values that can be combined.
    fn read(
        call: &Call<'c>,
        tx: &mut (impl ReadTransaction + ?Sized),
        operation: Operation,
        purpose: Purpose,
        command: &str,
    ) -> Result<Self, Failure> {
        let first = if purpose == Purpose::Store { 2 } else { 1 };
        let count = call.integer(first)?;
        if count < 1 {
            let message = format!("at least 1 input key is needed for '{command}' command");
            return Err(Failure::other(message));
        }
        let room = call.len() - (first + 1);
        let count = usize::try_from(count).ok().filter(|&count| count <= room);
        let end = first + 1 + count.ok_or(Failure::Syntax)?;
        let sources = (first + 1..end).map(|index| Source::open(call, tx, index));
        let sources = sources.collect::<Result<_, _>>()?;
        let aggregate = Aggregate::Sum;
        let mut query = Self { operation, sources, aggregate, with_scores: false, limit: 0 };
        let mut at = end;
        while at < call.len() {
            at += query.read_option(call, purpose, at)?;
        }
        Ok(query)
    }

    /// Parses one option. Returns the number of arguments read.
    fn read_option(
        &mut self,
        call: &Call<'_>,
        purpose: Purpose,
        at: usize,
    ) -> Result<usize, Failure> {
        let left = call.len() - at;
        let is_weighed = self.operation != Operation::Difference && purpose != Purpose::Count;
        if is_weighed && left > self.sources.len() && call.is_word(at, "WEIGHTS") {
            for (i, source) in self.sources.iter_mut().enumerate() {
                let weight = parse_double(call.arg(at + 1 + i));
                let not_a_float = || Failure::other("weight value is not a float");
                source.weight = weight.ok_or_else(not_a_float)?;
            }
            return Ok(1 + self.sources.len());
        }
        if is_weighed && left >= 2 && call.is_word(at, "AGGREGATE") {
            self.aggregate = if call.is_word(at + 1, "SUM") {
                Aggregate::Sum
            } else if call.is_word(at + 1, "MIN") {
                Aggregate::Min
            } else if call.is_word(at + 1, "MAX") {
                Aggregate::Max
            } else {
                return Err(Failure::Syntax);
            };
            return Ok(2);
        }
        if purpose == Purpose::Give && call.is_word(at, "WITHSCORES") {
            self.with_scores = true;
            return Ok(1);
        }
        if purpose == Purpose::Count && left >= 2 && call.is_word(at, "LIMIT") {
            self.limit = call.number(at + 1, 0, "LIMIT can't be negative")? as usize;
            return Ok(2);
        }
        Err(Failure::Syntax)
    }

    /// The members of the result with their scores, in order.
    fn run(
        &self,
        call: &Call<'_>,
        tx: &mut (impl ReadTransaction + ?Sized),
    ) -> Result<Vec<(Vec<u8>, f64)>, Failure> {
        call.check_visit(self.sources.iter().fold(0, |sum: u64, s| sum.saturating_add(s.len)))?;
        let mut room = call.room();
        let mut members = match self.operation {
            Operation::Union => self.unite(tx, &mut room)?,
            Operation::Intersection | Operation::Difference => self.filter(tx, &mut room)?,
        };
        call.check_room(&room)?;
        members.sort_unstable_by(|(a, a_score), (b, b_score)| {
            (a_score + 0.0).total_cmp(&(b_score + 0.0)).then_with(|| a.cmp(b))
        });
        Ok(members)
    }

    fn unite(
        &self,
        tx: &mut (impl ReadTransaction + ?Sized),
        room: &mut Room,
    ) -> Result<Vec<(Vec<u8>, f64)>, Failure> {
        let mut united: HashMap<Vec<u8>, f64> = HashMap::new();
        for source in &self.sources {
            source.visit(tx, |member, score| {
                let score = source.weigh(score);
                if let Some(old) = united.get_mut(member) {
                    *old = self.aggregate.join(*old, score);
                    return ControlFlow::Continue(());
                }
                united.insert(member.to_vec(), score);
                // For a while, the member is also in the list made from this.
                room.take(2 * member.len())
            })?;
        }
        Ok(united.into_iter().collect())
    }

    /// The members of one source that all of the others contain, or none of them. Looks its members up in
    /// the others in batches. For an intersection, this is the smallest source.
    fn filter(
        &self,
        tx: &mut (impl ReadTransaction + ?Sized),
        room: &mut Room,
    ) -> Result<Vec<(Vec<u8>, f64)>, Failure> {
        /// The number of members to look up at a time.
        const BATCH_MEMBERS: usize = 256;
        let is_difference = self.operation == Operation::Difference;
        let mut sources = self.sources.clone();
        if !is_difference {
            sources.sort_by_key(|source| source.len);
        }
        let Some((first, others)) = sources.split_first() else { return Ok(Vec::new()) };
        let (mut result, mut cursor) = (Vec::new(), 0);
        loop {
            let mut members = Vec::new();
            cursor = first.page(tx, cursor, BATCH_MEMBERS, |member, score| {
                members.push((member.to_vec(), first.weigh(score)));
                ControlFlow::Continue(())
            })?;
            for other in others {
                let mut scores = other.scores(tx, &members)?.into_iter();
                members.retain_mut(|(_, score)| match scores.next().flatten() {
                    Some(theirs) if !is_difference => {
                        *score = self.aggregate.join(*score, other.weigh(theirs));
                        true
                    }
                    found => is_difference && found.is_none(),
                });
            }
            let flow = members.iter().try_for_each(|(member, _)| room.take(member.len()));
            result.append(&mut members);
            if self.limit > 0 && result.len() >= self.limit {
                result.truncate(self.limit);
                return Ok(result);
            }
            if cursor == 0 || flow.is_break() {
                return Ok(result);
            }
        }
    }
}

fn zunion(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    give(call, tx, Operation::Union, "zunion")
}

fn zinter(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    give(call, tx, Operation::Intersection, "zinter")
}

fn zdiff(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    give(call, tx, Operation::Difference, "zdiff")
}

fn give(
    call: &mut Call<'_>,
    tx: &mut dyn ReadTransaction,
    operation: Operation,
    command: &str,
) -> Result<(), Failure> {
    let query = Query::read(call, tx, operation, Purpose::Give, command)?;
    let members = query.run(call, tx)?;
    write_members(call, query.with_scores, |show| {
        let _ = members.iter().try_for_each(|(member, score)| show(member, *score));
    });
    Ok(())
}

fn zintercard(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    let operation = Operation::Intersection;
    let query = Query::read(call, tx, operation, Purpose::Count, "zintercard")?;
    let count = query.run(call, tx)?.len();
    call.reply.integer(count as i64);
    Ok(())
}

fn zunionstore(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    store(call, tx, Operation::Union, "zunionstore")
}

fn zinterstore(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    store(call, tx, Operation::Intersection, "zinterstore")
}

fn zdiffstore(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    store(call, tx, Operation::Difference, "zdiffstore")
}

fn store(
    call: &mut Call<'_>,
    tx: &mut dyn WriteTransaction,
    operation: Operation,
    command: &str,
) -> Result<(), Failure> {
    let query = Query::read(call, tx, operation, Purpose::Store, command)?;
    let members = query.run(call, tx)?;
    let members = members.iter().map(|(member, score)| (&member[..], *score));
    let count = sorted_set(call, 1).replace(tx, call.packing(), members)?;
    call.reply.integer(count as i64);
    Ok(())
}
