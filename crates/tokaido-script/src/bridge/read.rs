//! Reads of single records.

use tokaido_store::{Kind, Record};

use super::context::{Context, Fault, NO, YES, database};

/// The value of a record of bytes. In a collection's record the store's own data takes its place.
pub(super) fn value_of<'r>(record: &Record<'r>) -> Result<&'r [u8], Fault> {
    match record.kind {
        Kind::Bytes => Ok(record.value),
        kind => {
            let reader = match kind {
                Kind::Hash => "db:hash(key)",
                Kind::List => "db:list(key)",
                Kind::Set => "db:set(key)",
                Kind::SortedSet => "db:sorted_set(key)",
                Kind::Stream => "db:stream(key)",
                Kind::Bytes => "db:get(key)",
            };
            Err(Fault::refused(format_args!(
                "WRONGTYPE a {kind} is under this key, not bytes; {reader} reads it"
            )))
        }
    }
}

/// The value under a key, as the reply's data.
pub(super) fn get(context: &mut Context, index: i32, key: &[u8]) -> Result<i32, Fault> {
    let transaction = context.read()?;
    let Some(id) = database(index)? else { return Ok(NO) };
    match transaction.get(id, key)? {
        None => Ok(NO),
        Some(record) => {
            context.reply.data(value_of(&record)?);
            Ok(YES)
        }
    }
}

/// Whether a record exists.
pub(super) fn exists(context: &mut Context, index: i32, key: &[u8]) -> Result<i32, Fault> {
    let transaction = context.read()?;
    let Some(id) = database(index)? else { return Ok(NO) };
    let found = transaction.get(id, key)?.is_some();
    Ok(if found { YES } else { NO })
}

/// Value, flags, expiry (negative: never) and version; the code gives the version's width.
pub(super) fn record(context: &mut Context, index: i32, key: &[u8]) -> Result<i32, Fault> {
    let transaction = context.read()?;
    let Some(id) = database(index)? else { return Ok(NO) };
    match transaction.get(id, key)? {
        None => Ok(NO),
        Some(record) => {
            value_of(&record)?;
            Ok(context.reply.record(&record))
        }
    }
}

/// The number of records as the reply's number, the bytes of keys and values as its flags.
pub(super) fn statistics(context: &mut Context, index: i32) -> Result<i32, Fault> {
    let transaction = context.read()?;
    let statistics = match database(index)? {
        Some(id) => transaction.statistics(id)?,
        None => tokaido_store::DatabaseStatistics::default(),
    };
    context.reply.number = statistics.records as f64;
    context.reply.flags = (statistics.key_bytes + statistics.value_bytes) as f64;
    Ok(YES)
}
