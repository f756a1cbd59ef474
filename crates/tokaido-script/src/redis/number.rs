//! Numbers as C reads and writes them.

use std::ffi::c_char;

use crate::Value;

/// Room for a double with up to 17 digits, its sign, its point and its exponent.
const TEXT_LEN_MAX: usize = 32;

/// A number as `printf("%.*g")` writes it.
pub(super) fn format_general(number: f64, digits: u8) -> String {
    let mut text = Vec::new();
    put_general(number, digits, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// Appends a number as `printf("%.*g")` writes it.
pub(crate) fn put_general(number: f64, digits: u8, out: &mut Vec<u8>) {
    let mut text = [0u8; TEXT_LEN_MAX];
    // SAFETY: the buffer has the given length, and the format takes an int and a double.
    let written = unsafe {
        libc::snprintf(
            text.as_mut_ptr().cast::<c_char>(),
            text.len(),
            c"%.*g".as_ptr(),
            i32::from(digits),
            number,
        )
    };
    let len = usize::try_from(written).unwrap_or(0).min(TEXT_LEN_MAX - 1);
    out.extend_from_slice(&text[..len]);
}

/// The number that a text begins with, as `strtod` reads it, and how many bytes of the text it is;
/// 0 if there is none. The text must end in a zero.
pub(crate) fn parse_prefix(text: &[u8]) -> (f64, usize) {
    assert_eq!(text.last(), Some(&0));
    let text = text.as_ptr().cast::<c_char>();
    let mut end = std::ptr::null_mut();
    // SAFETY: the text ends with a zero, and `end` is set to a position in it.
    unsafe {
        let number = libc::strtod(text, &raw mut end);
        (number, end.cast_const().offset_from(text).unsigned_abs())
    }
}

/// What Lua accepts as a number: a number, or a text that is one.
pub(super) fn number_of(value: Option<&Value>) -> Option<f64> {
    match value? {
        Value::Integer(integer) => Some(*integer as f64),
        Value::Number(number) => Some(*number),
        Value::String(text) => {
            let text = std::str::from_utf8(text).ok()?.trim();
            let hexadecimal = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
            match hexadecimal {
                Some(digits) => i64::from_str_radix(digits, 16).ok().map(|number| number as f64),
                None => text.parse().ok(),
            }
        }
        _ => None,
    }
}

/// What Lua accepts as a string: a string, or a number as text.
pub(super) fn text_of(value: Option<&Value>) -> Option<Vec<u8>> {
    match value? {
        Value::String(text) => Some(text.clone()),
        Value::Integer(integer) => Some(format_general(*integer as f64, 14).into_bytes()),
        Value::Number(number) => Some(format_general(*number, 14).into_bytes()),
        _ => None,
    }
}

/// Lua's name for the type of a value.
pub(super) fn type_name(value: Option<&Value>) -> &'static str {
    match value {
        None => "no value",
        Some(Value::Nil) => "nil",
        Some(Value::Boolean(_)) => "boolean",
        Some(Value::Integer(_) | Value::Number(_)) => "number",
        Some(Value::String(_)) => "string",
        Some(Value::Array(_) | Value::Map(_)) => "table",
    }
}
