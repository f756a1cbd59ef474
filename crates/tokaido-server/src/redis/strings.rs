//! Values: GET, MGET, MSET, APPEND, GETRANGE, SETRANGE and related commands.

use tokaido_store::{
    Kind, NewRecord, ReadTransaction, WriteOperations, WriteTransaction, limits::VALUE_LEN_MAX,
};

use super::{
    call::Call,
    command::{Command, rows},
    failure::Failure,
};

pub(super) const COMMANDS: &[Command] = rows! {
"append" 3 Write(append), KEY [FAST DENYOOM] String "2.0.0"
    "key value"
    "Appends to the value of a key, creating it if it does not exist.";
"get" 2 Read(get), KEY [FAST] String "1.0.0"
    "key"
    "Returns the value of a key.";
"getdel" 2 Write(getdel), KEY [FAST BRIEF] String "6.2.0"
    "key"
    "Returns the value of a key and deletes it.";
"getrange" 4 Read(getrange), KEY [] String "2.4.0"
    "key start end"
    "Returns part of a value; negative offsets count from its end.";
"getset" 3 Write(getset), KEY [FAST DENYOOM BRIEF] String "1.0.0"
    "key value"
    "Sets the value of a key and returns the previous one.";
"mget" -2 Read(mget), KEYS [FAST] String "1.0.0"
    "key [key ...]"
    "Returns the values of several keys.";
"mset" -3 Write(mset), PAIRS [DENYOOM BRIEF] String "1.0.1"
    "key value [key value ...]"
    "Sets the values of several keys.";
"msetnx" -3 Write(msetnx), PAIRS [DENYOOM BRIEF] String "1.0.1"
    "key value [key value ...]"
    "Sets the values of several keys, or of none if any of them exists.";
"setnx" 3 Write(setnx), KEY [FAST DENYOOM BRIEF] String "1.0.0"
    "key value"
    "Sets the value of a key, unless the key exists.";
"setrange" 4 Write(setrange), KEY [DENYOOM] String "2.2.0"
    "key offset value"
    "Overwrites part of a value from an offset on, padding a shorter value with zero bytes up to there.";
"strlen" 2 Read(strlen), KEY [FAST] String "2.2.0"
    "key"
    "Returns the length of a value in bytes.";
"substr" 4 Read(getrange), KEY [] String "1.0.0"
    "key start end"
    "The old name of GETRANGE.";
};

fn get(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    let record = call.string(tx, call.arg(1))?;
    call.reply.bulk_or_null(record.map(|record| record.value));
    Ok(())
}

fn mget(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    let database = call.database;
    let keys: Vec<&[u8]> = call.request.arguments().collect();
    call.reply.array(keys.len());
    let reply = &mut *call.reply;
    tx.get_many(database, &keys, &mut |_, record| {
        let string = record.filter(|record| record.kind == Kind::Bytes);
        reply.bulk_or_null(string.map(|record| record.value));
    })?;
    Ok(())
}

fn strlen(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    let record = call.string(tx, call.arg(1))?;
    call.reply.integer(record.map_or(0, |record| record.value.len() as i64));
    Ok(())
}

fn getrange(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    let (start, end) = (call.integer(2)?, call.integer(3)?);
    let record = call.string(tx, call.arg(1))?;
    call.reply.bulk(range(record.map_or(&[], |record| record.value), start, end));
    Ok(())
}

/// The bytes `start..=end`. Negative positions count from the end.
fn range(value: &[u8], start: i64, end: i64) -> &[u8] {
    let len = value.len() as i64;
    if start < 0 && end < 0 && start > end {
        return &[];
    }
    let place = |at: i64| if at < 0 { at.saturating_add(len).max(0) } else { at };
    let (start, end) = (place(start), place(end).min(len - 1));
    if start > end { &[] } else { &value[start as usize..=end as usize] }
}

fn getset(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    let (database, key) = (call.database, call.arg(1));
    call.reply.bulk_or_null(call.string(tx, key)?.map(|record| record.value));
    tx.put(database, key, NewRecord::of(call.arg(2)))?;
    Ok(())
}

fn getdel(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    let (database, key) = (call.database, call.arg(1));
    let found = call.string(tx, key)?;
    call.reply.bulk_or_null(found.map(|record| record.value));
    if found.is_some() {
        tx.delete(database, key)?;
    }
    Ok(())
}

fn setnx(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    let (database, key) = (call.database, call.arg(1));
    let is_absent = tx.get(database, key)?.is_none();
    if is_absent {
        tx.put(database, key, NewRecord::of(call.arg(2)))?;
    }
    call.reply.integer(i64::from(is_absent));
    Ok(())
}

fn mset(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    check_pairs(call, "mset")?;
    put_pairs(call, tx)?;
    call.reply.ok();
    Ok(())
}

fn msetnx(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    check_pairs(call, "msetnx")?;
    call.needs_transaction("use SET with NX for each of the keys")?;
    for key in call.request.arguments().step_by(2) {
        if tx.get(call.database, key)?.is_some() {
            call.reply.integer(0);
            return Ok(());
        }
    }
    put_pairs(call, tx)?;
    call.reply.integer(1);
    Ok(())
}

fn check_pairs(call: &Call<'_>, command: &str) -> Result<(), Failure> {
    if call.len() % 2 == 1 { Ok(()) } else { Err(call.wrong_arity(command)) }
}

fn put_pairs(call: &Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    for at in (1..call.len()).step_by(2) {
        tx.put(call.database, call.arg(at), NewRecord::of(call.arg(at + 1)))?;
    }
    Ok(())
}

fn append(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    let len = tx.append(call.database, call.arg(1), call.arg(2))?;
    call.reply.integer(len as i64);
    Ok(())
}

fn setrange(call: &mut Call<'_>, tx: &mut dyn WriteTransaction) -> Result<(), Failure> {
    let (database, key, part) = (call.database, call.arg(1), call.arg(3));
    let Ok(offset) = usize::try_from(call.integer(2)?) else {
        return Err(Failure::other("offset is out of range"));
    };
    let found = call.string(tx, key)?;
    if part.is_empty() {
        call.reply.integer(found.map_or(0, |record| record.value.len() as i64));
        return Ok(());
    }
    let end = offset.saturating_add(part.len());
    if end > VALUE_LEN_MAX {
        return Err(Failure::TooLong);
    }
    let (mut value, flags, expires_at_ms) =
        found.map_or((Vec::new(), 0, None), |r| (r.value.to_vec(), r.flags, r.expires_at_ms));
    value.resize(value.len().max(end), 0);
    value[offset..end].copy_from_slice(part);
    tx.put(database, key, NewRecord { flags, expires_at_ms, ..NewRecord::of(&value) })?;
    call.reply.integer(value.len() as i64);
    Ok(())
}
