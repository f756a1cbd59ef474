//! The meta commands: what they do, and what they reply, flag by flag in the order of the request.

use tokaido_store::{Amendment, CommitNumber, Marks, NewRecord, Record, WriteTransaction};
use tokaido_wire::memcached::{Exptime, Meta, Store, text as reply};

use super::{
    Session,
    failure::Failure,
    figures::Figure,
    operations::{Count, Counted, StoreOutcome, shown},
    protocol::Step,
    text,
};
use crate::protocol::Context;

/// Seconds until a time, rounded up; `None`: forever.
fn seconds_left(expires_at_ms: Option<u64>, now_ms: u64) -> Option<u64> {
    expires_at_ms.map(|at| at.saturating_sub(now_ms).div_ceil(1000))
}

/// The expiry that a flag sets, if it sets one.
fn exptime_of(word: &[u8], asked: &Meta<'_>, is_new: bool) -> Option<Exptime> {
    match word[0] {
        b'T' => asked.flags.ttl,
        b'N' if is_new => asked.flags.vivify,
        _ => None,
    }
}

/// Applies a flag that changes the expiry. Before the flag, the old expiry counts, and is reported.
fn expiry_at(
    word: &[u8],
    asked: &Meta<'_>,
    is_new: bool,
    now_ms: u64,
    expires_at_ms: &mut Option<u64>,
) {
    if let Some(exptime) = exptime_of(word, asked, is_new) {
        *expires_at_ms = exptime.at_ms(now_ms);
    }
}

/// What `mg` has found, and what it makes of it.
struct Found<'v> {
    value: &'v [u8],
    flags: u32,
    version: CommitNumber,
    marks: Marks,
    expires_at_ms: Option<u64>,
    is_new: bool,
}

impl<'v> Found<'v> {
    fn of(record: Record<'v>) -> Self {
        let Record { value, flags, version, marks, expires_at_ms, .. } = record;
        Self { value, flags, version, marks, expires_at_ms, is_new: false }
    }
}

/// What happens to the record, and whether the client is to renew the value.
struct Plan {
    expires_at_ms: Option<u64>,
    wins: bool,
}

/// Applies the flags that change something. Whether the time left is short is decided by the expiry
/// that the record has at that flag.
fn plan(asked: &Meta<'_>, found: &Found<'_>, now_ms: u64) -> Plan {
    let is_claimed = found.marks.has(Marks::CLAIMED);
    let mut plan = Plan { expires_at_ms: found.expires_at_ms, wins: false };
    for word in asked.words {
        expiry_at(word, asked, found.is_new, now_ms, &mut plan.expires_at_ms);
        if word[0] == b'R' && !is_claimed && !found.is_new {
            let least = asked.flags.recache.and_then(|least| least.at_ms(now_ms));
            let left = seconds_left(plan.expires_at_ms, now_ms);
            plan.wins |= left.zip(seconds_left(least, now_ms)).is_some_and(|(a, b)| a < b);
        }
    }
    plan.wins |= found.is_new;
    plan.wins |= found.marks.has(Marks::STALE) && !is_claimed;
    plan
}

/// mg
pub(super) fn get(
    session: &Session,
    asked: &Meta<'_>,
    context: &mut Context<'_>,
    output: &mut Vec<u8>,
) -> Result<Step, Failure> {
    let start = output.len();
    let mut outcome = match asked.flags.ttl {
        Some(_) => Read::Changes { was_fetched: None },
        None => read(session, asked, context, output)?,
    };
    if let Read::Changes { was_fetched } = outcome {
        if session.needs_writer(context) {
            return Ok(Step::NeedsWriter);
        }
        outcome = session.write(context, |tx| {
            output.truncate(start);
            read_and_change(session, tx, asked, was_fetched, output)
        })?;
    }
    let is_hit = matches!(outcome, Read::Hit);
    if asked.flags.ttl.is_some() {
        session.count(Figure::CmdTouch);
        session.count_either(is_hit, Figure::TouchHits, Figure::TouchMisses);
    } else {
        session.count(Figure::CmdGet);
        session.count_either(is_hit, Figure::GetHits, Figure::GetMisses);
    }
    if !is_hit && !asked.flags.is_quiet {
        output.extend_from_slice(b"EN");
        echo(asked, output);
        reply::line(output, "");
    }
    Ok(Step::Done)
}

/// The outcome of reading.
enum Read {
    Hit,
    Miss,
    /// The answer needs a change of the record. If the record has been read to find that out, this
    /// says whether it had been read before.
    Changes {
        was_fetched: Option<bool>,
    },
}

fn read(
    session: &Session,
    asked: &Meta<'_>,
    context: &mut Context<'_>,
    output: &mut Vec<u8>,
) -> Result<Read, Failure> {
    session.read(context, |tx| {
        let now_ms = tx.now_ms();
        let record = shown(tx.get(session.database, asked.key.bytes())?);
        let Some(found) = record.map(Found::of) else {
            let is_made = asked.flags.vivify.is_some();
            return Ok(if is_made { Read::Changes { was_fetched: None } } else { Read::Miss });
        };
        let plan = plan(asked, &found, now_ms);
        if plan.wins {
            return Ok(Read::Changes { was_fetched: Some(found.marks.has(Marks::FETCHED)) });
        }
        show(asked, &found, &plan, now_ms, output);
        Ok(Read::Hit)
    })
}

fn read_and_change(
    session: &Session,
    tx: &mut dyn WriteTransaction,
    asked: &Meta<'_>,
    was_fetched: Option<bool>,
    output: &mut Vec<u8>,
) -> Result<Read, Failure> {
    let (database, key, now_ms) = (session.database, asked.key.bytes(), tx.now_ms());
    let record = shown(tx.get(database, key)?);
    let value = record.map(|record| record.value.to_vec()).unwrap_or_default();
    let mut found = match record {
        Some(record) => Found { value: &value, ..Found::of(record) },
        None if asked.flags.vivify.is_none() => return Ok(Read::Miss),
        None => Found {
            value: b"",
            flags: 0,
            version: 0,
            marks: Marks::NONE,
            expires_at_ms: None,
            is_new: true,
        },
    };
    if was_fetched == Some(false) {
        found.marks = found.marks.without(Marks::FETCHED);
    }
    let plan = plan(asked, &found, now_ms);
    let claimed = if plan.wins { Marks::CLAIMED } else { Marks::NONE };
    let fetched = if asked.flags.no_update { Marks::NONE } else { Marks::FETCHED };
    let marks = found.marks.and(claimed).and(fetched);
    let expires_at_ms = plan.expires_at_ms;
    if found.is_new {
        tx.put(database, key, NewRecord { expires_at_ms, marks, ..NewRecord::of(b"") })?;
        found.version = tx.number();
    } else if let Some(version) = tx.amend(database, key, Amendment { expires_at_ms, marks })? {
        found.version = version;
    }
    show(asked, &found, &plan, now_ms, output);
    Ok(Read::Hit)
}

/// Writes a hit.
fn show(asked: &Meta<'_>, found: &Found<'_>, plan: &Plan, now_ms: u64, output: &mut Vec<u8>) {
    if asked.flags.wants_value {
        output.extend_from_slice(b"VA ");
        reply::number(output, found.value.len());
    } else {
        output.extend_from_slice(b"HD");
    }
    let mut expires_at_ms = found.expires_at_ms;
    for word in asked.words {
        expiry_at(word, asked, found.is_new, now_ms, &mut expires_at_ms);
        match word[0] {
            b's' => reply::meta_number(output, b's', found.value.len()),
            b't' => show_seconds_left(expires_at_ms, now_ms, output),
            b'c' => reply::meta_number(output, b'c', found.version),
            b'f' => reply::meta_number(output, b'f', found.flags),
            b'h' => reply::meta_number(output, b'h', u8::from(found.marks.has(Marks::FETCHED))),
            _ => echo_word(asked, word, output),
        }
    }
    if found.marks.has(Marks::CLAIMED) {
        output.extend_from_slice(b" Z");
    }
    if found.marks.has(Marks::STALE) {
        output.extend_from_slice(b" X");
    }
    if plan.wins {
        output.extend_from_slice(b" W");
    }
    reply::line(output, "");
    if asked.flags.wants_value {
        output.extend_from_slice(found.value);
        reply::line(output, "");
    }
}

fn show_seconds_left(expires_at_ms: Option<u64>, now_ms: u64, output: &mut Vec<u8>) {
    match seconds_left(expires_at_ms, now_ms) {
        None => reply::meta_word(output, b"t-1"),
        Some(left) => reply::meta_number(output, b't', left),
    }
}

/// Writes the parts of the request that are sent back.
fn echo(asked: &Meta<'_>, output: &mut Vec<u8>) {
    asked.words.for_each(|word| echo_word(asked, word, output));
}

fn echo_word(asked: &Meta<'_>, word: &[u8], output: &mut Vec<u8>) {
    match word[0] {
        b'O' => reply::meta_word(output, word),
        b'k' => reply::meta_key(output, &asked.key),
        _ => {}
    }
}

/// ms
pub(super) fn set(
    session: &Session,
    asked: &Meta<'_>,
    store: &Store<'_>,
    context: &mut Context<'_>,
    output: &mut Vec<u8>,
) -> Result<(), Failure> {
    let store = Store { key: asked.key.bytes(), ..*store };
    let outcome = text::store_value(session, &store, asked.flags.invalidates, context)?;
    let (code, version) = match outcome {
        StoreOutcome::Stored(_) if asked.flags.is_quiet => return Ok(()),
        StoreOutcome::Stored(version) => ("HD", version),
        StoreOutcome::Exists => ("EX", 0),
        StoreOutcome::NotFound => ("NF", 0),
        StoreOutcome::NotStored => ("NS", 0),
        StoreOutcome::TooLarge => {
            reply::line(output, "SERVER_ERROR object too large for cache");
            return Ok(());
        }
    };
    output.extend_from_slice(code.as_bytes());
    for word in asked.words {
        match word[0] {
            b'c' => reply::meta_number(output, b'c', version),
            _ => echo_word(asked, word, output),
        }
    }
    reply::line(output, "");
    Ok(())
}

/// The outcome of `md`.
enum Deleted {
    Yes,
    Marked,
    Exists,
    NotFound,
}

/// md
pub(super) fn delete(
    session: &Session,
    asked: &Meta<'_>,
    context: &mut Context<'_>,
    output: &mut Vec<u8>,
) -> Result<(), Failure> {
    let deleted = session.write(context, |tx| delete_or_mark(session, tx, asked))?;
    let code = match deleted {
        Deleted::Yes => {
            session.count(Figure::DeleteHits);
            "HD"
        }
        Deleted::Marked => "HD",
        Deleted::Exists => {
            session.count(Figure::DeleteMisses);
            "EX"
        }
        Deleted::NotFound => {
            session.count(Figure::DeleteMisses);
            "NF"
        }
    };
    if code == "HD" && asked.flags.is_quiet {
        return Ok(());
    }
    output.extend_from_slice(code.as_bytes());
    echo(asked, output);
    reply::line(output, "");
    Ok(())
}

fn delete_or_mark(
    session: &Session,
    tx: &mut dyn WriteTransaction,
    asked: &Meta<'_>,
) -> Result<Deleted, Failure> {
    let (database, key, now_ms) = (session.database, asked.key.bytes(), tx.now_ms());
    let flags = asked.flags;
    let Some(record) = tx.get(database, key)? else { return Ok(Deleted::NotFound) };
    if flags.cas.is_some_and(|cas| cas != record.version) {
        return Ok(Deleted::Exists);
    }
    if shown(Some(record)).is_none() || !(flags.invalidates || flags.drops_value) {
        tx.delete(database, key)?;
        return Ok(Deleted::Yes);
    }
    let value = if flags.drops_value { Vec::new() } else { record.value.to_vec() };
    let mut new = record.with_same_value(&value);
    if flags.drops_value {
        new.flags = flags.client_flags;
        // An empty value is no longer a number, boolean or list.
        new.marks = record.marks.without(record.marks.form());
    }
    if let Some(ttl) = flags.ttl {
        new.expires_at_ms = ttl.at_ms(now_ms);
    }
    if flags.invalidates {
        // The next reader is told to renew it.
        new.marks = new.marks.and(Marks::STALE).without(Marks::CLAIMED);
    }
    tx.put(database, key, new)?;
    Ok(Deleted::Marked)
}

/// ma
pub(super) fn count(
    session: &Session,
    asked: &Meta<'_>,
    context: &mut Context<'_>,
    output: &mut Vec<u8>,
) -> Result<(), Failure> {
    let flags = asked.flags;
    // For a new counter, the last of the two flags decides when it expires.
    let made_until = asked.words.filter_map(|word| exptime_of(word, asked, true)).last();
    let how = Count {
        by: flags.delta.unwrap_or(1),
        is_down: matches!(flags.mode, Some(b'D' | b'd' | b'-')),
        cas: flags.cas.unwrap_or(0),
        vivify: made_until.filter(|_| flags.vivify.is_some()).map(|at| (flags.initial, at)),
        exptime: flags.ttl,
    };
    let counted = text::count(session, asked.key.bytes(), &how, context)?;
    let (counter, is_new) = match counted {
        Counted::Moved(_) if flags.is_quiet => return Ok(()),
        Counted::Moved(counter) => (counter, false),
        Counted::Made(counter) => (counter, true),
        Counted::NotNumeric => {
            reply::line(output, text::NOT_NUMERIC);
            return Ok(());
        }
        Counted::NotFound | Counted::Exists => {
            let code = if counted == Counted::NotFound { b"NF" } else { b"EX" };
            output.extend_from_slice(code);
            echo(asked, output);
            reply::line(output, "");
            return Ok(());
        }
    };
    let mut digits = itoa::Buffer::new();
    let value = digits.format(counter.number).as_bytes();
    if flags.wants_value {
        output.extend_from_slice(b"VA ");
        reply::number(output, value.len());
    } else {
        output.extend_from_slice(b"HD");
    }
    let mut expires_at_ms = counter.expired_at_ms;
    for word in asked.words {
        expiry_at(word, asked, is_new, counter.now_ms, &mut expires_at_ms);
        match word[0] {
            b'c' => reply::meta_number(output, b'c', counter.version),
            b't' => show_seconds_left(expires_at_ms, counter.now_ms, output),
            _ => echo_word(asked, word, output),
        }
    }
    reply::line(output, "");
    if flags.wants_value {
        output.extend_from_slice(value);
        reply::line(output, "");
    }
    Ok(())
}

/// me
pub(super) fn debug(
    session: &Session,
    asked: &Meta<'_>,
    context: &mut Context<'_>,
    output: &mut Vec<u8>,
) -> Result<(), Failure> {
    session.count(Figure::CmdMeta);
    session.read(context, |tx| {
        let now_ms = tx.now_ms();
        let key = asked.key.bytes();
        let Some(record) = shown(tx.get(session.database, key)?) else {
            reply::line(output, "EN");
            return Ok(());
        };
        output.extend_from_slice(b"ME ");
        output.extend_from_slice(asked.key.given());
        let exp = match seconds_left(record.expires_at_ms, now_ms) {
            None => "-1".to_owned(),
            Some(left) => left.to_string(),
        };
        let fetched = if record.marks.has(Marks::FETCHED) { "yes" } else { "no" };
        let size = key.len() + record.value.len();
        let cas = record.version;
        reply::line(output, &format!(" exp={exp} cas={cas} fetch={fetched} cls=1 size={size}"));
        Ok(())
    })
}
