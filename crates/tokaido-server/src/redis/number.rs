//! Numbers as Redis accepts them in arguments.

use std::ops::Range;

/// Parses an integer as Redis does. Counters are stored in the same format.
pub(crate) use tokaido_store::counter::parse as parse_integer;

/// Parses a number as C does, but without spaces around it: decimal or hexadecimal, with or without
/// an exponent, or an infinity. `None` if it is no number, or too large or too small to represent.
pub(crate) fn parse_double(text: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(text).ok()?;
    let (sign, digits) = match text.as_bytes().first()? {
        b'-' => (-1.0, &text[1..]),
        b'+' => (1.0, &text[1..]),
        _ => (1.0, text),
    };
    if let Some(hexadecimal) = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        return parse_hexadecimal(hexadecimal).map(|number| sign * number);
    }
    if digits.eq_ignore_ascii_case("inf") || digits.eq_ignore_ascii_case("infinity") {
        return Some(sign * f64::INFINITY);
    }
    // The standard library would also accept another sign, and words.
    let is_plain = |b: u8| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'-' | b'+');
    if !digits.bytes().all(is_plain) || digits.starts_with(['-', '+']) {
        return None;
    }
    let number: f64 = digits.parse().ok()?;
    let mantissa = digits.split(['e', 'E']).next().unwrap_or_default();
    let has_vanished = number == 0.0 && mantissa.bytes().any(|b| matches!(b, b'1'..=b'9'));
    (number.is_finite() && !has_vanished).then_some(sign * number)
}

/// Parses what follows `0x`: digits, an optional point, and optionally `p` and an exponent of two.
fn parse_hexadecimal(text: &str) -> Option<f64> {
    let (digits, exponent) = match text.split_once(['p', 'P']) {
        Some((digits, exponent)) => (digits, exponent.parse().ok()?),
        None => (text, 0i32),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut number = 0.0;
    for digit in whole.chars().chain(fraction.chars()) {
        number = number * 16.0 + f64::from(digit.to_digit(16)?);
    }
    let exponent = exponent.checked_sub(4 * i32::try_from(fraction.len()).ok()?)?;
    let number = number * 2f64.powi(exponent);
    number.is_finite().then_some(number)
}

/// The range of indexes or ranks from `start` to `stop` inclusive. Negative numbers count from the end.
pub(super) fn range_in(len: u64, start: i64, stop: i64) -> Range<u64> {
    let place = |number: i64| match number {
        0.. => number.unsigned_abs(),
        _ => len.saturating_sub(number.unsigned_abs()),
    };
    let is_before_all = stop < 0 && stop.unsigned_abs() > len;
    let end = if is_before_all { 0 } else { place(stop).saturating_add(1).min(len) };
    let start = place(start).min(end);
    start..end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_c_reads_them() {
        for (text, number) in [
            ("1", 1.0),
            ("+1.5", 1.5),
            ("-.5", -0.5),
            ("5.", 5.0),
            ("1e3", 1000.0),
            ("0x10", 16.0),
            ("-0x1.8p1", -3.0),
            ("inf", f64::INFINITY),
            ("-Infinity", f64::NEG_INFINITY),
            ("0e99999", 0.0),
        ] {
            assert_eq!(parse_double(text.as_bytes()), Some(number), "{text}");
        }
        for text in ["", " 1", "1 ", "nan", "--1", "+-1", "1e999", "1e-999", "0x", "0xg", "e5", "."]
        {
            assert_eq!(parse_double(text.as_bytes()), None, "{text:?}");
        }
    }
    #[test]
    fn two_numbers_mean_a_range() {
        for (start, stop, range) in [
            (0, -1, 0..3),
            (-100, 100, 0..3),
            (1, 1, 1..2),
            (-2, -2, 1..2),
            (2, 1, 2..2),
            (5, 9, 3..3),
            (0, -4, 0..0),
            (i64::MIN, i64::MAX, 0..3),
        ] {
            assert_eq!(range_in(3, start, stop), range, "{start} {stop}");
        }
    }
}
