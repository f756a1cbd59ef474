//! The table of what was measured over the wire.

use tokaido_bench::statistics::{self, Summary};

use crate::markdown;

use super::scenarios::Unit;

const HEAD: [&str; 7] = [
    "what",
    "server",
    "median (spread)",
    "ratio (spread)",
    "server's processor time an operation (spread)",
    "its ratio (spread)",
    "client's core",
];

/// One scenario with its samples: the first subject is ours.
pub(super) struct Measured {
    pub(super) name: &'static str,
    pub(super) unit: Unit,
    pub(super) samples: Vec<Samples>,
    /// Peers and load generators that are not installed.
    pub(super) missing: Vec<&'static str>,
    /// How much of one core the load generator took, 1 being all of it.
    pub(super) client_busy: Option<f64>,
}

/// What was measured of one subject, in the order of the rounds.
pub(super) struct Samples {
    pub(super) subject: &'static str,
    /// In the unit of the scenario.
    pub(super) figures: Vec<f64>,
    /// The server's own processor time for each operation, in seconds.
    pub(super) costs: Vec<f64>,
}

impl Measured {
    pub(super) fn of(name: &'static str, unit: Unit) -> Self {
        Self { name, unit, samples: Vec::new(), missing: Vec::new(), client_busy: None }
    }
}

/// A row for each subject. A ratio above 1 means that Tokaido is the faster one, or takes less of the
/// processor.
pub(super) fn table(all: &[Measured]) -> String {
    let mut rows = Vec::new();
    for measured in all {
        let mut name = measured.name;
        for (index, samples) in measured.samples.iter().enumerate() {
            let ours = measured.samples.first().filter(|_| index > 0);
            let ratio = ours.map_or_else(String::new, |ours| {
                ratio_cell(measured.unit, &ours.figures, &samples.figures)
            });
            let cost_ratio = ours.map_or_else(String::new, |ours| {
                ratio_cell(Unit::Seconds, &ours.costs, &samples.costs)
            });
            let busy = match measured.client_busy {
                Some(busy) if index == 0 => format!("{:.0} %", busy * 100.0),
                _ => String::new(),
            };
            let figure = figure_cell(measured.unit, &samples.figures);
            let cost = cost_cell(&samples.costs);
            let subject = samples.subject.to_owned();
            rows.push(vec![name.to_owned(), subject, figure, ratio, cost, cost_ratio, busy]);
            // The name of a scenario stands in its first row only.
            name = "";
        }
        for missing in &measured.missing {
            let mut row = vec![name.to_owned(), (*missing).to_owned(), "not installed".to_owned()];
            row.resize(HEAD.len(), String::new());
            rows.push(row);
            name = "";
        }
    }
    markdown::table(&HEAD, &rows)
}

fn cost_cell(costs: &[f64]) -> String {
    let Some(summary) = Summary::of(costs) else { return "no figure".to_owned() };
    let spread = summary.spread() * 100.0;
    match summary.median {
        cost if cost < 1e-3 => format!("{:.2} us ({spread:.0} %)", cost * 1e6),
        cost => format!("{:.1} ms ({spread:.0} %)", cost * 1e3),
    }
}

fn figure_cell(unit: Unit, samples: &[f64]) -> String {
    let Some(summary) = Summary::of(samples) else { return "no figure".to_owned() };
    let spread = summary.spread() * 100.0;
    match unit {
        Unit::RequestsPerSecond => format!("{:.0}/s ({spread:.0} %)", summary.median),
        Unit::Seconds => format!("{:.1} ms ({spread:.0} %)", summary.median * 1e3),
    }
}

fn ratio_cell(unit: Unit, ours: &[f64], theirs: &[f64]) -> String {
    let ratio = match unit {
        Unit::RequestsPerSecond => statistics::ratio(theirs, ours),
        Unit::Seconds => statistics::ratio(ours, theirs),
    };
    ratio.map_or_else(String::new, |ratio| {
        format!("{:.2} ({:.0} %)", ratio.median, ratio.spread() * 100.0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn above_one_is_faster_whichever_way_the_unit_goes() {
        assert_eq!(ratio_cell(Unit::RequestsPerSecond, &[200.0], &[100.0]), "2.00 (0 %)");
        assert_eq!(ratio_cell(Unit::Seconds, &[0.1], &[0.2]), "2.00 (0 %)");
    }

    #[test]
    fn a_peer_that_is_not_there_is_shown_as_such() {
        let mut measured = Measured::of("GET", Unit::RequestsPerSecond);
        measured.samples.push(Samples {
            subject: "Tokaido",
            figures: vec![100.0, 110.0, 120.0],
            costs: vec![2e-6; 3],
        });
        measured.missing.push("Redis");
        measured.client_busy = Some(0.5);
        let table = table(&[measured]);
        let rows: Vec<&str> = table.lines().skip(2).collect();
        let expected = [
            "| GET | Tokaido | 110/s (9 %) |  | 2.00 us (0 %) |  | 50 % |",
            "|  | Redis | not installed |  |  |  |  |",
        ];
        assert_eq!(rows, expected);
    }
}
