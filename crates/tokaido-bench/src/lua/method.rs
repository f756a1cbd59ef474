//! The method: a cold call, warm-up until the compiler has nothing more to do, then samples of the
//! function and of an empty one, in turn, with the JIT on and off.

use std::time::{Duration, Instant};

use super::{Sample, Subject, TraceEvent, Traces, sample};
use crate::{machine, statistics::Summary, timing};

/// Minimum duration of a sample: if the thread is descheduled in the middle of one, it shows as an outlier.
const SAMPLE_MIN: Duration = Duration::from_millis(10);

/// Number of consecutive warm-up rounds without a new trace after which the warm-up ends.
const QUIET_ROUNDS: usize = 3;

/// Minimum and maximum number of samples of each kind.
const ROUNDS_MIN: usize = 5;
const ROUNDS_MAX: usize = 101;

/// Number of samples of the variant that does not collect garbage.
const UNCOLLECTED_ROUNDS: usize = 5;

/// The time that a measurement may take.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// For samples. A slow function gets a few samples nevertheless.
    pub samples: Duration,
    /// For the warm-up. If it is not over by then, it is reported as unfinished.
    pub warm_up: Duration,
    /// Whether the misleading measurements are taken as well.
    pub naive: bool,
}

/// The result of a measurement.
#[derive(Clone, Debug)]
pub struct Measurement {
    /// The resolution of the clock.
    pub grain: Duration,
    /// The warm-up.
    pub warm_up: WarmUp,
    /// With the JIT on.
    pub compiled: Side,
    /// With the JIT off.
    pub interpreted: Side,
    /// What the compiler did, from the first call to the last.
    pub traces: Traces,
    /// The fraction of the time in which other threads had the processor; `None` if the kernel does not say.
    pub waited: Option<f64>,
    /// The results of the misleading measurements.
    pub naive: Option<Naive>,
}

/// The warm-up.
#[derive(Clone, Debug)]
pub struct WarmUp {
    /// The time of a call in each round, in ns.
    pub rounds: Vec<f64>,
    /// Total number of calls.
    pub calls: u64,
    /// Whether it ended because no new traces appeared.
    pub is_stable: bool,
}

/// The function with the JIT on, or off.
#[derive(Clone, Debug)]
pub struct Side {
    /// The time of a call in ns, without that of the loop.
    pub call: Summary,
    /// The same, sample by sample.
    pub samples: Vec<f64>,
    /// The time of one iteration of the loop around an empty function, in ns.
    pub turn: Summary,
    /// Calls in a sample.
    pub count: u64,
}

/// Misleading measurements of the same function with the JIT on, in ns.
#[derive(Clone, Copy, Debug)]
pub struct Naive {
    /// The very first call.
    pub cold_call: f64,
    /// The median without a garbage collection before each sample: it also pays for earlier garbage.
    pub uncollected: f64,
    /// A process that makes one call, from start to exit; filled in by a caller that can start one.
    pub process: Option<f64>,
}

/// Measures a function in two virtual machines, with the JIT on in the first and off in the second.
///
/// # Errors
/// If the function raises.
pub fn measure<S: Subject>(
    compiled: &mut S,
    interpreted: &mut S,
    plan: &Plan,
) -> Result<Measurement, S::Error> {
    let grain = timing::clock_grain();
    let cold_call = ns(compiled.sample(Sample { is_empty: false, count: 1, before: 0 })?);
    let mut events = Vec::new();
    let length = sample::length_min(compiled, SAMPLE_MIN, grain)?;
    let warm_up = warm_up(compiled, length, plan.warm_up, &mut events)?;
    let mut counts = [0; 4];
    for (index, count) in counts.iter_mut().enumerate() {
        let subject = if is_compiled(index) { &mut *compiled } else { &mut *interpreted };
        *count = sample::count(subject, is_empty(index), length)?;
    }

    let waited_before = machine::waited_for_processor();
    let began = Instant::now();
    let mut take = |index: usize| {
        let subject = if is_compiled(index) { &mut *compiled } else { &mut *interpreted };
        let count = counts[index];
        let sample = Sample { is_empty: is_empty(index), count, before: 0 };
        subject.sample(sample).map(|took| ns(took) / count as f64)
    };
    // The first round tells how many rounds there is time for; it is discarded.
    for index in 0..counts.len() {
        take(index)?;
    }
    let rounds = plan.samples.as_secs_f64() / began.elapsed().as_secs_f64();
    let rounds = (rounds as usize).clamp(ROUNDS_MIN, ROUNDS_MAX);
    let samples = timing::interleave(counts.len(), rounds, take)?;
    let elapsed = began.elapsed();
    let waited = machine::waited_for_processor().zip(waited_before);
    let waited = waited
        .map(|(after, before)| after.saturating_sub(before).as_secs_f64() / elapsed.as_secs_f64());

    let naive = match plan.naive {
        true => {
            let uncollected = uncollected(compiled, counts[0])?;
            Some(Naive { cold_call, uncollected, process: None })
        }
        false => None,
    };
    events.extend(compiled.take_trace_events());
    Ok(Measurement {
        grain,
        warm_up,
        compiled: Side::of(&samples[0], &samples[1], counts[0]),
        interpreted: Side::of(&samples[2], &samples[3], counts[2]),
        traces: Traces::of(&events),
        waited,
        naive,
    })
}

/// The subjects in turn: function and empty function with the JIT on, then both with it off.
fn is_compiled(index: usize) -> bool {
    index < 2
}

fn is_empty(index: usize) -> bool {
    index % 2 == 1
}

impl Side {
    fn of(with_loop: &[f64], turns: &[f64], count: u64) -> Self {
        let turn = summary(turns);
        let samples: Vec<f64> = with_loop.iter().map(|call| call - turn.median).collect();
        Self { call: summary(&samples), samples, turn, count }
    }
}

fn summary(samples: &[f64]) -> Summary {
    Summary::of(samples).expect("there are samples, and times are finite")
}

/// Runs the function until the compiler has nothing more to do.
fn warm_up<S: Subject>(
    subject: &mut S,
    length: Duration,
    time_max: Duration,
    events: &mut Vec<TraceEvent>,
) -> Result<WarmUp, S::Error> {
    let began = Instant::now();
    let mut warm_up = WarmUp { rounds: Vec::new(), calls: 0, is_stable: false };
    let mut quiet = 0;
    while quiet < QUIET_ROUNDS {
        if began.elapsed() >= time_max && !warm_up.rounds.is_empty() {
            return Ok(warm_up);
        }
        // Anew in each round, since the function becomes faster as more of it is compiled.
        let count = sample::count(subject, false, length)?;
        let took = subject.sample(Sample { is_empty: false, count, before: 0 })?;
        warm_up.calls += count;
        warm_up.rounds.push(ns(took) / count as f64);
        let new = subject.take_trace_events();
        quiet = if new.is_empty() { quiet + 1 } else { 0 };
        events.extend(new);
    }
    warm_up.is_stable = true;
    Ok(warm_up)
}

/// Samples taken after garbage from earlier calls, with nothing subtracted.
fn uncollected<S: Subject>(subject: &mut S, count: u64) -> Result<f64, S::Error> {
    let mut samples = Vec::with_capacity(UNCOLLECTED_ROUNDS);
    for _ in 0..UNCOLLECTED_ROUNDS {
        let took = subject.sample(Sample { is_empty: false, count, before: count })?;
        samples.push(ns(took) / count as f64);
    }
    Ok(summary(&samples).median)
}

fn ns(time: Duration) -> f64 {
    time.as_nanos() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lua::TraceOutcome;

    /// Takes 100 ns for a call including the loop, whose share is 40 ns, and compiles something in its first samples.
    struct Steady {
        news: usize,
        fails: bool,
        has_run: u64,
    }

    impl Steady {
        fn new(news: usize) -> Self {
            Self { news, fails: false, has_run: 0 }
        }
    }

    impl Subject for Steady {
        type Error = &'static str;

        fn sample(&mut self, sample: Sample) -> Result<Duration, &'static str> {
            if self.fails {
                return Err("raised");
            }
            self.has_run += sample.count;
            let call = if sample.is_empty { 40 } else { 100 };
            Ok(Duration::from_nanos(sample.count * call))
        }

        fn take_trace_events(&mut self) -> Vec<TraceEvent> {
            let is_new = self.news > 0;
            self.news = self.news.saturating_sub(1);
            let what = TraceOutcome::Compiled { link: "loop".to_owned() };
            let event = TraceEvent { start: "a:1".to_owned(), what };
            is_new.then_some(event).into_iter().collect()
        }
    }

    const PLAN: Plan =
        Plan { samples: Duration::from_millis(1), warm_up: Duration::from_secs(3600), naive: true };

    #[test]
    fn the_loop_is_subtracted() {
        let measured = measure(&mut Steady::new(0), &mut Steady::new(0), &PLAN).unwrap();
        for side in [&measured.compiled, &measured.interpreted] {
            assert_eq!((side.call.median, side.call.min, side.turn.median), (60.0, 60.0, 40.0));
            assert!(side.samples.len() >= ROUNDS_MIN);
            assert!(side.count * 100 >= SAMPLE_MIN.as_nanos() as u64);
        }
        let naive = measured.naive.unwrap();
        assert_eq!((naive.cold_call, naive.uncollected), (100.0, 100.0));
    }

    #[test]
    fn warm_up_goes_on_until_no_new_trace_comes() {
        let measured = measure(&mut Steady::new(4), &mut Steady::new(0), &PLAN).unwrap();
        assert!(measured.warm_up.is_stable);
        assert_eq!(measured.warm_up.rounds.len(), 4 + QUIET_ROUNDS);
        assert_eq!(measured.traces.compiled, 4);
    }

    #[test]
    fn a_warm_up_that_does_not_end_is_ended_and_said_to_be_so() {
        let plan = Plan { warm_up: Duration::ZERO, ..PLAN };
        let measured = measure(&mut Steady::new(usize::MAX), &mut Steady::new(0), &plan).unwrap();
        assert!(!measured.warm_up.is_stable);
        assert_eq!(measured.warm_up.rounds.len(), 1);
    }

    #[test]
    fn a_function_that_raises_ends_it() {
        let mut raising = Steady { fails: true, ..Steady::new(0) };
        assert_eq!(measure(&mut raising, &mut Steady::new(0), &PLAN).unwrap_err(), "raised");
        let mut compiled = Steady::new(0);
        assert_eq!(measure(&mut compiled, &mut raising, &PLAN).unwrap_err(), "raised");
        assert!(compiled.has_run > 0);
    }
}
