//! The table of what was measured over the wire.

use tokaido_bench::statistics::{self, Summary};

use crate::markdown;

use super::scenarios::Unit;

/// One scenario with its samples: the first subject is ours.
pub(super) struct Measured {
    pub(super) name: &'static str,
    pub(super) unit: Unit,
    pub(super) samples: Vec<(&'static str, Vec<f64>)>,
    /// Peers and load generators that are not installed.
    pub(super) missing: Vec<&'static str>,
    /// How much of one core the load generator took, 1 being all of it.
    pub(super) client_busy: Option<f64>,
}

impl Measured {
    pub(super) fn of(name: &'static str, unit: Unit) -> Self {
        Self { name, unit, samples: Vec::new(), missing: Vec::new(), client_busy: None }
    }
}

/// A row for each subject. A ratio above 1 means that Tokaido is the faster one.
pub(super) fn table(all: &[Measured]) -> String {
    let mut rows = Vec::new();
    for measured in all {
        let ours = measured.samples.first().map(|(_, samples)| samples.as_slice());
        let mut name = measured.name;
        for (index, (subject, samples)) in measured.samples.iter().enumerate() {
            let ratio = match ours {
                Some(ours) if index > 0 => ratio_cell(measured.unit, ours, samples),
                _ => String::new(),
            };
            let busy = match measured.client_busy {
                Some(busy) if index == 0 => format!("{:.0} %", busy * 100.0),
                _ => String::new(),
            };
            let figure = figure_cell(measured.unit, samples);
            rows.push(vec![name.to_owned(), (*subject).to_owned(), figure, ratio, busy]);
            // The name of a scenario stands in its first row only.
            name = "";
        }
        for missing in &measured.missing {
            let figure = "not installed".to_owned();
            let blank = String::new();
            rows.push(vec![name.to_owned(), (*missing).to_owned(), figure, blank.clone(), blank]);
            name = "";
        }
    }
    markdown::table(
        &["what", "server", "median (spread)", "ratio (spread)", "client's core"],
        &rows,
    )
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
        measured.samples.push(("Tokaido", vec![100.0, 110.0, 120.0]));
        measured.missing.push("Redis");
        measured.client_busy = Some(0.5);
        let table = table(&[measured]);
        let rows: Vec<&str> = table.lines().skip(2).collect();
        let expected =
            ["| GET | Tokaido | 110/s (9 %) |  | 50 % |", "|  | Redis | not installed |  |  |"];
        assert_eq!(rows, expected);
    }
}
