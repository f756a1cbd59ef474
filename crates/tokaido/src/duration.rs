//! Times on the command line: a whole number and its unit.

use std::{str::FromStr, time};

/// Units, and the milliseconds in one of each.
const UNITS: [(&str, u64); 5] =
    [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

/// The longest sensible time here: a thousand years, so that no sum with it overflows.
const MS_MAX: u64 = 1_000 * 366 * 86_400_000;

/// A time of at least a millisecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Duration {
    ms: u64,
}

impl Duration {
    pub(crate) fn ms(self) -> u64 {
        self.ms
    }

    pub(crate) fn time(self) -> time::Duration {
        time::Duration::from_millis(self.ms)
    }
}

/// The text is not a [`Duration`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a time is a whole number above zero and ms, s, m, h or d, as in 30s")]
pub(crate) struct DurationError;

impl FromStr for Duration {
    type Err = DurationError;

    fn from_str(text: &str) -> Result<Self, DurationError> {
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let (number, unit) = text.split_at(digits.len());
        let unit_ms = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, ms)| *ms);
        let number = number.bytes().all(|b| b.is_ascii_digit()).then(|| number.parse().ok());
        let ms = unit_ms.zip(number.flatten()).and_then(|(ms, number)| ms.checked_mul(number));
        ms.filter(|ms| (1..=MS_MAX).contains(ms)).map(|ms| Self { ms }).ok_or(DurationError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_needs_a_number_and_a_unit() {
        for (text, ms) in [("500ms", 500), ("30s", 30_000), ("15m", 900_000), ("7d", 604_800_000)] {
            assert_eq!(text.parse::<Duration>().map(Duration::ms), Ok(ms), "{text}");
        }
        for text in ["", "s", "30", "0s", "+1s", "-1s", "1.5h", "1 s", "1S", "9999999d", "1s1"] {
            assert_eq!(text.parse::<Duration>(), Err(DurationError), "{text}");
        }
    }
}
