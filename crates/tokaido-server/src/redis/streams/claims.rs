//! Pending entries taken over by another consumer: XCLAIM, XAUTOCLAIM.

use tokaido_collections::{OpenGroup, Pending, State, Stream, StreamId};
use tokaido_store::{ReadTransaction, WriteTransaction};

use super::{
    ids,
    writing::{no_group, shown, stream, tell, write_entry, write_id},
};
use crate::redis::{
    call::Call,
    command::{Command, rows},
    failure::Failure,
    number::parse_integer,
    reply::Reply,
    written::Written,
};

pub(in crate::redis) const COMMANDS: &[Command] = rows! {
"xautoclaim" -6 Write(xautoclaim), KEY [FAST] Stream "6.2.0"
    "key group consumer min-idle-time start [COUNT count] [JUSTID]"
    "Assigns to a consumer pending entries delivered long enough ago; returns them and the id to continue from.";
"xclaim" -6 Write(xclaim), KEY [FAST] Stream "5.0.0"
    "key group consumer min-idle-time id [id ...] [IDLE milliseconds] [TIME unix-time-milliseconds] [RETRYCOUNT count] [FORCE] [JUSTID] [LASTID lastid]"
    "Assigns the given pending entries to a consumer, if they were delivered long enough ago, and returns them.";
};

/// A stream, and the group that a command names.
struct Found<'c> {
    stream: Stream<'c>,
    state: State,
    group: OpenGroup<'c>,
}

impl<'c> Found<'c> {
    fn find(call: &Call<'c>, tx: &mut (impl ReadTransaction + ?Sized)) -> Result<Self, Failure> {
        let stream = stream(call, 1);
        if let Some(state) = stream.state(tx)?
            && let Some(group) = stream.group(tx, &state, call.arg(2))?
        {
            return Ok(Self { stream, state, group });
        }
        Err(no_group(call, 1, 2, ""))
    }

    /// Writes what the reply contains of an entry, which must exist.
    fn write(
        &self,
        reply: &mut dyn Reply,
        tx: &mut dyn WriteTransaction,
        id: StreamId,
        only_id: bool,
    ) -> Result<(), Failure> {
        if only_id {
            write_id(reply, id);
            return Ok(());
        }
        let write = |fields: tokaido_collections::Fields<'_>| write_entry(reply, id, fields);
        self.stream.visit_one(tx, &self.state, id, write)?;
        Ok(())
    }
}

/// The consumer that takes over entries. It is not created before the first of them.
struct Taker<'c> {
    name: &'c [u8],
    number: Option<u64>,
    is_new: bool,
}

impl<'c> Taker<'c> {
    fn new(call: &Call<'c>) -> Self {
        Self { name: call.arg(3), number: None, is_new: false }
    }

    fn open(
        &mut self,
        tx: &mut dyn WriteTransaction,
        group: &mut OpenGroup<'_>,
    ) -> Result<u64, Failure> {
        if let Some(number) = self.number {
            return Ok(number);
        }
        let (number, is_new) = group.open_consumer(tx, self.name)?;
        (self.number, self.is_new) = (Some(number), is_new);
        Ok(number)
    }

    /// Records the event if the consumer was created.
    fn tell(&self, call: &Call<'_>, tx: &dyn WriteTransaction) {
        if self.is_new {
            tell(call, tx, 1, &["xgroup-createconsumer"]);
        }
    }
}

/// The options of XCLAIM.
struct Claim {
    min_idle_ms: u64,
    ids: Vec<StreamId>,
    delivered_at_ms: u64,
    deliveries: Option<u64>,
    forces: bool,
    only_ids: bool,
    last_id: StreamId,
}

impl Claim {
    fn read(call: &Call<'_>, now_ms: u64) -> Result<Self, Failure> {
        let mut claim = Self {
            min_idle_ms: min_idle_at(call, "XCLAIM")?,
            ids: call.request.arguments_from(5).map_while(|id| ids::parse(id, 0).ok()).collect(),
            delivered_at_ms: now_ms,
            deliveries: None,
            forces: false,
            only_ids: false,
            last_id: StreamId::MIN,
        };
        let mut at = 5 + claim.ids.len();
        while at < call.len() {
            let has_more = at + 1 < call.len();
            if call.is_word(at, "FORCE") {
                claim.forces = true;
            } else if call.is_word(at, "JUSTID") {
                claim.only_ids = true;
            } else if has_more && call.is_word(at, "IDLE") {
                at += 1;
                let time_ms = (now_ms as i64).checked_sub(option(call, at, "IDLE")?);
                claim.delivered_at_ms = past(time_ms, now_ms);
            } else if has_more && call.is_word(at, "TIME") {
                at += 1;
                claim.delivered_at_ms = past(Some(option(call, at, "TIME")?), now_ms);
            } else if has_more && call.is_word(at, "RETRYCOUNT") {
                at += 1;
                claim.deliveries = u64::try_from(option(call, at, "RETRYCOUNT")?).ok();
            } else if has_more && call.is_word(at, "LASTID") {
                at += 1;
                claim.last_id = ids::parse(call.arg(at), 0)?;
            } else {
                let option = shown(call.arg(at));
                return Err(Failure::other(format!("Unrecognized XCLAIM option '{option}'")));
            }
            at += 1;
        }
        Ok(claim)
    }
}

fn option(call: &Call<'_>, index: usize, name: &str) -> Result<i64, Failure> {
    parse_integer(call.arg(index))
        .ok_or_else(|| Failure::other(format!("Invalid {name} option argument for XCLAIM")))
}

/// The time, or now if it is missing, negative or in the future: the clocks of clients may differ.
fn past(time_ms: Option<i64>, now_ms: u64) -> u64 {
    let time_ms = time_ms.and_then(|time_ms| u64::try_from(time_ms).ok());
    time_ms.filter(|time_ms| *time_ms <= now_ms).unwrap_or(now_ms)
}

/// The fifth argument: the minimum time since an entry was delivered.
fn min_idle_at(call: &Call<'_>, command: &str) -> Result<u64, Failure> {
    let number = parse_integer(call.arg(4))
        .ok_or_else(|| Failure::other(format!("Invalid min-idle-time argument for {command}")))?;
    Ok(u64::try_from(number).unwrap_or(0))
}

fn xclaim(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    let mut found = Found::find(call, tx)?;
    let now_ms = tx.now_ms();
    let claim = Claim::read(call, now_ms)?;
    let group = &mut found.group.group;
    group.last_id = group.last_id.max(claim.last_id);
    let mut taker = Taker::new(call);
    let mut written = Written::begin(call.reply);
    for &id in &claim.ids {
        if !found.stream.visit_one(tx, &found.state, id, |_| {})? {
            found.group.acknowledge(tx, id)?;
            continue;
        }
        let deliveries = match found.group.pending(tx, id)? {
            Some(pending) => {
                let idle_ms = now_ms.saturating_sub(pending.delivered_at_ms);
                if idle_ms < claim.min_idle_ms {
                    continue;
                }
                pending.deliveries
            }
            None if claim.forces => 1,
            None => continue,
        };
        let more = deliveries.saturating_add(u64::from(!claim.only_ids));
        let deliveries = claim.deliveries.unwrap_or(more);
        let delivered_at_ms = claim.delivered_at_ms;
        let consumer = taker.open(tx, &mut found.group)?;
        found.group.set_pending(tx, id, Pending { consumer, delivered_at_ms, deliveries })?;
        let mut shown = Ok(());
        let flow = written.element(|reply| shown = found.write(reply, tx, id, claim.only_ids));
        shown?;
        if flow.is_break() {
            break;
        }
    }
    written.end(|reply, len| reply.array(len));
    taker.tell(call, tx);
    found.group.save(tx)?;
    Ok(())
}

/// The options of XAUTOCLAIM.
struct AutoClaim {
    min_idle_ms: u64,
    start: StreamId,
    count: u64,
    only_ids: bool,
}

impl AutoClaim {
    /// How many entries to look at for each one to claim.
    const ATTEMPTS: u64 = 10;

    fn read(call: &Call<'_>) -> Result<Self, Failure> {
        /// Maximum of `COUNT`: Redis has a list of this many ids of 16 bytes each.
        const COUNT_MAX: u64 = i64::MAX as u64 / 16;
        let mut claim = Self {
            min_idle_ms: min_idle_at(call, "XAUTOCLAIM")?,
            start: ids::range_start(call, 5)?,
            count: 100,
            only_ids: false,
        };
        let mut at = 6;
        while at < call.len() {
            if call.is_word(at, "COUNT") && at + 1 < call.len() {
                const MESSAGE: &str = "COUNT must be > 0";
                let count = call.number(at + 1, 1, MESSAGE)?;
                if count > COUNT_MAX {
                    return Err(Failure::other(MESSAGE));
                }
                claim.count = count;
                at += 2;
            } else if call.is_word(at, "JUSTID") {
                claim.only_ids = true;
                at += 1;
            } else {
                return Err(Failure::Syntax);
            }
        }
        Ok(claim)
    }
}

fn xautoclaim(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    /// The number of entries to look up at a time.
    const BATCH_PENDING: u64 = 256;
    let claim = AutoClaim::read(call)?;
    let mut found = Found::find(call, tx)?;
    let (now_ms, mut taker) = (tx.now_ms(), Taker::new(call));
    let (mut left, mut attempts) = (claim.count, claim.count * AutoClaim::ATTEMPTS);
    let (mut next, mut deleted) = (Some(claim.start), Vec::new());
    let start = call.reply.mark();
    let mut written = Written::begin(call.reply);
    while let Some(from) = next.filter(|_| left > 0 && attempts > 0) {
        let batch_max = attempts.min(BATCH_PENDING);
        let batch = found.group.page(tx, None, from..=StreamId::MAX, batch_max as usize)?;
        next =
            batch.last().filter(|_| batch.len() as u64 == batch_max).and_then(|(id, _)| id.next());
        for (id, pending) in batch {
            if left == 0 {
                next = Some(id);
                break;
            }
            attempts -= 1;
            if !found.stream.visit_one(tx, &found.state, id, |_| {})? {
                found.group.acknowledge(tx, id)?;
                deleted.push(id);
                left -= 1;
                continue;
            }
            if now_ms.saturating_sub(pending.delivered_at_ms) < claim.min_idle_ms {
                continue;
            }
            let deliveries = pending.deliveries.saturating_add(u64::from(!claim.only_ids));
            let consumer = taker.open(tx, &mut found.group)?;
            let taken = Pending { consumer, delivered_at_ms: now_ms, deliveries };
            found.group.set_pending(tx, id, taken)?;
            left -= 1;
            let mut shown = Ok(());
            let flow = written.element(|reply| shown = found.write(reply, tx, id, claim.only_ids));
            shown?;
            if flow.is_break() {
                return Ok(());
            }
        }
    }
    written.end(|reply, len| reply.array(len));
    taker.tell(call, tx);
    let cursor = match next {
        Some(from) => {
            found.group.page(tx, None, from..=StreamId::MAX, 1)?.first().map(|(id, _)| *id)
        }
        None => None,
    };
    let end = call.reply.mark();
    call.reply.array(3);
    write_id(call.reply, cursor.unwrap_or_default());
    call.reply.move_before(start, end);
    call.reply.array(deleted.len());
    deleted.iter().for_each(|id| write_id(call.reply, *id));
    found.group.save(tx)?;
    Ok(())
}
