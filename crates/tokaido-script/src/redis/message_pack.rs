//! `cmsgpack`: MessagePack as lua-cmsgpack writes and reads it.

use super::codecs::Tally;
use crate::{Value, convert, limits::VALUE_DEPTH_MAX};

/// Tables nested deeper than this are packed as nil.
const NESTING_MAX: usize = 16;

/// Appends a value.
pub(super) fn pack(value: &Value, nesting: usize, out: &mut Vec<u8>) {
    match value {
        Value::Nil => out.push(0xc0),
        Value::Boolean(boolean) => out.push(if *boolean { 0xc3 } else { 0xc2 }),
        Value::Integer(integer) => pack_integer(*integer, out),
        Value::Number(number) => pack_number(*number, out),
        Value::String(text) => {
            pack_len(text.len(), [Some((0xa0, 32)), Some((0xd9, 1 << 8))], 0xda, out);
            out.extend_from_slice(text);
        }
        Value::Array(_) | Value::Map(_) if nesting == NESTING_MAX => out.push(0xc0),
        Value::Array(items) => {
            pack_len(items.len(), [Some((0x90, 16)), None], 0xdc, out);
            for item in items {
                pack(item, nesting + 1, out);
            }
        }
        Value::Map(entries) => {
            pack_len(entries.len(), [Some((0x80, 16)), None], 0xde, out);
            for (key, item) in entries {
                pack(key, nesting + 1, out);
                pack(item, nesting + 1, out);
            }
        }
    }
}

/// The head of a long value: in one byte, in one byte after a code, in two bytes after `wide`, or
/// in four bytes after the code that follows `wide`.
fn pack_len(len: usize, short: [Option<(u8, usize)>; 2], wide: u8, out: &mut Vec<u8>) {
    match (short, u16::try_from(len)) {
        ([Some((code, below)), _], _) if len < below => out.push(code | len as u8),
        ([_, Some((code, below))], _) if len < below => out.extend_from_slice(&[code, len as u8]),
        (_, Ok(len)) => {
            out.push(wide);
            out.extend_from_slice(&len.to_be_bytes());
        }
        (_, Err(_)) => {
            out.push(wide + 1);
            out.extend_from_slice(&(len as u32).to_be_bytes());
        }
    }
}

fn pack_integer(integer: i64, out: &mut Vec<u8>) {
    let mut put = |code: u8, bytes: &[u8]| {
        out.push(code);
        out.extend_from_slice(bytes);
    };
    match integer {
        -32..=0x7f => put(integer as u8, &[]),
        0x80..=0xff => put(0xcc, &[integer as u8]),
        0x100..=0xffff => put(0xcd, &(integer as u16).to_be_bytes()),
        0x1_0000..=0xffff_ffff => put(0xce, &(integer as u32).to_be_bytes()),
        0x1_0000_0000.. => put(0xcf, &integer.to_be_bytes()),
        -0x80..=-33 => put(0xd0, &[integer as u8]),
        -0x8000..=-0x81 => put(0xd1, &(integer as i16).to_be_bytes()),
        -0x8000_0000..=-0x8001 => put(0xd2, &(integer as i32).to_be_bytes()),
        _ => put(0xd3, &integer.to_be_bytes()),
    }
}

fn pack_number(number: f64, out: &mut Vec<u8>) {
    let integer = number as i64;
    if integer as f64 == number && integer != i64::MAX {
        return pack_integer(integer, out);
    }
    let single = number as f32;
    if f64::from(single) == number {
        out.push(0xca);
        out.extend_from_slice(&single.to_be_bytes());
    } else {
        out.push(0xcb);
        out.extend_from_slice(&number.to_be_bytes());
    }
}

const MISSING: &str = "Missing bytes in input.";
const BAD: &str = "Bad data format in input.";

/// Reads up to `limit` values from `offset` on, and tells where the next one begins.
pub(super) fn unpack(
    input: &[u8],
    offset: usize,
    limit: usize,
) -> Result<(Vec<Value>, usize), String> {
    let mut reader = Reader { input, at: offset, tally: Tally::default() };
    let mut values = Vec::new();
    while reader.at < input.len() && values.len() < limit {
        values.push(reader.value(0)?);
    }
    Ok((values, reader.at))
}

struct Reader<'i> {
    input: &'i [u8],
    at: usize,
    tally: Tally,
}

impl<'i> Reader<'i> {
    fn take(&mut self, len: usize) -> Result<&'i [u8], String> {
        let end = self.at.checked_add(len).ok_or(MISSING)?;
        let bytes = self.input.get(self.at..end).ok_or(MISSING)?;
        self.at = end;
        Ok(bytes)
    }

    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], String> {
        Ok(self.take(N)?.try_into().map_err(|_| MISSING)?)
    }

    fn wide(&mut self, len: usize) -> Result<usize, String> {
        let bytes = self.take(len)?;
        Ok(bytes.iter().fold(0, |wide, &byte| wide << 8 | usize::from(byte)))
    }

    fn value(&mut self, depth: usize) -> Result<Value, String> {
        self.tally.count(1)?;
        if depth > VALUE_DEPTH_MAX {
            return Err(BAD.to_owned());
        }
        let [code] = self.bytes()?;
        let integer = |integer: i64| Ok(convert::number(integer as f64));
        match code {
            0x00..=0x7f => integer(code.into()),
            0xe0..=0xff => integer(code.cast_signed().into()),
            0x80..=0x8f => self.map(usize::from(code & 0xf), depth),
            0x90..=0x9f => self.array(usize::from(code & 0xf), depth),
            0xa0..=0xbf => self.string(usize::from(code & 0x1f)),
            0xc0 => Ok(Value::Nil),
            0xc2 => Ok(Value::Boolean(false)),
            0xc3 => Ok(Value::Boolean(true)),
            0xca => Ok(convert::number(f32::from_be_bytes(self.bytes()?).into())),
            0xcb => Ok(convert::number(f64::from_be_bytes(self.bytes()?))),
            0xcc => integer(u8::from_be_bytes(self.bytes()?).into()),
            0xcd => integer(u16::from_be_bytes(self.bytes()?).into()),
            0xce => integer(u32::from_be_bytes(self.bytes()?).into()),
            // Beyond 63 bits lua-cmsgpack gives the same.
            0xcf | 0xd3 => integer(i64::from_be_bytes(self.bytes()?)),
            0xd0 => integer(i8::from_be_bytes(self.bytes()?).into()),
            0xd1 => integer(i16::from_be_bytes(self.bytes()?).into()),
            0xd2 => integer(i32::from_be_bytes(self.bytes()?).into()),
            0xd9..=0xdb => {
                let len = self.wide(1 << (code - 0xd9))?;
                self.string(len)
            }
            0xdc | 0xdd => {
                let len = self.wide(2 << (code - 0xdc))?;
                self.array(len, depth)
            }
            0xde | 0xdf => {
                let len = self.wide(2 << (code - 0xde))?;
                self.map(len, depth)
            }
            _ => Err(BAD.to_owned()),
        }
    }

    fn string(&mut self, len: usize) -> Result<Value, String> {
        Ok(Value::String(self.take(len)?.to_vec()))
    }

    fn array(&mut self, len: usize, depth: usize) -> Result<Value, String> {
        (0..len).map(|_| self.value(depth + 1)).collect::<Result<_, _>>().map(Value::Array)
    }

    fn map(&mut self, len: usize, depth: usize) -> Result<Value, String> {
        let entry = |_| Ok((self.value(depth + 1)?, self.value(depth + 1)?));
        (0..len).map(entry).collect::<Result<_, _>>().map(Value::Map)
    }
}
