//! What XREAD and XREADGROUP ask for, and how it is read. Waiting for entries is the task of `blocking`.

use std::{ops::Range, time::Duration};

use tokaido_collections::{OpenGroup, Pending, State, Stream, StreamId};
use tokaido_store::{Direction, ReadError, ReadTransaction, WriteTransaction};
use tokaido_wire::resp::Request;

use super::{
    ids,
    writing::{Wanted, no_group, stream, tell, write_entries, write_entry, write_id},
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
"xread" -4 StreamRead(xread), NO_KEY [MOVABLE_KEYS] Stream "5.0.0"
    "[COUNT count] [BLOCK milliseconds] STREAMS key [key ...] id [id ...]"
    "Returns the entries after the ids, where `$` is the last one; with BLOCK, waits if there are none.";
"xreadgroup" -7 GroupRead(xreadgroup), NO_KEY [MOVABLE_KEYS] Stream "5.0.0"
    "GROUP group consumer [COUNT count] [BLOCK milliseconds] [NOACK] STREAMS key [key ...] id [id ...]"
    "Delivers new entries to a consumer with `>`, waiting with BLOCK; with ids, its pending entries after them.";
};

/// Stands for the new entries of a group. No entry can follow it.
const NEW: StreamId = StreamId::MAX;

/// What XREAD or XREADGROUP asks for.
#[derive(Debug)]
pub(crate) struct Reading {
    /// The indices of the keys. As many ids follow them.
    pub(in crate::redis) keys: Range<usize>,
    /// The index of the group; the consumer is the next argument.
    pub(in crate::redis) group: Option<usize>,
    /// Whether entries are acknowledged as they are delivered.
    acknowledges: bool,
    /// Maximum number of entries of each stream.
    pub(in crate::redis) count: u64,
    /// Whether to wait for entries if there are none.
    pub(in crate::redis) waits: bool,
    /// How long to wait. `None`: without a limit.
    pub(in crate::redis) timeout: Option<Duration>,
}

/// An option of XREAD or XREADGROUP.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Word {
    Block,
    Count,
    Group,
    NoAck,
    Streams,
}

/// The options by name, with the minimum number of arguments of each.
const WORDS: [(&str, Word, usize); 5] = [
    ("BLOCK", Word::Block, 1),
    ("COUNT", Word::Count, 1),
    ("GROUP", Word::Group, 2),
    ("NOACK", Word::NoAck, 0),
    ("STREAMS", Word::Streams, 1),
];

/// The options of a request in order, each with its index, up to STREAMS, after which there are only keys and
/// ids. Running a request and asking for its keys both parse the options here, so that they agree.
fn options(request: Request<'_>) -> impl Iterator<Item = Result<(Word, usize), Failure>> {
    let mut next = 1;
    std::iter::from_fn(move || {
        let (at, given) = (next, request.get(next)?);
        let more = request.len() - at - 1;
        let is_given = |name: &str| given.eq_ignore_ascii_case(name.as_bytes());
        let found = WORDS.iter().find(|(name, _, least)| is_given(name) && *least <= more);
        next = match found {
            Some((_, word, arguments)) if *word != Word::Streams => at + 1 + arguments,
            _ => request.len(),
        };
        Some(found.map(|&(_, word, _)| (word, at)).ok_or(Failure::Syntax))
    })
}

/// The indices of the keys, for STREAMS at index `streams`.
fn keys_behind(streams: usize, request: Request<'_>) -> Result<Range<usize>, Failure> {
    let more = request.len() - streams - 1;
    if !more.is_multiple_of(2) {
        return Err(Failure::other(
            "Unbalanced XREAD list of streams: for each stream key an ID or '$' must be specified.",
        ));
    }
    Ok(streams + 1..streams + 1 + more / 2)
}

/// The indices of the keys of a request.
///
/// # Errors
/// If its options cannot be parsed.
pub(in crate::redis) fn keys(request: Request<'_>) -> Result<Range<usize>, Failure> {
    for option in options(request) {
        if let (Word::Streams, at) = option? {
            return keys_behind(at, request);
        }
    }
    Err(Failure::Syntax)
}

/// Whether a request asks to wait.
pub(in crate::redis) fn asks_to_wait(request: Request<'_>) -> bool {
    options(request).any(|option| matches!(option, Ok((Word::Block, _))))
}

fn xread(call: &Call<'_>) -> Result<Reading, Failure> {
    parse(call, false)
}

fn xreadgroup(call: &Call<'_>) -> Result<Reading, Failure> {
    parse(call, true)
}

fn parse(call: &Call<'_>, is_of_group: bool) -> Result<Reading, Failure> {
    let mut reading = Reading {
        keys: 0..0,
        group: None,
        acknowledges: false,
        count: u64::MAX,
        waits: false,
        timeout: None,
    };
    for option in options(call.request) {
        match option? {
            (Word::Block, at) => {
                (reading.waits, reading.timeout) = (true, timeout_at(call, at + 1)?);
            }
            (Word::Count, at) => {
                let count = u64::try_from(call.integer(at + 1)?).unwrap_or(0);
                reading.count = if count == 0 { u64::MAX } else { count };
            }
            (Word::Group, _) if !is_of_group => return Err(only_of_groups("GROUP")),
            (Word::Group, at) => reading.group = Some(at + 1),
            (Word::NoAck, _) if !is_of_group => return Err(only_of_groups("NOACK")),
            (Word::NoAck, _) => reading.acknowledges = true,
            (Word::Streams, at) => reading.keys = keys_behind(at, call.request)?,
        }
    }
    if reading.keys.is_empty() {
        return Err(Failure::Syntax);
    }
    if is_of_group && reading.group.is_none() {
        return Err(Failure::other("Missing GROUP option for XREADGROUP"));
    }
    Ok(reading)
}

fn only_of_groups(option: &str) -> Failure {
    Failure::other(format!(
        "The {option} option is only supported by XREADGROUP. You called XREAD instead."
    ))
}

/// The argument at `index` as a timeout in ms. 0 means forever.
fn timeout_at(call: &Call<'_>, index: usize) -> Result<Option<Duration>, Failure> {
    let ms = parse_integer(call.arg(index))
        .ok_or_else(|| Failure::other("timeout is not an integer or out of range"))?;
    let ms = u64::try_from(ms).map_err(|_| Failure::other("timeout is negative"))?;
    Ok((ms > 0).then(|| Duration::from_millis(ms)))
}

/// The ids after which to read, determined when the command first runs.
///
/// # Errors
/// If a key holds another type, or has no such group.
pub(in crate::redis) fn starts(
    call: &Call<'_>,
    tx: &mut (impl ReadTransaction + ?Sized),
    reading: &Reading,
) -> Result<Vec<StreamId>, Failure> {
    let count = reading.keys.len();
    let start = |key: usize| {
        let (stream, text) = (stream(call, key), call.arg(key + count));
        let state = stream.state(tx)?;
        if let Some(group) = reading.group {
            check_group(call, tx, (stream, state), key, group)?;
        }
        match (text, reading.group) {
            (b"$", None) => Ok(state.map_or(StreamId::MIN, |state| state.last_id)),
            (b">", Some(_)) => Ok(NEW),
            (b"$", Some(_)) => Err(Failure::other(
                "The $ ID is meaningless in the context of XREADGROUP: you want to read the history of this \
                 consumer by specifying a proper ID, or use the > ID to get new messages. The $ ID would just \
                 return an empty result set.",
            )),
            (b">", None) => Err(Failure::other(
                "The > ID can be specified only when calling XREADGROUP using the GROUP <group> <consumer> option.",
            )),
            (text, _) => ids::parse(text, 0),
        }
    };
    reading.keys.clone().map(start).collect()
}

fn check_group(
    call: &Call<'_>,
    tx: &mut (impl ReadTransaction + ?Sized),
    (stream, state): (Stream<'_>, Option<State>),
    key: usize,
    group: usize,
) -> Result<(), Failure> {
    let found = match state {
        Some(state) => stream.group(tx, &state, call.arg(group))?,
        None => None,
    };
    match found {
        Some(_) => Ok(()),
        None => Err(no_group(call, key, group, " in XREADGROUP with GROUP option")),
    }
}

/// Writes the entries after the ids, and returns whether there are any. A client that `has_waited` gets
/// those of only one stream.
pub(in crate::redis) fn read(
    call: &mut Call<'_>,
    tx: &mut (impl ReadTransaction + ?Sized),
    reading: &Reading,
    starts: &[StreamId],
    has_waited: bool,
) -> Result<bool, Failure> {
    let mut replies = Replies::begin(&*call.reply);
    for (key, start) in reading.keys.clone().zip(starts) {
        let stream = stream(call, key);
        let state = match stream.state(tx) {
            // A client that has waited goes on waiting if the key holds another type.
            Err(ReadError::OtherKind) if has_waited => continue,
            state => state?,
        };
        let Some(state) = state else { continue };
        let Some(first) = stream.find_after(tx, &state, *start)? else { continue };
        let wanted = wanted(first, reading.count);
        replies.add(call.reply, key_of(call.request, key));
        let may_take_long = call.may_take_long;
        write_entries(call.reply, tx, (stream, &state), wanted, may_take_long, &mut |_| {})?;
        if has_waited {
            break;
        }
    }
    Ok(replies.end(call.reply))
}

fn key_of(request: Request<'_>, index: usize) -> &[u8] {
    request.get(index).unwrap_or_default()
}

fn wanted(first: StreamId, count: u64) -> Wanted {
    Wanted { ids: first..=StreamId::MAX, direction: Direction::Forward, count }
}

/// Collects the entries of several streams with their keys.
struct Replies {
    start: usize,
    len: usize,
}

impl Replies {
    fn begin(reply: &dyn Reply) -> Self {
        Self { start: reply.mark(), len: 0 }
    }

    /// Begins a stream, whose entries follow.
    fn add(&mut self, reply: &mut dyn Reply, key: &[u8]) {
        self.len += 1;
        reply.map_pair();
        reply.bulk(key);
    }

    /// Puts the header before the entries. If there are none, writes nothing and returns false.
    fn end(self, reply: &mut dyn Reply) -> bool {
        if self.len > 0 {
            let end = reply.mark();
            reply.map_of_pairs(self.len);
            reply.move_before(self.start, end);
        }
        self.len > 0
    }
}

/// Like [`read`], for a consumer of a group. `may_take` says whether the consumer may take a key's new entries.
pub(in crate::redis) fn read_group(
    call: &mut Call<'_>,
    tx: &mut dyn WriteTransaction,
    reading: &Reading,
    starts: &[StreamId],
    has_waited: bool,
    may_take: &dyn Fn(&[u8]) -> bool,
) -> Result<bool, Failure> {
    let name = reading.group.unwrap_or_default();
    let mut replies = Replies::begin(&*call.reply);
    for (key, start) in reading.keys.clone().zip(starts) {
        let stream = stream(call, key);
        let found = match stream.state(tx) {
            Err(ReadError::OtherKind) if has_waited => None,
            found => found?,
        };
        let state = found.ok_or(Failure::StreamGone)?;
        let group = stream.group(tx, &state, call.arg(name))?;
        let mut group = group.ok_or(Failure::GroupGone)?;
        if *start == NEW {
            let first = stream.find_after(tx, &state, group.group.last_id)?;
            let Some(first) = first.filter(|_| may_take(call.arg(key))) else { continue };
            let consumer = open_consumer(call, tx, &mut group, key, name + 1)?;
            replies.add(call.reply, key_of(call.request, key));
            let (mut ids, wanted) = (Vec::new(), wanted(first, reading.count));
            write_entries(call.reply, tx, (stream, &state), wanted, true, &mut |id| ids.push(id))?;
            group.deliver(tx, consumer, &ids, reading.acknowledges)?;
        } else {
            let consumer = open_consumer(call, tx, &mut group, key, name + 1)?;
            replies.add(call.reply, key_of(call.request, key));
            let from = start.next().unwrap_or(NEW);
            write_history(call, tx, (stream, &state), &mut group, consumer, from, reading.count)?;
        }
        group.save(tx)?;
        if has_waited {
            break;
        }
    }
    Ok(replies.end(call.reply))
}

/// The consumer named by the argument at `index`, which is created if it does not exist.
fn open_consumer(
    call: &Call<'_>,
    tx: &mut dyn WriteTransaction,
    group: &mut OpenGroup<'_>,
    key: usize,
    index: usize,
) -> Result<u64, Failure> {
    let (consumer, is_new) = group.open_consumer(tx, call.arg(index))?;
    if is_new {
        tell(call, tx, key, &["xgroup-createconsumer"]);
    }
    Ok(consumer)
}

/// Delivers a consumer's pending entries again. For those that are deleted, it writes the id and null.
fn write_history(
    call: &mut Call<'_>,
    tx: &mut dyn WriteTransaction,
    (stream, state): (Stream<'_>, &State),
    group: &mut OpenGroup<'_>,
    consumer: u64,
    from: StreamId,
    count: u64,
) -> Result<(), Failure> {
    /// The number of entries to look up at a time.
    const BATCH_PENDING: u64 = 256;
    let (mut left, mut next) = (count, Some(from));
    let mut written = Written::begin(call.reply);
    while let Some(from) = next.filter(|_| left > 0) {
        let batch_max = left.min(BATCH_PENDING) as usize;
        let batch = group.page(tx, Some(consumer), from..=StreamId::MAX, batch_max)?;
        for (id, pending) in &batch {
            let mut is_there = false;
            let mut shown = Ok(true);
            let flow = written.element(|reply| {
                shown = stream.visit_one(tx, state, *id, |fields| write_entry(reply, *id, fields));
                is_there = matches!(shown, Ok(true));
                if !is_there {
                    reply.array(2);
                    write_id(reply, *id);
                    reply.null_array();
                }
            });
            shown?;
            if is_there {
                let deliveries = pending.deliveries.saturating_add(1);
                let again = Pending { consumer, delivered_at_ms: tx.now_ms(), deliveries };
                group.set_pending(tx, *id, again)?;
            }
            if flow.is_break() {
                return Ok(());
            }
        }
        left -= batch.len() as u64;
        next = batch.last().filter(|_| batch.len() == batch_max).and_then(|(id, _)| id.next());
    }
    written.end(|reply, len| reply.array(len));
    Ok(())
}
