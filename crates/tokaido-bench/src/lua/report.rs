//! A measurement's results, for people and programs.

use std::fmt::{self, Write as _};

use serde_json::{Value, json};

use super::{Measurement, Naive, Side, Warning};
use crate::{machine::Machine, statistics::Summary, units};

/// Warm-up rounds whose times are printed.
const ROUNDS_SHOWN: usize = 6;

/// Places that were not compiled and are printed.
const PROBLEMS_SHOWN: usize = 20;

/// A measurement with its circumstances. It displays as a table.
#[derive(Clone, Debug)]
pub struct Report {
    /// The name of the code.
    pub name: String,
    /// Its dialect.
    pub dialect: String,
    /// What it was measured on.
    pub machine: Machine,
    /// The results.
    pub measured: Measurement,
    /// Reasons to doubt them.
    pub warnings: Vec<Warning>,
}

impl Report {
    /// The report as one JSON object. Times are in nanoseconds.
    #[must_use]
    pub fn json(&self) -> Value {
        let measured = &self.measured;
        let problems = measured.traces.problems.iter().map(|problem| {
            json!({
                "place": problem.place,
                "reason": problem.reason,
                "times": problem.times,
                "compiled_later": problem.is_overcome,
            })
        });
        let warnings = self
            .warnings
            .iter()
            .map(|warning| json!({ "name": warning.name(), "message": warning.to_string() }));
        json!({
            "name": self.name,
            "dialect": self.dialect,
            "machine": {
                "processor": self.machine.processor,
                "cores": self.machine.cores,
                "governor": self.machine.governor,
                "kernel": self.machine.kernel,
            },
            "clock_grain_ns": measured.grain.as_nanos() as u64,
            "jit_on": side_json(&measured.compiled),
            "jit_off": side_json(&measured.interpreted),
            "warm_up": {
                "rounds_ns": measured.warm_up.rounds,
                "calls": measured.warm_up.calls,
                "stable": measured.warm_up.is_stable,
            },
            "traces": {
                "compiled": measured.traces.compiled,
                "flushed": measured.traces.flushed,
                "not_compiled": problems.collect::<Vec<_>>(),
            },
            "waited_part": measured.waited,
            "naive": measured.naive.map(|naive| json!({
                "process_ns": naive.process,
                "cold_call_ns": naive.cold_call,
                "no_collection_ns": naive.uncollected,
            })),
            "warnings": warnings.collect::<Vec<_>>(),
        })
    }
}

fn side_json(side: &Side) -> Value {
    let Summary { median, quartile_low, quartile_high, min, count } = side.call;
    json!({
        "median_ns": median,
        "quartile_low_ns": quartile_low,
        "quartile_high_ns": quartile_high,
        "min_ns": min,
        "samples": count,
        "calls_per_sample": side.count,
        "loop_ns": side.turn.median,
        "samples_ns": side.samples,
    })
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, dialect, machine, measured, warnings } = self;
        let (on, off) = (&measured.compiled, &measured.interpreted);
        writeln!(f, "{name}, dialect {dialect}")?;
        writeln!(f, "{machine}\n")?;
        writeln!(f, "{:<11}{:>10}  {:>22}  {:>10}  samples", "", "median", "quartiles", "minimum")?;
        row(f, "JIT on", on)?;
        row(f, "JIT off", off)?;
        if on.call.median > 0.0 {
            writeln!(
                f,
                "{:<11}{:>10.2}  times as long without the JIT",
                "",
                off.call.median / on.call.median
            )?;
        }
        let (turn_on, turn_off) = (units::time(on.turn.median), units::time(off.turn.median));
        writeln!(
            f,
            "\n{:<11}{turn_on} a turn, {turn_off} with the JIT off; measured with an empty function, and subtracted",
            "loop"
        )?;
        writeln!(f, "{:<11}{}", "warm-up", warm_up(measured))?;
        writeln!(f, "{:<11}{}", "traces", traces(measured))?;
        problems(f, measured)?;
        if let Some(naive) = &measured.naive {
            naive_rows(f, naive, on.call.median)?;
        }
        if !warnings.is_empty() {
            writeln!(f)?;
        }
        for warning in warnings {
            writeln!(f, "warning: {warning}")?;
        }
        Ok(())
    }
}

fn row(f: &mut fmt::Formatter<'_>, name: &str, side: &Side) -> fmt::Result {
    let Summary { median, quartile_low, quartile_high, min, count } = side.call;
    let quartiles = format!("{} … {}", units::time(quartile_low), units::time(quartile_high));
    let (median, min) = (units::time(median), units::time(min));
    let calls = units::thousands(side.count);
    writeln!(f, "{name:<11}{median:>10}  {quartiles:>22}  {min:>10}  {count} of {calls} calls")
}

fn warm_up(measured: &Measurement) -> String {
    let warm_up = &measured.warm_up;
    let rounds = warm_up.rounds.len();
    let mut times: Vec<String> =
        warm_up.rounds.iter().take(ROUNDS_SHOWN).map(|ns| units::time(*ns)).collect();
    if rounds > ROUNDS_SHOWN {
        times.push("…".to_owned());
    }
    let end = match warm_up.is_stable {
        true => "until no new trace came",
        false => "and new traces still came",
    };
    let calls = units::thousands(warm_up.calls);
    format!("{rounds} rounds of {calls} calls in all, {end}: {} a call", times.join(", "))
}

fn traces(measured: &Measurement) -> String {
    let traces = &measured.traces;
    match (traces.compiled, traces.lasting().count()) {
        (compiled, 0) => format!("{compiled} compiled, nothing left to the interpreter"),
        (compiled, 1) => format!("{compiled} compiled; 1 place was not:"),
        (compiled, places) => format!("{compiled} compiled; {places} places were not:"),
    }
}

fn problems(f: &mut fmt::Formatter<'_>, measured: &Measurement) -> fmt::Result {
    for problem in measured.traces.lasting().take(PROBLEMS_SHOWN) {
        let times = match problem.times {
            1 => String::new(),
            times => format!(", {times} times"),
        };
        writeln!(f, "{:<11}  {}: {}{times}", "", problem.place, problem.reason)?;
    }
    match measured.traces.lasting().count() {
        count if count > PROBLEMS_SHOWN => {
            writeln!(f, "{:<11}  … and {} more, which --json has", "", count - PROBLEMS_SHOWN)
        }
        _ => Ok(()),
    }
}

fn naive_rows(f: &mut fmt::Formatter<'_>, naive: &Naive, median: f64) -> fmt::Result {
    let times = |ns: f64| match ns / median {
        factor if factor.is_finite() && factor >= 100.0 => {
            format!("{} times the median", units::thousands(factor as u64))
        }
        factor if factor.is_finite() && factor > 0.0 => format!("{factor:.2} times the median"),
        _ => String::new(),
    };
    let mut rows = String::new();
    let ways = [
        (naive.process, "a process that makes one call"),
        (Some(naive.cold_call), "one cold call"),
        (Some(naive.uncollected), "no collection of garbage before, and the loop not subtracted"),
    ];
    for (ns, way) in ways {
        let Some(ns) = ns else { continue };
        writeln!(rows, "{:<11}{:>10}  {way}: {}", "", units::time(ns), times(ns))?;
    }
    write!(f, "\nWhat other ways would have said:\n{rows}")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::lua::{Problem, Traces, WarmUp};

    fn report() -> Report {
        let side = |samples: &[f64], turn: f64| Side {
            call: Summary::of(samples).unwrap(),
            samples: samples.to_vec(),
            turn: Summary::of(&[turn]).unwrap(),
            count: 720_000,
        };
        let problem = |place: &str, is_overcome| Problem {
            place: place.to_owned(),
            reason: "NYI: making a closure".to_owned(),
            times: 2,
            is_overcome,
        };
        let measured = Measurement {
            grain: Duration::from_nanos(25),
            warm_up: WarmUp { rounds: vec![812.0, 14.0, 13.9], calls: 1_234_567, is_stable: true },
            compiled: side(&[13.9, 14.0, 13.8], 0.31),
            interpreted: side(&[212.0, 213.0, 214.0], 12.0),
            traces: Traces {
                compiled: 3,
                flushed: 0,
                problems: vec![problem("a.lua:3", false), problem("a.lua:9", true)],
            },
            waited: None,
            naive: Some(Naive { cold_call: 2_500.0, uncollected: 15.0, process: Some(16e6) }),
        };
        let machine = Machine {
            processor: "Example CPU".into(),
            cores: 2,
            governor: Some("powersave".into()),
            kernel: "6.1".into(),
        };
        let warnings = vec![Warning::Governor("powersave".into())];
        let (name, dialect) = ("a.lua".into(), "tokaido".into());
        Report { name, dialect, machine, measured, warnings }
    }

    #[test]
    fn a_report_reads_as_a_table() {
        let expected = "\
a.lua, dialect tokaido
Example CPU, 2 cores, kernel 6.1, CPU governor: powersave

               median               quartiles     minimum  samples
JIT on        13.9 ns       13.9 ns … 13.9 ns     13.8 ns  3 of 720,000 calls
JIT off        213 ns         212 ns … 214 ns      212 ns  3 of 720,000 calls
                15.32  times as long without the JIT

loop       0.31 ns a turn, 12.0 ns with the JIT off; measured with an empty function, and subtracted
warm-up    3 rounds of 1,234,567 calls in all, until no new trace came: 812 ns, 14.0 ns, 13.9 ns a call
traces     3 compiled; 1 place was not:
             a.lua:3: NYI: making a closure, 2 times

What other ways would have said:
              16.0 ms  a process that makes one call: 1,151,079 times the median
              2.50 us  one cold call: 179 times the median
              15.0 ns  no collection of garbage before, and the loop not subtracted: 1.08 times the median

warning: the clock of the cores is governed by \"powersave\" and may change meanwhile; set it to performance: cpupower frequency-set -g performance
";
        assert_eq!(report().to_string(), expected);
    }

    #[test]
    fn json_has_all_of_it() {
        let json = report().json();
        assert_eq!(json["jit_on"]["median_ns"], 13.9);
        assert_eq!(json["jit_off"]["samples"], 3);
        assert_eq!(json["traces"]["not_compiled"][1]["compiled_later"], true);
        assert_eq!(json["naive"]["process_ns"], 16e6);
        assert_eq!(json["warnings"][0]["name"], "governor");
    }
}
