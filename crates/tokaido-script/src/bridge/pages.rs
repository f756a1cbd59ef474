//! A page of a scan over an unordered database or over a collection: loaded at once, handed out one by
//! one.

use super::context::{BUFFER_KEPT_MAX, Context, Fault, NO, YES, database};

/// The last page that was loaded.
#[derive(Default)]
pub(crate) struct LoadedPage {
    /// Keys and values, one after the other.
    bytes: Vec<u8>,
    /// The lengths of a key and its value, and the number that goes with them.
    entries: Vec<(usize, usize, f64)>,
    next: usize,
    /// Where the next entry is in `bytes`.
    at: usize,
}

impl LoadedPage {
    /// Empties it, and keeps at most that much memory.
    pub(super) fn clear(&mut self, bytes_max: usize) {
        (self.next, self.at) = (0, 0);
        self.bytes.clear();
        self.bytes.shrink_to(bytes_max);
        self.entries.clear();
    }

    /// Adds an entry.
    pub(super) fn push(&mut self, key: &[u8], value: &[u8], number: f64) {
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        self.entries.push((key.len(), value.len(), number));
    }

    /// Total length of all keys and values, in bytes.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }
}

/// Loads about `records` entries from a cursor on, their values only if `has_values` is `YES`. The
/// reply's number is the next cursor; the code is `NO` if there is none.
pub(super) fn page_load(
    context: &mut Context,
    index: i32,
    cursor: f64,
    records: i32,
    has_values: i32,
) -> Result<i32, Fault> {
    let transaction = context.read()?;
    let page = &mut context.page;
    page.clear(BUFFER_KEPT_MAX);
    let Some(id) = database(index)? else { return Ok(NO) };
    let records = usize::try_from(records).unwrap_or(0);
    // Cursors are below 2^52, which a double holds exactly.
    let next = transaction.page(id, cursor as u64, records, &mut |entry| {
        let value = if has_values == YES { entry.record.value } else { &[] };
        page.push(entry.key, value, 0.0);
    })?;
    context.reply.number = next.unwrap_or(0) as f64;
    Ok(if next.is_some() { YES } else { NO })
}

/// The next entry of the page, with its number; `NO` at its end.
pub(super) fn page_next(context: &mut Context) -> Result<i32, Fault> {
    let page = &mut context.page;
    let Some(&(key_len, value_len, number)) = page.entries.get(page.next) else { return Ok(NO) };
    let entry = page.bytes.get(page.at..page.at + key_len + value_len);
    let entry = entry.ok_or_else(|| Fault::refused("a page has lost its end"))?;
    page.next += 1;
    page.at += key_len + value_len;
    let (key, value) = entry.split_at(key_len);
    context.reply.key(key);
    context.reply.data(value);
    context.reply.number = number;
    Ok(YES)
}
