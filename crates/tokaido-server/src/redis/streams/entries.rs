//! Entries: XADD, XDEL, XLEN, XRANGE, XREVRANGE, XSETID, XTRIM.

use tokaido_collections::StreamId;
use tokaido_store::{Direction, ReadTransaction, WriteTransaction};

use super::{
    ids::{self, NewId},
    options::{self, Options},
    writing::{Wanted, stream, tell, write_entries, write_id},
};
use crate::redis::{
    call::Call,
    command::{Command, rows},
    failure::Failure,
};

pub(in crate::redis) const COMMANDS: &[Command] = rows! {
"xadd" -5 Write(xadd), KEY [FAST DENYOOM] Stream "5.0.0"
    "key [NOMKSTREAM] [<MAXLEN | MINID> [= | ~] threshold [LIMIT count]] <* | id> field value [field value ...]"
    "Appends an entry to a stream, trimming the stream if asked to; returns the id of the entry.";
"xdel" -3 Write(xdel), KEY [FAST] Stream "5.0.0"
    "key id [id ...]"
    "Deletes entries; returns how many there were. The stream remains, even without entries.";
"xlen" 2 Read(xlen), KEY [FAST] Stream "5.0.0"
    "key"
    "Returns the number of entries in a stream.";
"xrange" -4 Read(xrange), KEY [] Stream "5.0.0"
    "key start end [COUNT count]"
    "Returns the entries in a range of ids; `(` before an id excludes it, `-` and `+` are the lowest and highest id.";
"xrevrange" -4 Read(xrevrange), KEY [] Stream "5.0.0"
    "key end start [COUNT count]"
    "Returns the entries in a range of ids, from the highest to the lowest.";
"xsetid" -3 Write(xsetid), KEY [FAST DENYOOM] Stream "5.0.0"
    "key last-id [ENTRIESADDED entries-added] [MAXDELETEDID max-deleted-id]"
    "Sets the last id of a stream; the next entry must have a higher one.";
"xtrim" -4 Write(xtrim), KEY [] Stream "5.0.0"
    "key <MAXLEN | MINID> [= | ~] threshold [LIMIT count]"
    "Deletes the first entries of a stream until it is short enough, or those before an id; returns how many.";
};

fn xadd(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    let Options { only_if_there, trim, count, id, end } = options::read(call, true)?;
    let fields = call.len().saturating_sub(end);
    let Some(id) = id.filter(|_| fields >= 2 && fields.is_multiple_of(2)) else {
        return Err(call.wrong_arity("xadd"));
    };
    if id == NewId::Given(StreamId::MIN) {
        return Err(Failure::other("The ID specified in XADD must be greater than 0-0"));
    }
    let stream = stream(call, 1);
    if only_if_there && stream.state(tx)?.is_none() {
        call.reply.null();
        return Ok(());
    }
    let mut state = stream.open(tx)?;
    let id = id_after(state.last_id, id, tx.now_ms())?;
    stream.append(tx, &mut state, id, call.request.arguments_from(end))?;
    let trimmed = match trim.flatten() {
        Some(trim) => stream.trim(tx, &mut state, trim, count)?,
        None => 0,
    };
    tell(call, tx, 1, if trimmed > 0 { &["xadd", "xtrim"] } else { &["xadd"] });
    write_id(call.reply, id);
    Ok(())
}

/// The id of a new entry.
fn id_after(last: StreamId, id: NewId, now_ms: u64) -> Result<StreamId, Failure> {
    if last == StreamId::MAX {
        let message = "The stream has exhausted the last possible ID, unable to add more items";
        return Err(Failure::other(message));
    }
    let id = match id {
        NewId::Auto => StreamId::after(last, now_ms),
        NewId::Next { ms } if ms == last.ms => {
            // Redis's wording for it.
            let full = || Failure::other("Elements are too large to be stored");
            Some(last.next().filter(|next| next.ms == ms).ok_or_else(full)?)
        }
        NewId::Next { ms } => Some(StreamId { ms, seq: 0 }),
        NewId::Given(id) => Some(id),
    };
    id.filter(|id| *id > last).ok_or_else(|| {
        Failure::other(
            "The ID specified in XADD is equal or smaller than the target stream top item",
        )
    })
}

fn xlen(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    let state = stream(call, 1).state(tx)?;
    call.reply.integer(state.map_or(0, |state| state.len) as i64);
    Ok(())
}

fn xrange(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    range(call, tx, Direction::Forward)
}

fn xrevrange(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    range(call, tx, Direction::Backward)
}

fn range(
    call: &mut Call<'_>,
    tx: &mut dyn ReadTransaction,
    direction: Direction,
) -> Result<(), Failure> {
    let ids = match direction {
        Direction::Forward => ids::range(call, 2, 3)?,
        Direction::Backward => ids::range(call, 3, 2)?,
    };
    let (mut count, mut at) = (u64::MAX, 4);
    while at < call.len() {
        if !call.is_word(at, "COUNT") || at + 1 == call.len() {
            return Err(Failure::Syntax);
        }
        count = u64::try_from(call.integer(at + 1)?).unwrap_or(0);
        at += 2;
    }
    let stream = stream(call, 1);
    let Some(state) = stream.state(tx)? else {
        call.reply.array(0);
        return Ok(());
    };
    if count == 0 {
        call.reply.null_array();
        return Ok(());
    }
    let (wanted, may_take_long) = (Wanted { ids, direction, count }, call.may_take_long);
    write_entries(call.reply, tx, (stream, &state), wanted, may_take_long, &mut |_| {})
}

fn xdel(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    let stream = stream(call, 1);
    let Some(mut state) = stream.state(tx)? else {
        call.reply.integer(0);
        return Ok(());
    };
    let ids = ids::all_from(call, 2)?;
    let deleted = stream.delete(tx, &mut state, ids)?;
    if deleted > 0 {
        tell(call, tx, 1, &["xdel"]);
    }
    call.reply.integer(deleted as i64);
    Ok(())
}

fn xtrim(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    let Options { trim, count, .. } = options::read(call, false)?;
    let stream = stream(call, 1);
    let trimmed = match (stream.state(tx)?, trim.flatten()) {
        (Some(mut state), Some(trim)) => stream.trim(tx, &mut state, trim, count)?,
        _ => 0,
    };
    if trimmed > 0 {
        tell(call, tx, 1, &["xtrim"]);
    }
    call.reply.integer(trimmed as i64);
    Ok(())
}

fn xsetid(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    let last_id = ids::parse(call.arg(2), 0)?;
    let (mut added, mut max_deleted_id, mut at) = (None, StreamId::MIN, 3);
    while at < call.len() {
        let has_more = at + 1 < call.len();
        if has_more && call.is_word(at, "ENTRIESADDED") {
            let number = u64::try_from(call.integer(at + 1)?);
            added = Some(number.map_err(|_| Failure::other("entries_added must be positive"))?);
        } else if has_more && call.is_word(at, "MAXDELETEDID") {
            max_deleted_id = ids::parse(call.arg(at + 1), 0)?;
            if last_id < max_deleted_id {
                return Err(smaller("the provided max_deleted_entry_id"));
            }
        } else {
            return Err(Failure::Syntax);
        }
        at += 2;
    }
    let stream = stream(call, 1);
    let mut state = stream.state(tx)?.ok_or(Failure::NoSuchKey)?;
    let all = StreamId::MIN..=StreamId::MAX;
    if let Some(top) = stream.find(tx, &state, all, Direction::Backward)? {
        if last_id < top {
            return Err(smaller("the target stream top item"));
        }
        if added.is_some_and(|added| added < state.len) {
            let message =
                "The entries_added specified in XSETID is smaller than the target stream length";
            return Err(Failure::other(message));
        }
    }
    state.last_id = last_id;
    state.added = added.unwrap_or(state.added);
    if max_deleted_id != StreamId::MIN {
        state.max_deleted_id = max_deleted_id;
    }
    stream.save(tx, &state)?;
    tell(call, tx, 1, &["xsetid"]);
    call.reply.ok();
    Ok(())
}

fn smaller(than: &str) -> Failure {
    Failure::other(format!("The ID specified in XSETID is smaller than {than}"))
}
