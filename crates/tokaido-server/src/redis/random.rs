//! Random elements: the source of random numbers, and how many elements a command asks for.

use std::hash::{BuildHasher, RandomState};

use super::{call::Call, failure::Failure};

/// A random number.
pub(super) fn random() -> u64 {
    RandomState::new().hash_one(0u8)
}

/// The number of elements that the argument at `index` asks for. A negative one allows the same element
/// several times.
pub(super) fn count(call: &Call<'_>, index: usize) -> Result<i64, Failure> {
    match call.integer(index)? {
        i64::MIN => Err(Failure::OutOfRange),
        count => Ok(count),
    }
}

/// How many times to draw, for `count` from `len` elements. With values, Redis accepts only half of the
/// range of numbers.
///
/// # Errors
/// If the reply would exceed the maximum, or if it would take long where others wait.
pub(super) fn check_count(
    call: &Call<'_>,
    count: i64,
    len: u64,
    with_values: bool,
) -> Result<u64, Failure> {
    if with_values && count.unsigned_abs() > (i64::MAX / 2) as u64 {
        return Err(Failure::other("value is out of range"));
    }
    let times = count.unsigned_abs();
    if count >= 0 {
        // If many elements are wanted, all elements are visited.
        call.check_visit(times.min(len).saturating_mul(3).min(len))?;
        return Ok(times);
    }
    let results_max = call.shared.limits().keys_results_max as u64;
    if len > 0 && times > results_max {
        return Err(Failure::other(format!("at most {results_max} elements are drawn at once")));
    }
    if len > 0 {
        call.check_visit(times)?;
    }
    Ok(times)
}
