//! Numbers as memcached reads them, which is as C's `strtoul` does: white space and a sign may
//! precede the digits, and anything after white space is ignored.

/// C's `isspace`.
fn is_space(byte: u8) -> bool {
    byte == b' ' || (b'\t'..=b'\r').contains(&byte)
}

/// Maximum length of a number that the fast path reads.
const SHORT_LEN_MAX: usize = 9;

/// The fast path for most numbers: a few digits, and nothing else.
#[inline]
fn short(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > SHORT_LEN_MAX {
        return None;
    }
    text.iter().try_fold(0, |number: u64, byte| {
        let digit = byte.wrapping_sub(b'0');
        (digit < 10).then(|| 10 * number + u64::from(digit))
    })
}

/// The sign and the number; `None` if it has no digits, too many, or other characters after them.
#[inline]
fn parse(text: &[u8]) -> Option<(bool, u64)> {
    short(text).map(|number| (false, number)).or_else(|| parse_any(text))
}

fn parse_any(text: &[u8]) -> Option<(bool, u64)> {
    let spaces = text.iter().take_while(|&&byte| is_space(byte)).count();
    let (is_negative, rest) = match &text[spaces..] {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    let len = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, after) = rest.split_at(len);
    if digits.is_empty() || after.first().is_some_and(|&byte| !is_space(byte)) {
        return None;
    }
    let number = digits.iter().try_fold(0u64, |number, digit| {
        number.checked_mul(10)?.checked_add(u64::from(digit - b'0'))
    })?;
    Some((is_negative, number))
}

/// An unsigned number, such as a counter or a cas. A negative one wraps around from 2^64, and is
/// refused if the result is large.
#[must_use]
pub fn unsigned(text: &[u8]) -> Option<u64> {
    let (is_negative, number) = parse(text)?;
    let number = if is_negative { number.wrapping_neg() } else { number };
    (number <= i64::MAX as u64 || !text.contains(&b'-')).then_some(number)
}

/// The lowest 32 bits of an unsigned number.
pub(super) fn unsigned_32(text: &[u8]) -> Option<u32> {
    unsigned(text).map(|number| number as u32)
}

/// The lowest 32 bits of a signed number.
pub(super) fn signed_32(text: &[u8]) -> Option<i32> {
    let (is_negative, number) = parse(text)?;
    let signed =
        if is_negative { 0i64.checked_sub_unsigned(number) } else { number.try_into().ok() };
    signed.map(|number| number as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsigned_numbers_are_read_as_c_reads_them() {
        for (text, number) in [
            ("0", Some(0)),
            ("007", Some(7)),
            ("999999999", Some(999_999_999)),
            ("1000000000", Some(1_000_000_000)),
            ("12/", None),
            ("12:", None),
            ("+7", Some(7)),
            ("\t 7", Some(7)),
            ("9 ", Some(9)),
            ("12 abc", Some(12)),
            ("18446744073709551615", Some(u64::MAX)),
            ("18446744073709551616", None),
            ("-1", None),
            ("-18446744073709551615", Some(1)),
            ("", None),
            (" ", None),
            ("-", None),
            ("1a", None),
            ("1.0", None),
        ] {
            assert_eq!(unsigned(text.as_bytes()), number, "{text:?}");
        }
    }

    #[test]
    fn short_numbers_lose_their_high_bits() {
        assert_eq!(unsigned_32(b"4294967297"), Some(1));
        assert_eq!(unsigned_32(b"-1"), None);
        assert_eq!(signed_32(b"-1"), Some(-1));
        assert_eq!(signed_32(b"4294967295"), Some(-1));
        assert_eq!(signed_32(b"-9223372036854775808"), Some(0));
        assert_eq!(signed_32(b"-9223372036854775809"), None);
        assert_eq!(signed_32(b"9223372036854775808"), None);
    }
}
