//! `xt`: when a record expires, in seconds.

use tokaido_wire::kyoto::binary::XT_MAX;

/// When a record that is written now with this `xt` expires. A negative `xt` is a time, negated;
/// any other counts from now. `None`: never.
pub(super) fn expires_at_ms(xt: i64, now_ms: u64) -> Option<u64> {
    let ms = |seconds: i64| u64::try_from(seconds).unwrap_or(0).saturating_mul(1000);
    let at_ms = if xt < 0 {
        ms(xt.checked_neg().unwrap_or(i64::MAX))
    } else {
        now_ms.saturating_add(ms(xt))
    };
    (at_ms / 1000 < XT_MAX.unsigned_abs()).then_some(at_ms)
}

/// The `xt` of a record that expires at this time, in seconds since the epoch.
pub(crate) fn xt_of(expires_at_ms: Option<u64>) -> Option<i64> {
    expires_at_ms.and_then(|at_ms| i64::try_from(at_ms / 1000).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_from_now_on_or_negated() {
        for (xt, at_ms) in [
            (10, Some(15_500)),
            (0, Some(5_500)),
            (-10, Some(10_000)),
            (XT_MAX, None),
            (-XT_MAX, None),
            (i64::MAX, None),
            (i64::MIN, None),
        ] {
            assert_eq!(expires_at_ms(xt, 5_500), at_ms, "{xt}");
        }
        assert_eq!(xt_of(Some(15_500)), Some(15));
        assert_eq!(xt_of(None), None);
    }
}
