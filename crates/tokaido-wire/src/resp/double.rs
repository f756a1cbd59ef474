//! Floating-point numbers as Redis writes them.

/// The largest integral number that is written as an integer.
const INTEGER_MAX: f64 = (i64::MAX / 2) as f64;

/// No number has a longer text: 17 digits, a sign, and at most seven zeros and a point.
const TEXT_LEN_MAX: usize = 32;

/// The text of a number, without heap allocation.
#[derive(Clone, Copy, Debug)]
pub struct DoubleText {
    bytes: [u8; TEXT_LEN_MAX],
    len: usize,
}

impl DoubleText {
    fn new(parts: &[&str]) -> Self {
        let mut text = Self { bytes: [0; TEXT_LEN_MAX], len: 0 };
        for part in parts {
            text.push(part);
        }
        text
    }

    fn push(&mut self, part: &str) {
        let end = self.len + part.len();
        self.bytes[self.len..end].copy_from_slice(part.as_bytes());
        self.len = end;
    }

    fn push_zeros(&mut self, count: usize) {
        let end = self.len + count;
        self.bytes[self.len..end].fill(b'0');
        self.len = end;
    }

    /// The text, in ASCII.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// The shortest form that reads back the same: an integer if the number is one, otherwise decimal,
/// with an exponent where that is shorter.
#[must_use]
pub fn format_double(value: f64) -> DoubleText {
    if value.is_nan() {
        return DoubleText::new(&["nan"]);
    }
    if value.is_infinite() {
        return DoubleText::new(&[if value > 0.0 { "inf" } else { "-inf" }]);
    }
    if value == 0.0 {
        return DoubleText::new(&[if value.is_sign_negative() { "-0" } else { "0" }]);
    }
    if value.abs() <= INTEGER_MAX && value == (value as i64) as f64 {
        return DoubleText::new(&[itoa::Buffer::new().format(value as i64)]);
    }
    let mut buffer = ryu::Buffer::new();
    let shortest = buffer.format_finite(value);
    match shortest.strip_prefix('-') {
        Some(shortest) => arrange("-", &Decimal::of(shortest), 6),
        None => arrange("", &Decimal::of(shortest), 7),
    }
}

/// A positive number as its significant digits, without zeros around them, and the power of ten of
/// the last digit.
struct Decimal<'t> {
    /// Two parts, since the text has a point between them; either may be empty.
    digits: [&'t str; 2],
    scale: i32,
}

impl<'t> Decimal<'t> {
    fn of(text: &'t str) -> Self {
        let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let exponent: i32 = exponent.parse().unwrap_or(0);
        let fraction = fraction.trim_end_matches('0');
        let (end, scale) = match fraction.is_empty() {
            true => (
                whole.trim_end_matches('0'),
                (whole.len() - whole.trim_end_matches('0').len()) as i32,
            ),
            false => (whole, -(fraction.len() as i32)),
        };
        let whole = end.trim_start_matches('0');
        let fraction = if whole.is_empty() { fraction.trim_start_matches('0') } else { fraction };
        Self { digits: [whole, fraction], scale: scale + exponent }
    }

    fn len(&self) -> usize {
        self.digits[0].len() + self.digits[1].len()
    }

    /// The digits before and after `place`.
    fn split_at(&self, place: usize) -> ([&'t str; 2], [&'t str; 2]) {
        let [first, second] = self.digits;
        match place.checked_sub(first.len()) {
            Some(place) => ([first, &second[..place]], [&second[place..], ""]),
            None => ([&first[..place], ""], [&first[place..], second]),
        }
    }
}

/// Puts the point or exponent where Redis does. An integer may end in up to `zeros_max` zeros.
fn arrange(sign: &str, decimal: &Decimal<'_>, zeros_max: i32) -> DoubleText {
    let (len, scale, [first, second]) = (decimal.len() as i32, decimal.scale, decimal.digits);
    let exponent = scale + len - 1;
    if scale >= 0 && exponent < len + zeros_max {
        let mut text = DoubleText::new(&[sign, first, second]);
        text.push_zeros(scale as usize);
        return text;
    }
    if scale < 0 && (scale > -7 || exponent.abs() < 4) {
        let whole = len + scale;
        if whole <= 0 {
            let mut text = DoubleText::new(&[sign, "0."]);
            text.push_zeros(whole.unsigned_abs() as usize);
            text.push(first);
            text.push(second);
            return text;
        }
        let (whole, fraction) = decimal.split_at(whole as usize);
        return DoubleText::new(&[sign, whole[0], whole[1], ".", fraction[0], fraction[1]]);
    }
    let (leading, rest) = decimal.split_at(1);
    let point = if len == 1 { "" } else { "." };
    let mark = if exponent < 0 { "e-" } else { "e+" };
    let mut digits = itoa::Buffer::new();
    let power = digits.format(exponent.unsigned_abs());
    DoubleText::new(&[sign, leading[0], leading[1], point, rest[0], rest[1], mark, power])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(value: f64) -> String {
        String::from_utf8(format_double(value).as_bytes().to_vec()).unwrap()
    }

    #[test]
    fn numbers_are_written_as_redis_writes_them() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (-17.0, "-17"),
            (1e15, "1000000000000000"),
            (0.1, "0.1"),
            (-2.5, "-2.5"),
            (1234.5678, "1234.5678"),
            (0.000001, "0.000001"),
            (0.00000015, "1.5e-7"),
            (1e20, "1e+20"),
            (-1.5e300, "-1.5e+300"),
            (5e-324, "5e-324"),
            (f64::MAX, "1.7976931348623157e+308"),
            (0.012345678901234567, "0.012345678901234567"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
            (f64::NAN, "nan"),
        ] {
            assert_eq!(text_of(value), text);
        }
    }

    #[test]
    fn what_is_written_reads_back_the_same() {
        let mut bits = 1u64;
        for _ in 0..10_000 {
            bits = bits.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            let value = f64::from_bits(bits);
            if !value.is_nan() {
                assert_eq!(text_of(value).parse::<f64>(), Ok(value));
            }
        }
    }
}
