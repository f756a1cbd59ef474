//! The declared lengths of the protocol: decimal digits and CRLF.

/// More digits than any length within a limit has; this many still fit in 64 bits.
const DIGITS_MAX: usize = 18;

/// What is found where a length is expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    /// Its line end has not arrived yet.
    Incomplete,
    /// It cannot become a length, whatever follows.
    Invalid,
    /// A length. What it measures starts at `next`.
    Value { len: usize, next: usize },
    /// A negative number, which stands for "null". What comes after it starts at `next`.
    Negative { next: usize },
}

/// Reads the length that starts at `start`. As strict as Redis: no sign but a minus, no leading
/// zero, no space. Each byte is checked by itself, so the result does not depend on how the
/// input was split; and at most `DIGITS_MAX` bytes are ever read again.
#[inline]
pub(super) fn read_length(input: &[u8], start: usize) -> Length {
    let negative = input.get(start) == Some(&b'-');
    let digits = start + usize::from(negative);
    let mut value: u64 = 0;
    let mut at = digits;
    loop {
        let Some(byte) = input.get(at) else { return Length::Incomplete };
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        if at - digits >= DIGITS_MAX {
            return Length::Invalid;
        }
        value = value * 10 + u64::from(digit);
        at += 1;
    }
    let leading_zero = input[digits] == b'0' && (at - digits > 1 || negative);
    if at == digits || leading_zero || input[at] != b'\r' {
        return Length::Invalid;
    }
    match input.get(at + 1) {
        None => Length::Incomplete,
        Some(b'\n') if negative => Length::Negative { next: at + 2 },
        Some(b'\n') => match usize::try_from(value) {
            Ok(len) => Length::Value { len, next: at + 2 },
            Err(_) => Length::Invalid,
        },
        Some(_) => Length::Invalid,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_numbers_with_crlf() {
        assert_eq!(read_length(b"$0\r\n", 1), Length::Value { len: 0, next: 4 });
        assert_eq!(read_length(b"1234567\r\nrest", 0), Length::Value { len: 1_234_567, next: 9 });
        assert_eq!(read_length(b"-1\r\n", 0), Length::Negative { next: 4 });
        let most = read_length(b"999999999999999999\r\n", 0);
        assert_eq!(most, Length::Value { len: 999_999_999_999_999_999, next: 20 });
    }

    #[test]
    fn waits_for_the_line_end() {
        for text in ["", "-", "1", "12", "12\r", "-1\r", "999999999999999999"] {
            assert_eq!(read_length(text.as_bytes(), 0), Length::Incomplete, "{text:?}");
        }
    }

    #[test]
    fn refuses_what_is_not_a_strict_number() {
        for text in [
            "\r\n",
            "-\r\n",
            "+1\r\n",
            "01\r\n",
            "00\r\n",
            "-0\r\n",
            "-01\r\n",
            " 1\r\n",
            "1 \r\n",
            "1\n",
            "1\r\r",
            "a",
            "1a",
            "--1\r\n",
            "9999999999999999999",
        ] {
            assert_eq!(read_length(text.as_bytes(), 0), Length::Invalid, "{text:?}");
        }
    }
}
