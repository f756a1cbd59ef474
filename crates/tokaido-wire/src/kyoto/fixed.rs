//! The fixed-point numbers that Kyoto Tycoon keeps in values.

/// One, in the fraction of a [`Fixed`].
const UNIT: i64 = 1_000_000_000_000_000;

/// A fixed-point number, as `increment_double` keeps it: the integer part and 10^15 times the
/// fraction, 8 bytes each, big-endian. Both have the sign of the number, unless it is a sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fixed {
    integer: i64,
    fraction: i64,
}

impl Fixed {
    /// Length of its encoding in bytes.
    pub const LEN: usize = 16;
    /// Zero.
    pub const ZERO: Self = Self { integer: 0, fraction: 0 };
    const NAN: Self = Self { integer: i64::MIN, fraction: i64::MIN };

    /// Converts a double; what does not fit becomes infinite.
    #[must_use]
    pub fn of(number: f64) -> Self {
        if number.is_nan() {
            return Self::NAN;
        }
        let integer = number.trunc();
        #[allow(clippy::cast_possible_truncation, reason = "checked, and trunc leaves no fraction")]
        match integer {
            _ if integer >= i64::MAX as f64 => Self { integer: i64::MAX, fraction: 0 },
            _ if integer <= i64::MIN as f64 => Self { integer: i64::MIN, fraction: 0 },
            _ => Self { integer: integer as i64, fraction: units(number.fract()) },
        }
    }

    /// Reads an encoded number; `None` if the length is wrong.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let (integer, fraction) = bytes.split_first_chunk::<8>()?;
        let fraction = fraction.try_into().ok()?;
        let number = i64::from_be_bytes;
        Some(Self { integer: number(*integer), fraction: number(fraction) })
    }

    /// Its encoding.
    #[must_use]
    pub fn bytes(self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        bytes[..8].copy_from_slice(&self.integer.to_be_bytes());
        bytes[8..].copy_from_slice(&self.fraction.to_be_bytes());
        bytes
    }

    /// Whether it is a number and finite.
    #[must_use]
    pub fn is_finite(self) -> bool {
        !matches!(self.integer, i64::MIN | i64::MAX)
    }

    /// The nearest double.
    #[must_use]
    pub fn value(self) -> f64 {
        match self {
            Self::NAN => f64::NAN,
            Self { integer: i64::MAX, .. } => f64::INFINITY,
            Self { integer: i64::MIN, .. } => f64::NEG_INFINITY,
            #[allow(clippy::cast_precision_loss, reason = "what is added is no more precise")]
            Self { integer, fraction } => integer as f64 + fraction as f64 / UNIT as f64,
        }
    }

    /// The sum of two finite numbers.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let fraction = self.fraction.saturating_add(other.fraction);
        let carry = if fraction >= UNIT { 1 } else { 0 };
        let integer = self.integer.saturating_add(other.integer).saturating_add(carry);
        Self { integer, fraction: fraction - carry * UNIT }
    }
}

/// 10^15 times a fraction, truncated to an integer. It is exact, where a product of doubles would
/// be rounded.
fn units(fraction: f64) -> i64 {
    let bits = fraction.abs().to_bits();
    let (exponent, mantissa) = (bits >> 52, bits & ((1 << 52) - 1));
    if exponent == 0 {
        return 0;
    }
    let product = u128::from(mantissa | 1 << 52) * UNIT as u128;
    // A fraction is below one, so its exponent is below that of one.
    let shift = 1023 + 52 - exponent;
    let units = u32::try_from(shift).ok().and_then(|shift| product.checked_shr(shift)).unwrap_or(0);
    let units = i64::try_from(units).unwrap_or(UNIT - 1);
    if fraction < 0.0 { -units } else { units }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_are_cut_and_not_rounded() {
        for (number, fraction) in [
            (0.5, 500_000_000_000_000),
            (-0.25, -250_000_000_000_000),
            (0.1, 100_000_000_000_000),
            (0.3, 299_999_999_999_999),
            (1e-300, 0),
            (0.0, 0),
        ] {
            assert_eq!(Fixed::of(number), Fixed { integer: 0, fraction }, "{number}");
        }
        assert_eq!(Fixed::of(-3.5), Fixed { integer: -3, fraction: -500_000_000_000_000 });
    }

    #[test]
    fn sums_carry() {
        let sum = Fixed::of(1.75).plus(Fixed::of(2.5));
        assert_eq!((sum, sum.value()), (Fixed::of(4.25), 4.25));
        assert_eq!(Fixed::of(1.5).plus(Fixed::of(-2.25)).value(), -0.75);
        assert_eq!(Fixed::read(&sum.bytes()), Some(sum));
        assert_eq!(Fixed::read(&[0; 15]), None);
    }

    #[test]
    fn what_does_not_fit_is_infinite() {
        assert_eq!(Fixed::of(1e30).value(), f64::INFINITY);
        assert_eq!(Fixed::of(f64::NEG_INFINITY).value(), f64::NEG_INFINITY);
        assert!(Fixed::of(f64::NAN).value().is_nan() && !Fixed::of(f64::NAN).is_finite());
    }
}
