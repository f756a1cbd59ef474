//! The ids of entries in arguments.

use std::ops::RangeInclusive;

use tokaido_collections::StreamId;

use crate::redis::{call::Call, failure::Failure};

/// The id given to XADD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NewId {
    /// `*`: from the clock.
    Auto,
    /// `ms-*`: the next id with this time.
    Next { ms: u64 },
    /// An explicit id.
    Given(StreamId),
}

/// Parses an id. If it is only a time, its sequence number is `missing_seq`.
pub(super) fn parse(text: &[u8], missing_seq: u64) -> Result<StreamId, Failure> {
    let id = split(text).and_then(|(ms, seq)| {
        let seq = seq.map_or(Some(missing_seq), part)?;
        Some(StreamId { ms: part(ms)?, seq })
    });
    id.ok_or(Failure::StreamId)
}

/// Like [`parse`], but also accepts `-` for the smallest id and `+` for the largest.
pub(super) fn parse_end(text: &[u8], missing_seq: u64) -> Result<StreamId, Failure> {
    match text {
        b"-" => Ok(StreamId::MIN),
        b"+" => Ok(StreamId::MAX),
        _ => parse(text, missing_seq),
    }
}

/// The id for a new entry.
pub(super) fn parse_new(text: &[u8]) -> Result<NewId, Failure> {
    match split(text) {
        _ if text == b"*" => Ok(NewId::Auto),
        Some((ms, Some(b"*"))) => Ok(NewId::Next { ms: part(ms).ok_or(Failure::StreamId)? }),
        _ => Ok(NewId::Given(parse(text, 0)?)),
    }
}

/// The ids from one argument to another. A `(` before an id excludes it.
pub(super) fn range(
    call: &Call<'_>,
    low: usize,
    high: usize,
) -> Result<RangeInclusive<StreamId>, Failure> {
    let low = range_start(call, low)?;
    let high = match call.arg(high) {
        [b'(', rest @ ..] if !rest.is_empty() => {
            let id = parse(rest, u64::MAX)?;
            id.previous().ok_or_else(|| Failure::other("invalid end ID for the interval"))?
        }
        text => parse_end(text, u64::MAX)?,
    };
    Ok(low..=high)
}

/// The first id of a range.
pub(super) fn range_start(call: &Call<'_>, index: usize) -> Result<StreamId, Failure> {
    match call.arg(index) {
        [b'(', rest @ ..] if !rest.is_empty() => {
            let id = parse(rest, 0)?;
            id.next().ok_or_else(|| Failure::other("invalid start ID for the interval"))
        }
        text => parse_end(text, 0),
    }
}

/// The ids in the arguments from `first` on.
pub(super) fn all_from(call: &Call<'_>, first: usize) -> Result<Vec<StreamId>, Failure> {
    call.request.arguments_from(first).map(|text| parse(text, 0)).collect()
}

/// The two numbers of an id. The second may be missing.
fn split(text: &[u8]) -> Option<(&[u8], Option<&[u8]>)> {
    /// Maximum length of an id in Redis, in bytes.
    const LEN_MAX: usize = 127;
    if text.len() > LEN_MAX {
        return None;
    }
    Some(match text.iter().position(|&byte| byte == b'-') {
        Some(dash) => (&text[..dash], Some(&text[dash + 1..])),
        None => (text, None),
    })
}

/// Parses a number as C does: with optional leading spaces, a plus, and any number of 0s.
fn part(text: &[u8]) -> Option<u64> {
    let is_space = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0x0b;
    let start = text.iter().position(|byte| !is_space(byte))?;
    let digits = text[start..].strip_prefix(b"+").unwrap_or(&text[start..]);
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_as_redis_reads_them() {
        for (text, ms, seq) in [
            ("5", 5, 7),
            ("5-1", 5, 1),
            (" 5-+1", 5, 1),
            ("005-01", 5, 1),
            ("18446744073709551615-18446744073709551615", u64::MAX, u64::MAX),
        ] {
            assert_eq!(parse(text.as_bytes(), 7).unwrap(), StreamId { ms, seq }, "{text}");
        }
        let long = "0".repeat(128);
        for text in [
            "",
            "-",
            "+",
            "5-",
            "-5",
            "5-1-1",
            "5 ",
            "0x5",
            "x",
            "18446744073709551616",
            "5-*",
            &long,
        ] {
            assert!(parse(text.as_bytes(), 0).is_err(), "{text}");
        }
        assert_eq!(parse_end(b"-", 5).unwrap(), StreamId::MIN);
        assert_eq!(parse_end(b"+", 5).unwrap(), StreamId::MAX);
    }

    #[test]
    fn the_clock_makes_ids_or_parts_of_them() {
        assert_eq!(parse_new(b"*").unwrap(), NewId::Auto);
        assert_eq!(parse_new(b"5-*").unwrap(), NewId::Next { ms: 5 });
        assert_eq!(parse_new(b"5").unwrap(), NewId::Given(StreamId { ms: 5, seq: 0 }));
        assert!(parse_new(b"*-5").is_err() && parse_new(b"-*").is_err());
    }
}
