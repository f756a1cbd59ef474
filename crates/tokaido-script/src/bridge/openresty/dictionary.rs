//! Shared dictionaries: caches, whose values may also be numbers, booleans and lists. They need no
//! transaction, and are available while files are loaded, too.

use std::sync::Arc;

use tokaido_store::{
    Marks, NewRecord,
    cache::{Cursor, DictionaryError, Element, End, NumberText, Put, ScanPage, parse_number},
    composite,
};

use super::super::context::{Context, Fault, NO, WIDE, YES};

/// The type of a value; `lua/ngx/shared.lua` has the same.
const STRING: i32 = 1;
const NUMBER: i32 = 2;
const BOOLEAN: i32 = 3;
const LIST: i32 = 4;

/// How a value is put; `lua/ngx/shared.lua` has the same.
const ADD: i32 = 1;
const REPLACE: i32 = 2;
const SAFE: i32 = 4;

/// Records checked in one step of an operation that visits all.
const RECORDS_PER_STEP: usize = 1000;

/// A bucket of a cache holds about this many records.
const RECORDS_PER_BUCKET: usize = 8;

/// Maximum total size of one list of keys, in bytes.
const KEYS_BYTES_MAX: usize = 64 << 20;

/// The index of the dictionary of that name, as the reply's number; `NO` if there is none.
pub(crate) fn dict_open(context: &mut Context, name: &[u8]) -> Result<i32, Fault> {
    let Ok(name) = std::str::from_utf8(name) else { return Ok(NO) };
    let Ok(store) = context.store().map(Arc::clone) else { return Ok(NO) };
    let Some(id) = store.find_database(name) else { return Ok(NO) };
    let Some(cache) = composite::cache(&*store, id) else { return Ok(NO) };
    context.keep_cache(id, cache);
    context.reply.number = id.index() as f64;
    Ok(YES)
}

/// The names of all dictionaries as data, each followed by a line feed.
pub(crate) fn dict_names(context: &mut Context) -> Result<i32, Fault> {
    let Ok(store) = context.store().map(Arc::clone) else { return Ok(NO) };
    let mut databases = store.databases();
    databases.retain(|(id, _)| composite::cache(&*store, *id).is_some());
    Ok(context.answer(|out| {
        for (_, name) in databases {
            out.extend_from_slice(name.as_bytes());
            out.push(b'\n');
        }
    }))
}

fn marks_of(form: i32) -> Marks {
    match form {
        NUMBER => Marks::NUMBER,
        BOOLEAN => Marks::BOOLEAN,
        _ => Marks::NONE,
    }
}

fn form_of(marks: Marks) -> i32 {
    match marks.form() {
        Marks::NUMBER => NUMBER,
        Marks::BOOLEAN => BOOLEAN,
        Marks::LIST => LIST,
        _ => STRING,
    }
}

/// A value: its type as the code, its text as the data and number, its flags. `NO` if there is none.
pub(crate) fn dict_get(context: &mut Context, index: i32, key: &[u8]) -> Result<i32, Fault> {
    let cache = context.dictionary(index)?;
    let Some(found) = cache.get(key, &mut context.scratch)? else { return Ok(NO) };
    let mut form = form_of(found.marks);
    if form == NUMBER {
        match parse_number(&context.scratch) {
            Some(number) => context.reply.number = number,
            // Another protocol has written something that is not a number.
            None => form = STRING,
        }
    }
    context.reply.data(&context.scratch);
    context.reply.flags = f64::from(found.flags);
    Ok(form)
}

/// Puts a value; `WIDE` if others were evicted. `NO` if it was refused, with the reason as data.
#[expect(clippy::too_many_arguments, reason = "all that a value has")]
pub(crate) fn dict_put(
    context: &mut Context,
    index: i32,
    key: &[u8],
    form: i32,
    text: &[u8],
    number: f64,
    ttl_ms: f64,
    flags: f64,
    how: i32,
) -> Result<i32, Fault> {
    let cache = context.dictionary(index)?;
    let mut digits = NumberText::default();
    let value = if form == NUMBER { digits.write(number) } else { text };
    let record = NewRecord {
        flags: flags as u32,
        expires_at_ms: (ttl_ms > 0.0).then(|| cache.in_ms(ttl_ms as u64)),
        marks: marks_of(form),
        ..NewRecord::of(value)
    };
    let put = match how & !SAFE {
        ADD => Put::IfAbsent,
        REPLACE => Put::IfPresent,
        _ => Put::Always,
    };
    match cache.put_value(key, record, put, how & SAFE == 0) {
        Ok(is_forced) => Ok(if is_forced { WIDE } else { YES }),
        Err(error) => Ok(context.refuse(&error)),
    }
}

/// Adds to a number: the sum as the reply's number; `WIDE` if others were evicted. `NO` if it was
/// refused, with the reason as data.
pub(crate) fn dict_incr(
    context: &mut Context,
    index: i32,
    key: &[u8],
    by: f64,
    has_start: i32,
    start: f64,
    ttl_ms: f64,
) -> Result<i32, Fault> {
    let cache = context.dictionary(index)?;
    let start =
        (has_start != 0).then(|| (start, (ttl_ms > 0.0).then(|| cache.in_ms(ttl_ms as u64))));
    match cache.add_to_number(key, by, start) {
        Ok((sum, is_forced)) => {
            context.reply.number = sum;
            Ok(if is_forced { WIDE } else { YES })
        }
        Err(error) => Ok(context.refuse(&error)),
    }
}

/// Deletes a value.
pub(crate) fn dict_delete(context: &mut Context, index: i32, key: &[u8]) -> Result<i32, Fault> {
    context.dictionary(index)?.delete(key)?;
    Ok(YES)
}

fn end_of(is_left: i32) -> End {
    if is_left != 0 { End::Left } else { End::Right }
}

/// Adds to a list: its new length as the reply's number. `NO` if it was refused.
pub(crate) fn dict_push(
    context: &mut Context,
    index: i32,
    key: &[u8],
    is_left: i32,
    form: i32,
    text: &[u8],
    number: f64,
) -> Result<i32, Fault> {
    let cache = context.dictionary(index)?;
    let mut digits = NumberText::default();
    let is_number = form == NUMBER;
    let text = if is_number { digits.write(number) } else { text };
    match cache.push(key, end_of(is_left), Element { text, is_number }) {
        Ok(len) => {
            context.reply.number = f64::from(len);
            Ok(YES)
        }
        Err(error) => Ok(context.refuse(&error)),
    }
}

/// Takes from a list: as `dict_get`; -2 if it is not a list.
pub(crate) fn dict_pop(
    context: &mut Context,
    index: i32,
    key: &[u8],
    is_left: i32,
) -> Result<i32, Fault> {
    let cache = context.dictionary(index)?;
    match cache.pop(key, end_of(is_left), &mut context.scratch) {
        Ok(None) => Ok(NO),
        Ok(Some(is_number)) => {
            context.reply.number = match is_number {
                true => parse_number(&context.scratch).unwrap_or(f64::NAN),
                false => 0.0,
            };
            context.reply.data(&context.scratch);
            Ok(if is_number { NUMBER } else { STRING })
        }
        Err(error) => {
            context.refuse(&error);
            Ok(LIST)
        }
    }
}

/// The length of a list, as the reply's number; `NO` if it is not a list.
pub(crate) fn dict_len(context: &mut Context, index: i32, key: &[u8]) -> Result<i32, Fault> {
    match context.dictionary(index)?.list_len(key) {
        Ok(len) => {
            context.reply.number = f64::from(len);
            Ok(YES)
        }
        Err(error) => Ok(context.refuse(&error)),
    }
}

/// The milliseconds that a value has left, as the reply's number; 0 if it never expires, `NO` if there
/// is none.
pub(crate) fn dict_ttl(context: &mut Context, index: i32, key: &[u8]) -> Result<i32, Fault> {
    match context.dictionary(index)?.time_to_live(key) {
        Ok(left_ms) => {
            context.reply.number = left_ms.map_or(0.0, |left_ms| left_ms as f64);
            Ok(YES)
        }
        Err(error) => Ok(context.refuse(&error)),
    }
}

/// Gives a value another time to live, in milliseconds; 0 is forever. `NO` if there is none.
pub(crate) fn dict_expire(
    context: &mut Context,
    index: i32,
    key: &[u8],
    ttl_ms: f64,
) -> Result<i32, Fault> {
    let cache = context.dictionary(index)?;
    let at = (ttl_ms > 0.0).then(|| cache.in_ms(ttl_ms as u64));
    Ok(if cache.touch(key, at)? { YES } else { NO })
}

/// Deletes every value.
pub(crate) fn dict_flush_all(context: &mut Context, index: i32) -> Result<i32, Fault> {
    context.dictionary(index)?.flush_all(0);
    Ok(YES)
}

/// Removes expired values, until `max` were removed or all were checked; 0 is no limit. The reply's
/// number is how many were removed.
pub(crate) fn dict_flush_expired(
    context: &mut Context,
    index: i32,
    max: f64,
) -> Result<i32, Fault> {
    let cache = context.dictionary(index)?;
    let mut left = cache.statistics().records as usize + RECORDS_PER_STEP;
    let mut removed = 0;
    // Twice around, since a step checks buckets, some of which are fuller than others.
    left *= 2;
    while left > 0 && (max <= 0.0 || (removed as f64) < max) {
        let step = left.min(RECORDS_PER_STEP);
        let removed_max = if max > 0.0 { max as usize - removed } else { usize::MAX };
        removed += cache.remove_some_expired(step.div_ceil(RECORDS_PER_BUCKET), removed_max);
        left -= step;
        if crate::watchdog::is_stopping() {
            break;
        }
    }
    context.reply.number = removed as f64;
    Ok(YES)
}

/// Up to that many keys, 0 for all, as data: each preceded by its length, in four bytes.
pub(crate) fn dict_keys(context: &mut Context, index: i32, max: f64) -> Result<i32, Fault> {
    let cache = context.dictionary(index)?;
    let mut count = 0.0;
    let (mut cursor, mut page) = (Some(Cursor::default()), ScanPage::default());
    context.scratch.clear();
    while let Some(at) = cursor.filter(|_| max <= 0.0 || count < max) {
        cursor = cache.scan(at, RECORDS_PER_STEP, &mut page);
        for entry in page.entries() {
            if max > 0.0 && count >= max || context.scratch.len() > KEYS_BYTES_MAX {
                break;
            }
            context.scratch.extend_from_slice(&(entry.key.len() as u32).to_le_bytes());
            context.scratch.extend_from_slice(entry.key);
            count += 1.0;
        }
        if crate::watchdog::is_stopping() || context.scratch.len() > KEYS_BYTES_MAX {
            break;
        }
    }
    context.reply.data(&context.scratch);
    context.reply.number = count;
    Ok(YES)
}

/// How many bytes a dictionary may use, as the reply's number, and how many it does, as its flags.
pub(crate) fn dict_size(context: &mut Context, index: i32) -> Result<i32, Fault> {
    let statistics = context.dictionary(index)?.statistics();
    context.reply.number = statistics.bytes_max as f64;
    context.reply.flags = statistics.bytes_used as f64;
    Ok(YES)
}

impl Context {
    /// Answers with the reason why a dictionary was not changed.
    fn refuse(&mut self, error: &DictionaryError) -> i32 {
        let why = match error {
            // The wording that scripts know it by.
            DictionaryError::Write(_) => DictionaryError::NoMemory.to_string(),
            other => other.to_string(),
        };
        self.answer(|out| out.extend_from_slice(why.as_bytes()));
        NO
    }
}
