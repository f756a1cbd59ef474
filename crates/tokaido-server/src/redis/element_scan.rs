//! What HSCAN, SSCAN and ZSCAN have in common: the cursor, the options and the form of the reply.

use super::{call::Call, failure::Failure, glob, scan::COUNT_DEFAULT};

/// The options of a scan of elements.
pub(super) struct ElementScan<'c> {
    pattern: &'c [u8],
    pub(super) count: usize,
    pub(super) without_values: bool,
}

impl<'c> ElementScan<'c> {
    /// The cursor, which comes before everything else.
    pub(super) fn cursor(call: &Call<'_>) -> Result<u64, Failure> {
        parse_cursor(call.arg(2)).ok_or_else(|| Failure::other("invalid cursor"))
    }

    /// The options behind it.
    pub(super) fn read(call: &Call<'c>) -> Result<Self, Failure> {
        let count_max = call.shared.limits().scan_count_max;
        let count = COUNT_DEFAULT.min(count_max);
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
                let count = usize::try_from(call.integer(at + 1)?).unwrap_or(0);
                if count == 0 {
                    return Err(Failure::Syntax);
                }
                scan.count = count.min(count_max);
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

/// Reads a cursor as C reads an unsigned number: a negative one is counted down from the largest.
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

/// The reply: the next cursor, and what was found.
pub(super) fn write(call: &mut Call<'_>, next: u64, found: &[Vec<u8>]) {
    call.reply.array(2);
    call.reply.bulk(next.to_string().as_bytes());
    call.reply.array(found.len());
    for text in found {
        call.reply.bulk(text);
    }
}
