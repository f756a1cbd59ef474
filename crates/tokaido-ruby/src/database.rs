//! Operations on databases.

use std::sync::Arc;

use tokaido_script::{Fault, Value};
use tokaido_store::{
    Condition, DatabaseError, DatabaseId, Kind, NewRecord, Record, WriteError, WriteOperations,
    check_database_name,
};

use crate::{
    context::{Context, database_of, text_of},
    items::{self, Argument},
    operation::Operation,
};

/// The value of a record that holds bytes. The record of a collection has the store's own data in its place.
#[inline]
pub(crate) fn value_of<'r>(record: &Record<'r>) -> Result<&'r [u8], Fault> {
    if record.kind == Kind::Bytes { Ok(record.value) } else { Err(other_kind(record.kind)) }
}

#[cold]
fn other_kind(kind: Kind) -> Fault {
    let reader = match kind {
        Kind::Hash => "db.hash_at(key)",
        Kind::List => "db.list_at(key)",
        Kind::Set => "db.set_at(key)",
        Kind::SortedSet => "db.sorted_set_at(key)",
        Kind::Stream => "db.stream_at(key)",
        Kind::Bytes => "db.get(key)",
    };
    Fault::refused(format_args!(
        "WRONGTYPE a {kind} is under this key, not bytes; {reader} reads it"
    ))
}

/// Read operations.
pub(crate) fn read(
    context: &mut Context,
    operation: Operation,
    this: i64,
    arguments: &[Argument<'_>],
) -> Result<(), Fault> {
    let transaction = context.read()?;
    let Some(id) = database_of(this)? else {
        answer_empty(context, operation);
        return Ok(());
    };
    match operation {
        Operation::Statistics => {
            let found = transaction.statistics(id)?;
            let sizes = [found.records, found.key_bytes + found.value_bytes];
            context.answer.push(items::array(2));
            context.answer.extend(sizes.map(|size| items::integer(size as i64)));
            return Ok(());
        }
        Operation::GetMany => return get_many(context, id),
        _ => {}
    }
    let key = arguments[0].text("a key")?;
    match operation {
        Operation::Get => {
            if let Some(record) = transaction.get(id, &key)? {
                context.answer.push(items::bytes(value_of(&record)?));
            }
        }
        Operation::Has => {
            let is_there = transaction.get(id, &key)?.is_some();
            context.answer.push(items::boolean(is_there));
        }
        Operation::Record => {
            if let Some(record) = transaction.get(id, &key)? {
                let value = items::bytes(value_of(&record)?);
                let nil = items::of_kind(tokaido_mruby_sys::NIL);
                let expiry = record.expires_at_ms.map_or(nil, |at| items::integer(at as i64));
                let flags = items::integer(record.flags.into());
                let version = items::integer(i64::try_from(record.version).unwrap_or(i64::MAX));
                context.answer.extend([items::array(4), value, flags, version, expiry]);
            }
        }
        _ => {
            let (mut values, mut wrong) = (Vec::new(), None);
            transaction.get_all(id, &key, &mut |record| match value_of(&record) {
                Ok(value) => values.push(Value::String(value.to_vec())),
                Err(fault) => wrong = Some(fault),
            })?;
            wrong.map_or(Ok(()), Err)?;
            context.answer_value(Value::Array(values));
        }
    }
    Ok(())
}

/// The answer of a database that does not exist yet.
fn answer_empty(context: &mut Context, operation: Operation) {
    match operation {
        Operation::Has => context.answer.push(items::boolean(false)),
        Operation::GetMany => context.answer.push(items::map(0)),
        Operation::GetAll => context.answer.push(items::array(0)),
        Operation::Statistics => {
            context.answer.extend([items::array(2), items::integer(0), items::integer(0)]);
        }
        _ => {}
    }
}

/// The records of those keys that exist.
fn get_many(context: &mut Context, id: DatabaseId) -> Result<(), Fault> {
    let Value::Array(keys) = context.gathering.take() else {
        return Err(Fault::refused("get_many takes an array of keys"));
    };
    let keys_max = context.limits.many_keys_max;
    if keys.len() > keys_max {
        return Err(Fault::Refused(format!("at most {keys_max} keys are taken at once")));
    }
    let keys: Vec<Vec<u8>> =
        keys.into_iter().map(|key| text_of(key, "a key")).collect::<Result<_, _>>()?;
    let (mut found, mut wrong, mut bytes) = (Vec::new(), None, 0);
    let texts: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    let bytes_max = context.limits.many_bytes_max;
    context.read()?.get_many(id, &texts, &mut |place, record| {
        let Some(record) = record else { return };
        bytes += record.value.len();
        match value_of(&record) {
            Err(fault) => wrong = Some(fault),
            Ok(_) if bytes > bytes_max => {}
            Ok(value) => found.push((place, value.to_vec())),
        }
    })?;
    wrong.map_or(Ok(()), Err)?;
    if bytes > bytes_max {
        return Err(Fault::Refused(format!(
            "at most {bytes_max} bytes are brought at once; ask for less"
        )));
    }
    let pair = |(place, value): (usize, Vec<u8>)| {
        (Value::String(keys[place].clone()), Value::String(value))
    };
    context.answer_value(Value::Map(found.into_iter().map(pair).collect()));
    Ok(())
}

/// Write operations.
pub(crate) fn write(
    context: &mut Context,
    operation: Operation,
    this: i64,
    arguments: &[Argument<'_>],
) -> Result<(), Fault> {
    let transaction = context.write()?;
    let id = database_of(this)?.ok_or_else(|| {
        Fault::refused(
            "this database was taken from a read transaction, where it did not exist; take it from tx again",
        )
    })?;
    if operation == Operation::Clear {
        return Ok(transaction.clear(id)?);
    }
    let key = arguments[0].text("a key")?;
    let answer = match operation {
        Operation::Put => {
            transaction.put(id, &key, NewRecord::of(&arguments[1].text("a value")?))?;
            None
        }
        Operation::PutWith => Some(items::boolean(put_with(context, id, &key, arguments)?)),
        Operation::Swap => {
            let expected = arguments[1].optional_text("the value that is expected")?;
            let value = arguments[2].optional_text("a value")?;
            Some(items::boolean(swap(context, id, &key, expected.as_deref(), value.as_deref())?))
        }
        Operation::Delete => Some(items::boolean(transaction.delete(id, &key)?)),
        Operation::Increment => {
            let by = arguments.get(1).map_or(Ok(1), |by| by.integer("the increment"))?;
            Some(items::integer(transaction.increment(id, &key, by)?))
        }
        Operation::IncrementFloat => {
            let by = arguments[1].number("the increment")?;
            Some(items::number(transaction.increment_float(id, &key, by)?))
        }
        Operation::Append => {
            let len = transaction.append(id, &key, &arguments[1].text("a value")?)?;
            Some(items::integer(len as i64))
        }
        _ => Some(items::boolean(expire(context, id, &key, arguments[1])?)),
    };
    context.answer.extend(answer);
    Ok(())
}

/// The arguments are key, value, time to live, expiry, flags and condition.
fn put_with(
    context: &mut Context,
    id: DatabaseId,
    key: &[u8],
    arguments: &[Argument<'_>],
) -> Result<bool, Fault> {
    let transaction = context.write()?;
    let value = arguments[1].text("a value")?;
    let expires_at_ms = match (arguments[2], arguments[3]) {
        (Argument::Nil, Argument::Nil) => None,
        (Argument::Nil, at) => Some(at.number("expires_at_ms")?),
        (ttl, _) => Some(transaction.now_ms() as f64 + ttl.number("ttl_ms")?),
    };
    let flags = u32::try_from(arguments[4].integer("flags")?)
        .map_err(|_| Fault::refused("flags are an integer from 0 to 4294967295"))?;
    let expires_at_ms = expires_at_ms.map(|at| at.max(0.0) as u64);
    let record = NewRecord { flags, expires_at_ms, ..NewRecord::of(&value) };
    let condition = match arguments[5] {
        Argument::Bytes(b"absent") => Condition::Absent,
        Argument::Bytes(b"present") => Condition::Present,
        _ => {
            transaction.put(id, key, record)?;
            return Ok(true);
        }
    };
    Ok(transaction.put_if(id, key, condition, record)?)
}

/// Compare and set, where nil stands for no record, as the old or the new value.
fn swap(
    context: &mut Context,
    id: DatabaseId,
    key: &[u8],
    expected: Option<&[u8]>,
    value: Option<&[u8]>,
) -> Result<bool, Fault> {
    let transaction = context.write()?;
    if let Some(value) = value {
        let condition = expected.map_or(Condition::Absent, Condition::Value);
        return Ok(transaction.put_if(id, key, condition, NewRecord::of(value))?);
    }
    let is_same = match transaction.get(id, key)? {
        None => expected.is_none(),
        Some(record) => expected == Some(value_of(&record)?),
    };
    if is_same && expected.is_some() {
        transaction.delete(id, key)?;
    }
    Ok(is_same)
}

/// Changes or removes the expiry of a record; returns whether the record exists.
fn expire(
    context: &mut Context,
    id: DatabaseId,
    key: &[u8],
    ttl_ms: Argument<'_>,
) -> Result<bool, Fault> {
    let transaction = context.write()?;
    let expires_at_ms = match ttl_ms {
        Argument::Nil => None,
        ttl => Some((transaction.now_ms() as f64 + ttl.number("ttl_ms")?).max(0.0) as u64),
    };
    let Some(old) = transaction.get(id, key)? else { return Ok(false) };
    context.scratch = old.value.to_vec();
    let record = old.with_same_value(&context.scratch).expiring(expires_at_ms);
    transaction.put(id, key, record)?;
    Ok(true)
}

/// Operations that need no database.
pub(crate) fn other(
    context: &mut Context,
    operation: Operation,
    arguments: &[Argument<'_>],
) -> Result<(), Fault> {
    match operation {
        Operation::Open => return open(context, arguments[0]),
        Operation::Drop => {
            let is_dropped = drop_database(context, arguments[0])?;
            context.answer.push(items::boolean(is_dropped));
        }
        Operation::Now => {
            let now_ms = context.read()?.now_ms();
            context.answer.push(items::integer(now_ms as i64));
        }
        Operation::Writable => {
            context.read()?;
            context.answer.push(items::boolean(context.is_writable()));
        }
        Operation::Writes => context.answer.push(items::integer(context.writes)),
        _ => log(context, arguments)?,
    }
    Ok(())
}

/// A database by name, and whether it exists. If it does not, a read transaction gets one that reads as empty. A write
/// transaction gets one whose number is valid until the transaction ends, or longer if it is written to.
fn open(context: &mut Context, name: Argument<'_>) -> Result<(), Fault> {
    let name = name_of(name)?;
    // Without a running transaction, the object would pass as permission to write.
    context.read()?;
    check_database_name(&name).map_err(Fault::refused)?;
    let store = Arc::clone(context.store()?);
    let (number, is_there) = match store.find_database(&name) {
        Some(id) => (id.index() as i64, true),
        None if context.is_writable() => {
            (context.write()?.open_database(&name, usize::MAX)?.index() as i64, false)
        }
        None => (-1, false),
    };
    let database = items::integer(number);
    let database = tokaido_mruby_sys::Item { kind: tokaido_mruby_sys::DATABASE, ..database };
    context.answer.extend([items::array(2), database, items::boolean(is_there)]);
    Ok(())
}

fn name_of(name: Argument<'_>) -> Result<String, Fault> {
    let name = name.text("the name of a database")?;
    String::from_utf8(name.into_owned()).map_err(|error| {
        let name = String::from_utf8_lossy(error.as_bytes()).into_owned();
        Fault::refused(DatabaseError::BadName { name })
    })
}

fn drop_database(context: &mut Context, name: Argument<'_>) -> Result<bool, Fault> {
    let name = name_of(name)?;
    let transaction = context.write()?;
    let id = match transaction.open_database(&name, 0) {
        Err(WriteError::Name(DatabaseError::TooMany { .. })) => return Ok(false),
        opened => opened?,
    };
    Ok(transaction.drop_database(id)?)
}

/// Writes a line to the server's log.
fn log(context: &mut Context, arguments: &[Argument<'_>]) -> Result<(), Fault> {
    let (level, message) = (arguments[0].text("a level")?, arguments[1].text("a message")?);
    let shown = message.len().min(context.limits.log_len_max);
    let message = String::from_utf8_lossy(&message[..shown]);
    let procedure = context.procedure.as_str();
    match &*level {
        b"error" => tracing::error!(target: "procedure", procedure, "{message}"),
        b"warn" => tracing::warn!(target: "procedure", procedure, "{message}"),
        b"info" => tracing::info!(target: "procedure", procedure, "{message}"),
        b"debug" => tracing::debug!(target: "procedure", procedure, "{message}"),
        _ => return Err(Fault::refused("a level is :error, :warn, :info or :debug")),
    }
    Ok(())
}
