//! `struct`: binary layouts, described by a format of letters.

use super::number::{number_of, text_of, type_name};
use crate::Value;

/// Maximum size of an integer, in bytes.
const INTEGER_SIZE_MAX: usize = 32;

/// What `!` aligns to without a number.
const ALIGNMENT_DEFAULT: usize = 8;

/// One letter of a format, with the size of the value and the padding before it.
struct Item {
    letter: u8,
    size: usize,
    padding: usize,
}

/// Reads a format, letter by letter.
struct Format<'f> {
    letters: &'f [u8],
    is_big_endian: bool,
    alignment: usize,
    function: &'static str,
}

impl<'f> Format<'f> {
    fn new(letters: &'f [u8], function: &'static str) -> Self {
        let end = letters.iter().position(|&byte| byte == 0).unwrap_or(letters.len());
        Self { letters: &letters[..end], is_big_endian: false, alignment: 1, function }
    }

    /// The next item that stands for a value; options before it are applied. `at` is the position
    /// in the data.
    fn next(&mut self, at: usize) -> Result<Option<Item>, String> {
        while let Some((&letter, rest)) = self.letters.split_first() {
            self.letters = rest;
            match letter {
                b' ' => {}
                b'>' => self.is_big_endian = true,
                b'<' => self.is_big_endian = false,
                b'!' => self.alignment = self.alignment_option()?,
                _ => {
                    let size = self.size(letter)?;
                    let padding = self.padding(letter, size, at);
                    return Ok(Some(Item { letter, size, padding }));
                }
            }
        }
        Ok(None)
    }

    fn alignment_option(&mut self) -> Result<usize, String> {
        let alignment = self.number(ALIGNMENT_DEFAULT)?;
        if alignment.is_power_of_two() {
            return Ok(alignment);
        }
        Err(format!("alignment {alignment} is not a power of 2"))
    }

    fn number(&mut self, default: usize) -> Result<usize, String> {
        let len = self.letters.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, rest) = self.letters.split_at(len);
        self.letters = rest;
        if digits.is_empty() {
            return Ok(default);
        }
        let number = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse::<i32>().ok());
        let number = number.and_then(|number| usize::try_from(number).ok());
        number.ok_or_else(|| "integral size overflow".to_owned())
    }

    fn size(&mut self, letter: u8) -> Result<usize, String> {
        Ok(match letter {
            b'b' | b'B' | b'x' => 1,
            b'h' | b'H' => 2,
            b'f' => 4,
            b'l' | b'L' | b'T' | b'd' => 8,
            b's' => 0,
            b'c' => self.number(1)?,
            b'i' | b'I' => match self.number(4)? {
                size if size > INTEGER_SIZE_MAX => {
                    return Err(format!(
                        "integral size {size} is larger than limit of {INTEGER_SIZE_MAX}"
                    ));
                }
                size => size,
            },
            _ if self.function == "size" && letter.is_ascii_alphanumeric() => 0,
            _ => {
                let option = char::from(letter);
                return Err(self.bad_argument(1, &format!("invalid format option '{option}'")));
            }
        })
    }

    fn padding(&self, letter: u8, size: usize, at: usize) -> usize {
        if size == 0 || letter == b'c' {
            return 0;
        }
        // A size that is not a power of two gives what C's arithmetic gives.
        let size = size.min(self.alignment);
        size.wrapping_sub(at & (size - 1)) & (size - 1)
    }

    fn bad_argument(&self, place: usize, why: &str) -> String {
        format!("bad argument #{place} to '{}' ({why})", self.function)
    }

    fn expected(&self, place: usize, what: &str, value: Option<&Value>) -> String {
        self.bad_argument(place, &format!("{what} expected, got {}", type_name(value)))
    }

    /// Converts between the machine's byte order, which is little-endian, and the one that the
    /// format asks for.
    fn ordered<const N: usize>(&self, mut bytes: [u8; N]) -> [u8; N] {
        if self.is_big_endian {
            bytes.reverse();
        }
        bytes
    }
}

fn is_integer(letter: u8) -> bool {
    matches!(letter, b'b' | b'B' | b'h' | b'H' | b'l' | b'L' | b'T' | b'i' | b'I')
}

/// `struct.pack(format, …)`.
pub(super) fn pack(arguments: &[Value]) -> Result<Vec<u8>, String> {
    let letters = text_of(arguments.first());
    let mut format = Format::new(letters.as_deref().unwrap_or_default(), "pack");
    if letters.is_none() {
        return Err(format.expected(1, "string", arguments.first()));
    }
    let (mut out, mut place) = (Vec::new(), 2);
    while let Some(Item { letter, size, padding }) = format.next(out.len())? {
        out.resize(out.len() + padding, 0);
        if letter == b'x' {
            out.push(0);
            continue;
        }
        let argument = arguments.get(place - 1).or(Some(&Value::Nil));
        let number =
            || number_of(argument).ok_or_else(|| format.expected(place, "number", argument));
        match letter {
            b'f' => out.extend_from_slice(&format.ordered((number()? as f32).to_le_bytes())),
            b'd' => out.extend_from_slice(&format.ordered(number()?.to_le_bytes())),
            _ if is_integer(letter) => {
                let number = number()?;
                let wide = if number < 0.0 { number as i64 as u64 } else { number as u64 };
                let start = out.len();
                let bytes = wide.to_le_bytes();
                out.extend((0..size).map(|i| bytes.get(i).copied().unwrap_or(0)));
                if format.is_big_endian {
                    out[start..].reverse();
                }
            }
            _ => {
                let text = text_of(argument);
                let text = text.ok_or_else(|| format.expected(place, "string", argument))?;
                let len = if size == 0 { text.len() } else { size };
                if text.len() < len {
                    return Err(format.bad_argument(place + 1, "string too short"));
                }
                out.extend_from_slice(&text[..len]);
                if letter == b's' {
                    out.push(0);
                }
            }
        }
        place += 1;
    }
    Ok(out)
}

/// `struct.unpack(format, data, position)`: the values, and where the data continues.
pub(super) fn unpack(arguments: &[Value]) -> Result<Vec<Value>, String> {
    let letters = text_of(arguments.first());
    let mut format = Format::new(letters.as_deref().unwrap_or_default(), "unpack");
    if letters.is_none() {
        return Err(format.expected(1, "string", arguments.first()));
    }
    let data =
        text_of(arguments.get(1)).ok_or_else(|| format.expected(2, "string", arguments.get(1)))?;
    let mut at = match arguments.get(2) {
        None | Some(Value::Nil) => 0,
        position => match number_of(position) {
            Some(position) if position >= 1.0 => position as usize - 1,
            Some(_) => return Err(format.bad_argument(3, "offset must be 1 or greater")),
            None => return Err(format.expected(3, "number", position)),
        },
    };
    let mut values: Vec<Value> = Vec::new();
    while let Some(Item { letter, mut size, padding }) = format.next(at)? {
        at = at.saturating_add(padding);
        let too_short = || format.bad_argument(2, "data string too short");
        let slice = |size: usize| {
            let end = at.checked_add(size);
            end.and_then(|end| data.get(at..end)).ok_or_else(too_short)
        };
        let bytes = slice(size)?;
        match letter {
            b'x' => {}
            b'f' => {
                let single = f32::from_le_bytes(format.ordered(bytes.try_into().unwrap_or([0; 4])));
                values.push(crate::convert::number(single.into()));
            }
            b'd' => {
                let double = f64::from_le_bytes(format.ordered(bytes.try_into().unwrap_or([0; 8])));
                values.push(crate::convert::number(double));
            }
            b's' => {
                let rest = &data[at..];
                let len = rest.iter().position(|&byte| byte == 0);
                let len = len.ok_or("unfinished string in data")?;
                values.push(Value::String(rest[..len].to_vec()));
                size = len + 1;
            }
            b'c' => {
                if size == 0 {
                    let before = values.pop();
                    let len = number_of(before.as_ref());
                    let len = len.ok_or("format 'c0' needs a previous size")?;
                    size = if len < 0.0 { usize::MAX } else { len as usize };
                }
                values.push(Value::String(slice(size)?.to_vec()));
            }
            _ => values.push(integer(bytes, format.is_big_endian, letter.is_ascii_lowercase())),
        }
        at = at.saturating_add(size);
    }
    values.push(Value::Integer(at as i64 + 1));
    Ok(values)
}

/// An integer of any size; bits beyond 64 are lost.
fn integer(bytes: &[u8], is_big_endian: bool, is_signed: bool) -> Value {
    let shift = |wide: u64, &byte: &u8| wide << 8 | u64::from(byte);
    let wide = match is_big_endian {
        true => bytes.iter().fold(0, shift),
        false => bytes.iter().rev().fold(0, shift),
    };
    let unused = 64 - 8 * bytes.len().min(8) as u32;
    let number = match is_signed {
        true if unused < 64 => ((wide << unused).cast_signed() >> unused) as f64,
        _ => wide as f64,
    };
    crate::convert::number(number)
}

/// `struct.size(format)`.
pub(super) fn size(arguments: &[Value]) -> Result<usize, String> {
    let letters = text_of(arguments.first());
    let mut format = Format::new(letters.as_deref().unwrap_or_default(), "size");
    if letters.is_none() {
        return Err(format.expected(1, "string", arguments.first()));
    }
    let mut at = 0usize;
    while let Some(Item { letter, size, padding }) = format.next(at)? {
        let open = match letter {
            b's' => Some("s"),
            b'c' if size == 0 => Some("c0"),
            _ => None,
        };
        if let Some(option) = open {
            return Err(format.bad_argument(1, &format!("option '{option}' has no fixed size")));
        }
        at = at.saturating_add(padding).saturating_add(size);
    }
    Ok(at)
}
