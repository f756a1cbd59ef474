//! Numbers in text as C programs read them: anything after a number is ignored, and text that is
//! not a number is 0. Tokyo Cabinet and Kyoto Cabinet both do this.

/// The integer at the start of `text`, after any spaces; 0 if there is none. One that does not fit
/// becomes the nearest that does.
#[must_use]
pub fn integer(text: &[u8]) -> i64 {
    let start = text.iter().position(|byte| !(1..=b' ').contains(byte)).unwrap_or(text.len());
    let text = &text[start..];
    let (is_negative, digits) = match text.split_first() {
        Some((b'-', digits)) => (true, digits),
        Some((b'+', digits)) => (false, digits),
        _ => (false, text),
    };
    let digits = digits.iter().take_while(|byte| byte.is_ascii_digit());
    digits.fold(0_i64, |number, digit| {
        let digit = i64::from(digit - b'0');
        let number = number.saturating_mul(10);
        if is_negative { number.saturating_sub(digit) } else { number.saturating_add(digit) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_far_as_they_are_ones() {
        for (text, number) in [
            ("12", 12),
            (" -7x", -7),
            ("+3", 3),
            ("x", 0),
            ("", 0),
            ("99999999999999999999", i64::MAX),
            ("-99999999999999999999", i64::MIN),
        ] {
            assert_eq!(integer(text.as_bytes()), number, "{text:?}");
        }
    }
}
