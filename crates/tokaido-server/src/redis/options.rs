//! Expiries in arguments: `EX 10`, `PX 10000`, `EXAT 1700000000`, `PXAT 1700000000000`.

use super::{call::Call, failure::Failure, number::parse_integer};

/// The unit of an expiry, and whether it is absolute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unit {
    is_seconds: bool,
    is_absolute: bool,
}

impl Unit {
    pub(super) const SECONDS: Self = Self { is_seconds: true, is_absolute: false };
    pub(super) const MILLISECONDS: Self = Self { is_seconds: false, is_absolute: false };
    pub(super) const AT_SECONDS: Self = Self { is_seconds: true, is_absolute: true };
    pub(super) const AT_MILLISECONDS: Self = Self { is_seconds: false, is_absolute: true };

    /// The argument at `index` as an option, if it is one of the four.
    pub(super) fn option(call: &Call<'_>, index: usize) -> Option<Self> {
        [
            ("EX", Self::SECONDS),
            ("PX", Self::MILLISECONDS),
            ("EXAT", Self::AT_SECONDS),
            ("PXAT", Self::AT_MILLISECONDS),
        ]
        .into_iter()
        .find_map(|(word, unit)| call.is_word(index, word).then_some(unit))
    }

    /// The time for `number` in ms since the epoch, possibly in the past. `None` if it does not
    /// fit into 64 bits.
    pub(super) fn time_ms(self, number: i64, now_ms: u64) -> Option<i64> {
        let ms = if self.is_seconds { number.checked_mul(1000)? } else { number };
        if self.is_absolute { Some(ms) } else { ms.checked_add(i64::try_from(now_ms).ok()?) }
    }

    /// The time for `text`, for commands that refuse zero and negative numbers.
    pub(super) fn expiry_ms(
        self,
        text: &[u8],
        now_ms: u64,
        command: &'static str,
    ) -> Result<u64, Failure> {
        let number = parse_integer(text).ok_or(Failure::NotAnInteger)?;
        let invalid = Failure::ExpireTime { command };
        if number <= 0 {
            return Err(invalid);
        }
        let Some(at) = self.time_ms(number, now_ms) else { return Err(invalid) };
        u64::try_from(at).map_err(|_| invalid)
    }
}
