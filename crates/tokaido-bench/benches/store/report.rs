//! The table: a row for each subject of a workload.

use tokaido_bench::statistics::{self, Summary};

/// One workload with its samples, in ns for each operation; the first subject is ours.
pub(crate) struct Measured {
    pub(crate) title: &'static str,
    pub(crate) goal: &'static str,
    pub(crate) samples: Vec<(&'static str, Vec<f64>)>,
    /// What the processor worked, for each subject, in any order of rounds.
    pub(crate) worked: Vec<Vec<f64>>,
    pub(crate) missing: Vec<&'static str>,
}

pub(crate) const HEAD: &str = "| what | goal | subject | median (spread) | ratio (spread) | least processor time |\n|---|---|---|---|---|---|";

impl Measured {
    /// One without samples yet.
    pub(crate) fn of(title: &'static str, goal: &'static str) -> Self {
        let (samples, worked, missing) = Default::default();
        Self { title, goal, samples, worked, missing }
    }

    /// The rows, of which the first names the workload.
    pub(crate) fn rows(&self) -> Vec<String> {
        let ours = self.samples.first().map(|(_, samples)| samples.as_slice());
        let mut rows = Vec::new();
        for (index, (subject, samples)) in self.samples.iter().enumerate() {
            let ratio = match ours.and_then(|ours| statistics::ratio(ours, samples)) {
                Some(ratio) if index > 0 => {
                    format!("{:.2} ({:.0} %)", ratio.median, ratio.spread() * 100.0)
                }
                _ => String::new(),
            };
            let figure = Summary::of(samples).map_or_else(String::new, |summary| {
                format!("{} ({:.0} %)", readable(summary.median), summary.spread() * 100.0)
            });
            // What others do on the machine can only add to it.
            let worked = self.worked[index].iter().copied().reduce(f64::min);
            let worked = worked.map_or_else(String::new, readable);
            rows.push(self.row(rows.is_empty(), subject, [&figure, &ratio, &worked]));
        }
        for missing in &self.missing {
            rows.push(self.row(rows.is_empty(), missing, ["not installed", "", ""]));
        }
        rows
    }

    fn row(&self, is_first: bool, subject: &str, figures: [&str; 3]) -> String {
        let (title, goal) = if is_first { (self.title, self.goal) } else { ("", "") };
        format!("| {title} | {goal} | {subject} | {} |", figures.join(" | "))
    }
}

/// Nanoseconds in the unit that leaves a few digits before the point.
fn readable(nanoseconds: f64) -> String {
    match nanoseconds {
        n if n < 1e3 => format!("{n:.0} ns"),
        n if n < 1e4 => format!("{:.2} us", n / 1e3),
        n if n < 1e6 => format!("{:.1} us", n / 1e3),
        n => format!("{:.2} ms", n / 1e6),
    }
}
