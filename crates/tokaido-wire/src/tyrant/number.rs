//! Fixed-point numbers of the binary protocol: the integer part, and 10^12 times the fraction.

/// One, in the fraction.
const UNIT: f64 = 1e12;

/// Splits a number in two. One that does not fit becomes infinite, and infinity is the largest or
/// smallest integer.
#[must_use]
pub fn pack(number: f64) -> [i64; 2] {
    if number.is_nan() {
        return [i64::MIN, i64::MIN];
    }
    let integer = number.trunc();
    #[allow(clippy::cast_precision_loss, reason = "the limits are powers of two, or round to one")]
    let (min, max) = (i64::MIN as f64, i64::MAX as f64);
    #[allow(clippy::cast_possible_truncation, reason = "checked, and the fraction is cut off")]
    match integer {
        _ if integer >= max => [i64::MAX, 0],
        _ if integer <= min => [i64::MIN, 0],
        _ => [integer as i64, (number.fract() * UNIT) as i64],
    }
}

/// The number that the pair represents.
#[must_use]
pub fn unpack([integer, fraction]: [i64; 2]) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "what is added is no more precise")]
    match (integer, fraction) {
        (i64::MIN, i64::MIN) => f64::NAN,
        (i64::MAX, _) => f64::INFINITY,
        (i64::MIN, _) => f64::NEG_INFINITY,
        _ => integer as f64 + fraction as f64 / UNIT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_there_and_back() {
        for (number, packed) in [
            (0.0, [0, 0]),
            (1.5, [1, 500_000_000_000]),
            (-1.5, [-1, -500_000_000_000]),
            (-0.25, [0, -250_000_000_000]),
            (1e15 + 0.125, [1_000_000_000_000_000, 125_000_000_000]),
            (f64::INFINITY, [i64::MAX, 0]),
            (f64::NEG_INFINITY, [i64::MIN, 0]),
        ] {
            assert_eq!(pack(number), packed, "{number}");
            assert_eq!(unpack(packed).to_bits(), number.to_bits(), "{number}");
        }
        assert!(unpack(pack(f64::NAN)).is_nan());
        assert_eq!(pack(1e300), [i64::MAX, 0]);
        assert_eq!(pack(1e-13), [0, 0]);
    }
}
