//! The text form of counters: which values [`increment`](crate::WriteOperations::increment) accepts
//! as numbers, and what it writes.

/// Length of the longest integer, in bytes.
const LEN_MAX: usize = "-9223372036854775808".len();

/// Reads an integer in the form that increment writes: no sign but `-`, no leading zeros or spaces.
#[must_use]
pub fn parse(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let is_canonical = match digits {
        [b'0'] => text.len() == 1,
        [b'1'..=b'9', ..] => text.len() <= LEN_MAX,
        _ => false,
    };
    if is_canonical { std::str::from_utf8(text).ok()?.parse().ok() } else { None }
}

/// Reads a finite number, in decimal or exponent form, without spaces around it.
#[must_use]
pub fn parse_float(text: &[u8]) -> Option<f64> {
    let number: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    number.is_finite().then_some(number)
}

/// Writes a number as the shortest decimal that reads back the same, without an exponent.
#[must_use]
pub fn format_float(number: f64) -> String {
    if number == 0.0 { "0".to_owned() } else { number.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_read_strictly() {
        assert_eq!(parse(b"0"), Some(0));
        assert_eq!(parse(b"-9223372036854775808"), Some(i64::MIN));
        assert_eq!(parse(b"9223372036854775807"), Some(i64::MAX));
        for text in ["", "-", "-0", "+1", "01", " 1", "1 ", "1.0", "0x1", "9223372036854775808"] {
            assert_eq!(parse(text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn floats_are_written_without_exponent() {
        assert_eq!(format_float(3.0e3), "3000");
        assert_eq!(format_float(0.1 + 0.2), "0.30000000000000004");
        assert_eq!(format_float(-0.0), "0");
        assert_eq!(parse_float(b"5.0e3"), Some(5000.0));
        assert_eq!(parse_float(b"inf"), None);
        assert_eq!(parse_float(b"abc"), None);
    }
}
