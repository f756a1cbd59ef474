//! Reasons to doubt a result.

use std::fmt;

use super::Measurement;
use crate::{machine::Machine, units};

/// Spread of the samples above which the machine counts as noisy.
const SPREAD_MAX: f64 = 0.1;

/// Fraction of the time for which others may have had the processor.
const WAITED_MAX: f64 = 0.02;

/// A call that takes less than this fraction of a loop iteration is as good as none.
const TURN_PART_MIN: f64 = 0.25;

/// A reason to doubt a result.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Warning {
    /// The processor's clock frequency varies.
    Governor(String),
    /// The samples scatter: the interquartile range as a fraction of the median.
    Scattered(f64),
    /// Others had the processor for this fraction of the time.
    Waited(f64),
    /// With the JIT on, the function takes no longer than an empty one.
    OptimisedAway,
    /// The compiler still made new traces when the warm-up ended.
    Unstable,
    /// All machine code was discarded this many times.
    Flushed(usize),
    /// The program was built without optimisation.
    DebugBuild,
}

impl Warning {
    /// Checks for all of them.
    #[must_use]
    pub fn all(measured: &Measurement, machine: &Machine) -> Vec<Self> {
        let compiled = &measured.compiled;
        // Uses the shortest samples, which a busy machine affects least.
        let least = compiled.call.min + compiled.turn.median - compiled.turn.min;
        let is_gone = least < compiled.turn.min * TURN_PART_MIN;
        // Relative to the loop as well, since the remainder may be close to zero.
        let scatter = |side: &super::Side| {
            (side.call.quartile_high - side.call.quartile_low)
                / (side.call.median + side.turn.median)
        };
        let scatter = scatter(compiled).max(scatter(&measured.interpreted));
        let found = [
            cfg!(debug_assertions).then_some(Self::DebugBuild),
            machine.unsteady_governor().map(|governor| Self::Governor(governor.to_owned())),
            (scatter > SPREAD_MAX).then_some(Self::Scattered(scatter)),
            measured.waited.filter(|waited| *waited > WAITED_MAX).map(Self::Waited),
            is_gone.then_some(Self::OptimisedAway),
            (!measured.warm_up.is_stable).then_some(Self::Unstable),
            (measured.traces.flushed > 0).then_some(Self::Flushed(measured.traces.flushed)),
        ];
        found.into_iter().flatten().collect()
    }

    /// Its name for programs.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Governor(_) => "governor",
            Self::Scattered(_) => "scattered",
            Self::Waited(_) => "waited",
            Self::OptimisedAway => "optimised_away",
            Self::Unstable => "unstable",
            Self::Flushed(_) => "flushed",
            Self::DebugBuild => "debug_build",
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |part: &f64| part * 100.0;
        match self {
            Self::Governor(governor) => write!(
                f,
                "the clock of the cores is governed by {governor:?} and may change meanwhile; \
                 set it to performance: cpupower frequency-set -g performance"
            ),
            Self::Scattered(part) => write!(
                f,
                "the samples scatter by {:.0} %: the machine is busy, or the function does not always do the same",
                percent(part)
            ),
            Self::Waited(part) => write!(
                f,
                "other programs had the processor for {:.0} % of the time; the minimum is nearer to the truth than the median",
                percent(part)
            ),
            Self::OptimisedAway => f.write_str(
                "with the JIT on it takes no longer than an empty function: what it computes was optimised away, or is \
                 too little to be seen. Have it return its result, and make that depend on its argument, the number of the call",
            ),
            Self::Unstable => f.write_str(
                "the compiler still made new traces when the warm-up ended; give it more time with --warm-up",
            ),
            Self::Flushed(times) => write!(
                f,
                "all machine code was thrown away {} times: there is too much of it",
                units::thousands(*times as u64)
            ),
            Self::DebugBuild => f.write_str(
                "this program was built without optimisation, LuaJIT with its checks; build it with --release",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{
        lua::{Side, Traces, WarmUp},
        statistics::Summary,
    };

    fn side(samples: &[f64], turn: f64) -> Side {
        Side {
            call: Summary::of(samples).unwrap(),
            samples: samples.to_vec(),
            turn: Summary::of(&[turn]).unwrap(),
            count: 1,
        }
    }

    fn calm() -> Measurement {
        Measurement {
            grain: Duration::from_nanos(20),
            warm_up: WarmUp { rounds: vec![1.0], calls: 1, is_stable: true },
            compiled: side(&[10.0, 10.1, 9.9], 0.4),
            interpreted: side(&[100.0, 101.0, 99.0], 12.0),
            traces: Traces::default(),
            waited: Some(0.0),
            naive: None,
        }
    }

    fn names(measured: &Measurement, governor: Option<&str>) -> Vec<&'static str> {
        let governor = governor.map(str::to_owned);
        let (processor, kernel) = (String::new(), String::new());
        let machine = Machine { processor, cores: 1, governor, kernel };
        let found = Warning::all(measured, &machine);
        let told = found.iter().filter(|warning| **warning != Warning::DebugBuild);
        told.map(Warning::name).collect()
    }

    #[test]
    fn a_calm_machine_gives_no_warning() {
        assert_eq!(names(&calm(), Some("performance")), [""; 0]);
    }

    #[test]
    fn each_doubt_is_told() {
        assert_eq!(names(&calm(), Some("powersave")), ["governor"]);
        let scattered = Measurement { interpreted: side(&[100.0, 150.0, 80.0], 12.0), ..calm() };
        assert_eq!(names(&scattered, None), ["scattered"]);
        assert_eq!(names(&Measurement { waited: Some(0.3), ..calm() }, None), ["waited"]);
        let gone = Measurement { compiled: side(&[0.01, -0.02, 0.03], 0.4), ..calm() };
        assert_eq!(names(&gone, None), ["optimised_away"]);
        let warm_up = WarmUp { is_stable: false, ..calm().warm_up };
        assert_eq!(names(&Measurement { warm_up, ..calm() }, None), ["unstable"]);
        let traces = Traces { flushed: 2, ..Traces::default() };
        assert_eq!(names(&Measurement { traces, ..calm() }, None), ["flushed"]);
    }
}
