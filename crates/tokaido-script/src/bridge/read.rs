//! Reads of single records.

use super::context::{Context, NO, YES, bytes, database, native};

/// The value under a key, as the reply's data.
pub(super) unsafe extern "C" fn get(
    context: *mut Context,
    index: i32,
    key: *const u8,
    key_len: u32,
) -> i32 {
    // SAFETY: called from Lua with the VM's context and a Lua string.
    unsafe {
        native(context, |context| {
            let transaction = context.read()?;
            let Some(id) = database(index)? else { return Ok(NO) };
            match transaction.get(id, bytes(key, key_len))? {
                None => Ok(NO),
                Some(record) => {
                    context.reply.data(record.value);
                    Ok(YES)
                }
            }
        })
    }
}

/// Whether a record is there.
pub(super) unsafe extern "C" fn exists(
    context: *mut Context,
    index: i32,
    key: *const u8,
    key_len: u32,
) -> i32 {
    // SAFETY: called from Lua with the VM's context and a Lua string.
    unsafe {
        native(context, |context| {
            let transaction = context.read()?;
            let Some(id) = database(index)? else { return Ok(NO) };
            let found = transaction.get(id, bytes(key, key_len))?.is_some();
            Ok(if found { YES } else { NO })
        })
    }
}

/// Value, flags, expiry (negative: never) and version; the code tells the version's width.
pub(super) unsafe extern "C" fn record(
    context: *mut Context,
    index: i32,
    key: *const u8,
    key_len: u32,
) -> i32 {
    // SAFETY: called from Lua with the VM's context and a Lua string.
    unsafe {
        native(context, |context| {
            let transaction = context.read()?;
            let Some(id) = database(index)? else { return Ok(NO) };
            match transaction.get(id, bytes(key, key_len))? {
                None => Ok(NO),
                Some(record) => Ok(context.reply.record(&record)),
            }
        })
    }
}

/// Records as the reply's number, bytes of keys and values as its flags.
pub(super) unsafe extern "C" fn statistics(context: *mut Context, index: i32) -> i32 {
    // SAFETY: called from Lua with the VM's context.
    unsafe {
        native(context, |context| {
            let transaction = context.read()?;
            let statistics = match database(index)? {
                Some(id) => transaction.statistics(id)?,
                None => tokaido_store::DatabaseStatistics::default(),
            };
            context.reply.number = statistics.records as f64;
            context.reply.flags = (statistics.key_bytes + statistics.value_bytes) as f64;
            Ok(YES)
        })
    }
}
