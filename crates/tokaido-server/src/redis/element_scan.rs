//! What HSCAN, SSCAN and ZSCAN have in common: the cursor, the options and the format of the reply.

use tokaido_store::ReadError;

use super::{
    call::Call,
    failure::Failure,
    glob,
    scan::{self, COUNT_DEFAULT},
    written::Written,
};

/// The options of a scan of elements.
pub(super) struct ElementScan<'c> {
    pattern: &'c [u8],
    pub(super) count: usize,
    pub(super) without_values: bool,
}

impl<'c> ElementScan<'c> {
    /// The cursor, which precedes the options.
    pub(super) fn cursor(call: &Call<'_>) -> Result<u64, Failure> {
        parse_cursor(call.arg(2)).ok_or_else(|| Failure::other("invalid cursor"))
    }

    /// The options after the cursor.
    pub(super) fn read(call: &Call<'c>) -> Result<Self, Failure> {
        let count = COUNT_DEFAULT.min(call.shared.limits().scan_count_max);
        let mut scan = Self { pattern: b"*", count, without_values: false };
        let mut at = 3;
        while at < call.len() {
            if call.is_word(at, "NOVALUES") && call.is_word(0, "HSCAN") {
                scan.without_values = true;
                at += 1;
                continue;
            }
            if call.is_word(at, "MATCH") && at + 1 < call.len() {
                scan.pattern = call.arg(at + 1);
            } else if call.is_word(at, "COUNT") && at + 1 < call.len() {
                scan.count = scan::count_at(call, at + 1)?;
            } else {
                return Err(Failure::Syntax);
            }
            at += 2;
        }
        Ok(scan)
    }

    pub(super) fn admits(&self, name: &[u8]) -> bool {
        glob::matches(self.pattern, name)
    }
}

/// Parses a cursor like C's unsigned conversion: a negative number counts down from the largest.
fn parse_cursor(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    match text.strip_prefix('-') {
        _ if text.is_empty() => Some(0),
        Some(digits) if digits.starts_with(|c: char| c.is_ascii_digit()) => {
            digits.parse().ok().map(u64::wrapping_neg)
        }
        Some(_) => None,
        None => text.parse().ok(),
    }
}

/// Writes the reply: the next cursor, and the elements. `page` writes the elements and returns the cursor.
pub(super) fn write(
    call: &mut Call<'_>,
    page: impl FnOnce(&mut Written<'_>) -> Result<u64, ReadError>,
) -> Result<(), Failure> {
    let mut found = Written::begin(call.reply);
    let next = page(&mut found)?;
    found.end(|reply, len| {
        reply.array(2);
        reply.bulk(next.to_string().as_bytes());
        reply.array(len);
    });
    Ok(())
}
