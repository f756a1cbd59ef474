//! What the Tokyo Tyrant dialect needs from Rust, besides what it does to records and what it shares with
//! Kyoto Tycoon's.

use std::sync::Arc;

use md5::{Digest, Md5};

use super::{
    cabinet::{self, Pattern},
    context::{Context, Fault, NO, YES, database},
};
use crate::{
    CommandError, MiscCall,
    cabinet::{Groups, tokyo_codec},
    tyrant::{StashFull, StashPut},
};

/// The kinds of hash; `lua/tyrant/functions.lua` has the same. Any other is CRC-32.
const MD5: i32 = 0;
const MD5_RAW: i32 = 1;

/// Ways to put into the stash; `lua/tyrant/stash.lua` has the same. Any other replaces.
const KEEP: i32 = 1;
const APPEND: i32 = 2;

/// As `cabinet_regex`; an expression after a `*` ignores case.
pub(super) fn tyrant_regex(
    context: &mut Context,
    text: &[u8],
    pattern: &[u8],
    by: Option<&[u8]>,
) -> Result<i32, Fault> {
    let pattern = match pattern.strip_prefix(b"*") {
        Some(text) => Pattern { text, ignores_case: true },
        None => Pattern { text: pattern, ignores_case: false },
    };
    cabinet::regex(context, text, pattern, by, Groups::Backslash)
}

/// An encoded or decoded text, as the reply's data; `NO` if it is not in that encoding.
pub(super) fn tyrant_codec(context: &mut Context, mode: &[u8], text: &[u8]) -> Result<i32, Fault> {
    cabinet::made(context, tokyo_codec(mode, text))
}

/// A hash: MD5 as the reply's data, in digits or raw; CRC-32 as the reply's number.
pub(super) fn tyrant_hash(context: &mut Context, kind: i32, text: &[u8]) -> Result<i32, Fault> {
    if kind != MD5 && kind != MD5_RAW {
        context.reply.number = f64::from(crc32fast::hash(text));
        return Ok(YES);
    }
    let digest = Md5::digest(text);
    Ok(context.answer(|out| match kind {
        MD5_RAW => out.extend_from_slice(&digest),
        _ => digest.iter().for_each(|byte| out.extend_from_slice(format!("{byte:02x}").as_bytes())),
    }))
}

/// Puts a record into the stash.
pub(super) fn stash_put(
    context: &mut Context,
    key: &[u8],
    value: &[u8],
    how: i32,
) -> Result<i32, Fault> {
    let how = match how {
        KEEP => StashPut::Keep,
        APPEND => StashPut::Append,
        _ => StashPut::Replace,
    };
    context.tyrant.stash_put(key, value, how).map_err(|full: StashFull| Fault::refused(full))?;
    Ok(YES)
}

/// Removes a record from the stash.
pub(super) fn stash_out(context: &mut Context, key: &[u8]) -> Result<i32, Fault> {
    Ok(if context.tyrant.stash_out(key) { YES } else { NO })
}

/// The value of a record of the stash, as the reply's data.
pub(super) fn stash_get(context: &mut Context, key: &[u8]) -> Result<i32, Fault> {
    context.scratch.clear();
    let is_there = context.tyrant.stash_get(key, &mut context.scratch);
    context.reply.data(&context.scratch);
    Ok(if is_there { YES } else { NO })
}

/// Empties the stash.
pub(super) fn stash_vanish(context: &mut Context) -> Result<i32, Fault> {
    context.tyrant.stash_vanish();
    Ok(YES)
}

/// Key and value of the first record in the stash after a key, or of the first of all, as the reply's key and data.
pub(super) fn stash_next(context: &mut Context, behind: Option<&[u8]>) -> Result<i32, Fault> {
    context.scratch.clear();
    let Some(len) = context.tyrant.stash_next(behind, &mut context.scratch) else { return Ok(NO) };
    let (key, value) = context.scratch.split_at(len);
    context.reply.key(key);
    context.reply.data(value);
    Ok(YES)
}

/// Takes a lock, which is released if the call fails; `NO` if it is already taken.
pub(super) fn lock_take(context: &mut Context, key: &[u8]) -> Result<i32, Fault> {
    if !context.tyrant.lock(key) {
        return Ok(NO);
    }
    context.locks_taken.push(key.into());
    Ok(YES)
}

/// Releases a lock; `NO` if it was free.
pub(super) fn lock_free(context: &mut Context, key: &[u8]) -> Result<i32, Fault> {
    context.locks_taken.retain(|taken| &**taken != key);
    Ok(if context.tyrant.unlock(key) { YES } else { NO })
}

/// Sets the iterator that all scripts share to the first key.
pub(super) fn iterator_begin(context: &mut Context, index: i32) -> Result<i32, Fault> {
    let Some(id) = database(index)? else { return Ok(NO) };
    let transaction = context.read()?;
    context.tyrant.iterator().rewind(transaction, id)?;
    Ok(YES)
}

/// The key at the iterator, as the reply's data. The iterator then moves on.
pub(super) fn iterator_next(context: &mut Context, index: i32) -> Result<i32, Fault> {
    let Some(id) = database(index)? else { return Ok(NO) };
    let transaction = context.read()?;
    let found = context.tyrant.iterator().next(transaction, id)?;
    Ok(match found {
        Some(key) => context.answer(|out| out.extend_from_slice(&key)),
        None => NO,
    })
}

/// Calls a function of `misc` with the arguments that were gathered. Its results are fetched by `many_next`, and how
/// many there are is the reply's number; `NO` if it was refused.
pub(super) fn tyrant_misc(context: &mut Context, name: &[u8]) -> Result<i32, Fault> {
    if !context.has_host() {
        let message = "_misc needs a server around it, which has its functions";
        return Err(Fault::refused(message));
    }
    let commons = Arc::clone(&context.tyrant);
    let bytes_max = context.limits.many_bytes_max;
    let (host, transaction) = context.host()?;
    let arguments = &context.many.list.strings();
    let call = MiscCall { name, arguments, commons: &commons };
    let answered = host.misc(transaction, call).map_err(|error| match error {
        CommandError::Refused(message) => Fault::Refused(message),
        CommandError::Failed(message) => Fault::Poisoned(message),
    })?;
    let Some(items) = answered else { return Ok(NO) };
    let mut finding = context.many.found.begin(bytes_max);
    for item in &items {
        if finding.push(Some(item)).is_break() {
            break;
        }
    }
    context.reply.number = finding.count() as f64;
    finding.end()
}

/// It is unknown whether the database is a table; `lua/tyrant/records.lua` takes any code but `YES` and `NO` for it.
const NOBODY_KNOWS: i32 = 2;

/// Whether the database is a table, according to the server around the call.
pub(super) fn tyrant_is_table(context: &mut Context) -> Result<i32, Fault> {
    if !context.has_host() {
        return Ok(NOBODY_KNOWS);
    }
    let (host, _) = context.host()?;
    Ok(if host.is_table() { YES } else { NO })
}
