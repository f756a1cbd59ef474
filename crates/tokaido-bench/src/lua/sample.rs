//! How many calls a sample takes: so many that the clock's resolution and the overhead around the
//! loop are each at most a hundredth of it.

use std::time::Duration;

use super::{Sample, Subject};

/// The minimum duration of a sample, as a multiple of the clock's resolution and of the overhead around the calls.
const PRECISION: u32 = 100;

/// Maximum number of calls of one sample: of calls that are optimised away no number is enough.
const COUNT_MAX: u64 = 1 << 40;

/// Samples without a call, whose median is the overhead around the loop.
const ENTRIES: usize = 11;

/// The most by which the number of calls may grow from one attempt to the next.
const GROWTH_MAX: f64 = 10.0;

/// How far beyond its minimum duration a sample aims, so that few attempts are needed.
const MARGIN: f64 = 1.2;

/// The minimum duration of a sample, which is at least `wanted`.
pub(super) fn length_min<S: Subject>(
    subject: &mut S,
    wanted: Duration,
    grain: Duration,
) -> Result<Duration, S::Error> {
    let mut entries = Vec::with_capacity(ENTRIES);
    for _ in 0..ENTRIES {
        entries.push(subject.sample(Sample { is_empty: true, count: 0, before: 0 })?);
    }
    entries.sort();
    Ok(wanted.max((entries[ENTRIES / 2] + grain) * PRECISION))
}

/// Anything longer than this is not an outlier of a busy machine.
const STRAY_MAX: Duration = Duration::from_millis(500);

/// The number of calls that last `length` or longer.
pub(super) fn count<S: Subject>(
    subject: &mut S,
    is_empty: bool,
    length: Duration,
) -> Result<u64, S::Error> {
    let mut count = 1;
    loop {
        let sample = Sample { is_empty, count, before: 0 };
        let mut took = subject.sample(sample)?;
        if took >= length && took < STRAY_MAX {
            // Other threads may have had the processor.
            took = took.min(subject.sample(sample)?);
        }
        if took >= length || count >= COUNT_MAX {
            return Ok(count);
        }
        count = next_count(count, took, length);
    }
}

/// The number of calls to try next.
fn next_count(count: u64, took: Duration, length: Duration) -> u64 {
    let missing = length.as_secs_f64() / took.as_secs_f64().max(f64::MIN_POSITIVE);
    let factor = (missing * MARGIN).clamp(MARGIN, GROWTH_MAX);
    ((count as f64 * factor).ceil() as u64).min(COUNT_MAX)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;
    use crate::lua::TraceEvent;

    /// Takes 100 ns per call and 2 us around them; another thread has the processor in the first sample.
    #[derive(Default)]
    struct Steady {
        has_strayed: bool,
    }

    impl Subject for Steady {
        type Error = Infallible;

        fn sample(&mut self, sample: Sample) -> Result<Duration, Infallible> {
            let stray = if std::mem::replace(&mut self.has_strayed, true) { 0 } else { 50_000_000 };
            Ok(Duration::from_nanos(2_000 + 100 * sample.count + stray))
        }

        fn take_trace_events(&mut self) -> Vec<TraceEvent> {
            Vec::new()
        }
    }

    #[test]
    fn what_stands_around_the_loop_is_a_hundredth_of_a_sample() {
        let grain = Duration::from_nanos(50);
        let length = length_min(&mut Steady::default(), Duration::ZERO, grain).unwrap();
        assert_eq!(length, Duration::from_nanos(205_000));
        let wanted = Duration::from_millis(10);
        assert_eq!(length_min(&mut Steady::default(), wanted, grain).unwrap(), wanted);
    }

    #[test]
    fn a_sample_is_long_enough_and_not_much_longer() {
        let count = count(&mut Steady::default(), false, Duration::from_millis(1)).unwrap();
        assert!((9_980..20_000).contains(&count), "{count}");
    }

    #[test]
    fn the_number_grows_by_bounds_also_where_no_time_is_seen() {
        let length = Duration::from_millis(1);
        assert_eq!(next_count(1, Duration::ZERO, length), 10);
        assert_eq!(next_count(10, Duration::from_micros(999), length), 13);
        assert_eq!(next_count(COUNT_MAX, Duration::ZERO, length), COUNT_MAX);
    }
}
