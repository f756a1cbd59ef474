//! `cjson.encode`: JSON as lua-cjson writes it for Redis scripts.

use super::number::{format_general, type_name};
use crate::{Value, convert::VALUES_PER_LOOK, watchdog};

/// What `cjson.encode_…` has set.
pub(super) struct Options {
    /// Whether a sparse array becomes an object instead of an error.
    pub(super) sparse_converts: bool,
    /// An array is sparse if its length is more than this many times its element count; 0: never.
    pub(super) sparse_ratio: u64,
    /// No array up to this length is sparse.
    pub(super) sparse_safe: u64,
    /// Maximum length of the text.
    pub(super) len_max: usize,
    pub(super) depth_max: usize,
    pub(super) digits: u8,
    pub(super) invalid_numbers: InvalidNumbers,
}

/// How NaN and infinity are handled, which JSON does not have.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum InvalidNumbers {
    Refused,
    Written,
    Null,
}

/// Appends the JSON of a value.
pub(super) fn encode(
    value: &Value,
    options: &Options,
    depth: usize,
    out: &mut Vec<u8>,
) -> Result<(), String> {
    if out.len() > options.len_max {
        return Err(format!("Cannot serialise, more than {} bytes", options.len_max));
    }
    match value {
        Value::Nil => out.extend_from_slice(b"null"),
        Value::Boolean(true) => out.extend_from_slice(b"true"),
        Value::Boolean(false) => out.extend_from_slice(b"false"),
        Value::Integer(integer) => {
            out.extend_from_slice(format_general(*integer as f64, options.digits).as_bytes());
        }
        Value::Number(number) => encode_number(*number, options, out)?,
        Value::String(text) => encode_string(text, out),
        Value::Array(_) | Value::Map(_) if depth >= options.depth_max => {
            return Err(format!("Cannot serialise, excessive nesting ({})", depth + 1));
        }
        Value::Array(items) if items.is_empty() => out.extend_from_slice(b"{}"),
        Value::Array(items) => encode_array(items.iter(), options, depth + 1, out)?,
        Value::Map(entries) => match array_len(entries, options)? {
            Some(len) => {
                encode_array(with_holes(entries, len), options, depth + 1, out)?;
            }
            None => encode_object(entries, options, depth + 1, out)?,
        },
    }
    Ok(())
}

fn encode_number(number: f64, options: &Options, out: &mut Vec<u8>) -> Result<(), String> {
    let text = match options.invalid_numbers {
        _ if number.is_finite() => format_general(number, options.digits),
        InvalidNumbers::Refused => {
            return Err("Cannot serialise number: must not be NaN or Inf".to_owned());
        }
        InvalidNumbers::Null => "null".to_owned(),
        InvalidNumbers::Written if number.is_nan() => "nan".to_owned(),
        InvalidNumbers::Written => format_general(number, options.digits),
    };
    out.extend_from_slice(text.as_bytes());
    Ok(())
}

fn encode_string(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for &byte in text {
        let escape: &[u8] = match byte {
            b'"' => b"\\\"",
            b'\\' => b"\\\\",
            b'/' => b"\\/",
            b'\t' => b"\\t",
            b'\n' => b"\\n",
            b'\r' => b"\\r",
            0x08 => b"\\b",
            0x0c => b"\\f",
            0..=0x1f | 0x7f => {
                out.extend_from_slice(format!("\\u{byte:04x}").as_bytes());
                continue;
            }
            _ => {
                out.push(byte);
                continue;
            }
        };
        out.extend_from_slice(escape);
    }
    out.push(b'"');
}

/// The length of a table whose keys are all integers from 1 up, maybe with holes; else `None`.
fn array_len(entries: &[(Value, Value)], options: &Options) -> Result<Option<u64>, String> {
    let place = |(key, _): &(Value, Value)| match key {
        Value::Integer(place) => u64::try_from(*place).ok().filter(|&place| place > 0),
        _ => None,
    };
    let Some(places) = entries.iter().map(place).collect::<Option<Vec<u64>>>() else {
        return Ok(None);
    };
    let Some(len) = places.into_iter().max() else { return Ok(None) };
    let ratio = options.sparse_ratio;
    let dense_len = (entries.len() as u64).saturating_mul(ratio);
    if ratio > 0 && len > dense_len && len > options.sparse_safe {
        if options.sparse_converts {
            return Ok(None);
        }
        return Err("Cannot serialise table: excessively sparse array".to_owned());
    }
    Ok(Some(len))
}

/// The elements of such a table, whose entries are sorted, holes included.
fn with_holes(entries: &[(Value, Value)], len: u64) -> impl Iterator<Item = &Value> {
    let mut entries = entries.iter().peekable();
    (1..=len).map(move |place| {
        let next = entries.next_if(|(key, _)| *key == Value::Integer(place.cast_signed()));
        next.map_or(&Value::Nil, |(_, item)| item)
    })
}

fn encode_array<'v>(
    items: impl Iterator<Item = &'v Value>,
    options: &Options,
    depth: usize,
    out: &mut Vec<u8>,
) -> Result<(), String> {
    for (place, item) in items.enumerate() {
        // Holes are written, too, and were not counted before.
        if place.is_multiple_of(VALUES_PER_LOOK) && watchdog::is_stopping() {
            return Err("Cannot serialise, the time limit is over".to_owned());
        }
        out.push(if place == 0 { b'[' } else { b',' });
        encode(item, options, depth, out)?;
    }
    out.push(b']');
    Ok(())
}

fn encode_object(
    entries: &[(Value, Value)],
    options: &Options,
    depth: usize,
    out: &mut Vec<u8>,
) -> Result<(), String> {
    out.push(b'{');
    for (place, (key, item)) in entries.iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        match key {
            Value::String(text) => encode_string(text, out),
            Value::Integer(_) | Value::Number(_) => {
                out.push(b'"');
                encode(key, options, depth, out)?;
                out.push(b'"');
            }
            _ => {
                let kind = type_name(Some(key));
                return Err(format!(
                    "Cannot serialise {kind}: table key must be a number or string"
                ));
            }
        }
        out.push(b':');
        encode(item, options, depth, out)?;
    }
    out.push(b'}');
    Ok(())
}
