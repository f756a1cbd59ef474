//! The results of a run, as they are stored and reported.

use std::{collections::BTreeMap, fs, io, path::Path};

use serde::{Deserialize, Serialize};

use super::plan::Scale;
use crate::{machine::Machine, statistics};

/// The version of the format in which runs are stored.
pub const RUN_FORMAT: u32 = 1;

/// Maximum length of a stored run, in bytes.
const RUN_LEN_MAX: u64 = 64 << 20;

/// The results of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// [`RUN_FORMAT`].
    pub format: u32,
    /// The version of Tokaido.
    pub tokaido: String,
    /// When it began, in seconds since 1970.
    pub began: u64,
    /// How long it took, in seconds.
    pub took_s: f64,
    /// How much was measured.
    pub scale: Scale,
    /// What it was measured on.
    pub machine: Machine,
    /// Versions of the peers that were installed.
    pub peers: BTreeMap<String, String>,
    /// Whether it was stopped early.
    pub was_stopped: bool,
    /// Scenarios that could not be run, with the reason.
    pub failures: BTreeMap<String, String>,
    /// What was measured, in the order of the scenarios.
    pub items: Vec<Item>,
}

/// One thing that was measured for several subjects.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Item {
    /// The name of its scenario.
    pub scenario: String,
    /// What was measured.
    pub name: String,
    /// The unit of the figures.
    pub unit: Unit,
    /// What is done to treat all subjects alike, and what the figures do not tell.
    pub note: String,
    /// The axis of the rows' curves, if they have any.
    pub axis: Option<Axis>,
    /// The subjects, ours first.
    pub rows: Vec<Row>,
}

/// The unit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// A rate per second; more is better.
    PerSecond,
    /// A time in seconds; less is better.
    Seconds,
    /// A size in bytes; less is better.
    Bytes,
    /// A dimensionless number; less is better.
    Times,
}

impl Unit {
    /// Whether more is better.
    #[must_use]
    pub fn more_is_better(self) -> bool {
        self == Self::PerSecond
    }
}

/// The axis of curves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Axis {
    /// The fraction of the requests that took at most this long, such as 0.99; the figures are times.
    Quantile,
    /// The number of records.
    Records,
}

/// Points, ordered by their first number.
pub type Curve = Vec<(f64, f64)>;

/// What was measured for one subject.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The subject.
    pub subject: String,
    /// The settings with which it ran.
    pub settings: String,
    /// Whether it is Tokaido.
    pub is_ours: bool,
    /// For a peer, the index among the rows of Tokaido's row that does the same.
    pub beside: usize,
    /// A figure for each round, in order.
    pub samples: Vec<f64>,
    /// Processor time of the server per operation in seconds, for each round, in order; empty if it is unknown.
    pub costs: Vec<f64>,
    /// Where the time went, over all rounds.
    pub split: Option<Split>,
    /// Whether the generator was the limit in a round, so that the subject may be better than its figure.
    pub is_bound: bool,
    /// The figures over the axis of the item.
    pub curve: Curve,
    /// Why there is no figure, or why there are fewer figures than rounds.
    pub problem: Option<Problem>,
}

/// Processor time, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Split {
    /// Of the generator, in user space.
    pub client_user: f64,
    /// Of the kernel, on behalf of the generator.
    pub client_system: f64,
    /// Of the server, in user space.
    pub server_user: f64,
    /// Of the kernel, on behalf of the server.
    pub server_system: f64,
}

impl Split {
    /// The parts, with their names.
    #[must_use]
    pub fn parts(&self) -> [(&'static str, f64); 4] {
        [
            ("client, user", self.client_user),
            ("client, system", self.client_system),
            ("server, user", self.server_user),
            ("server, system", self.server_system),
        ]
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.client_user += other.client_user;
        self.client_system += other.client_system;
        self.server_user += other.server_user;
        self.server_system += other.server_system;
    }
}

/// Why there is no figure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Problem {
    /// It is not installed; this is the Debian package that contains it, if there is one.
    Missing(Option<String>),
    /// It failed.
    Failed(String),
}

/// A stored run is unavailable.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The file cannot be read.
    #[error("{path}: {source}")]
    Read {
        /// Its path.
        path: String,
        /// The cause.
        source: io::Error,
    },
    /// The file is not a run.
    #[error("{path} is not a run that `tokaido bench suite` has stored: {why}")]
    Form {
        /// Its path.
        path: String,
        /// What is wrong.
        why: String,
    },
}

impl Run {
    /// Reads a stored run.
    ///
    /// # Errors
    /// If the file cannot be read, or has another format.
    pub fn read(path: &Path) -> Result<Self, RunError> {
        let shown = || path.display().to_string();
        let failed = |source| RunError::Read { path: shown(), source };
        if fs::metadata(path).map_err(failed)?.len() > RUN_LEN_MAX {
            return Err(RunError::Form {
                path: shown(),
                why: format!("it is longer than {RUN_LEN_MAX} bytes"),
            });
        }
        let text = fs::read(path).map_err(failed)?;
        let run: Self = serde_json::from_slice(&text)
            .map_err(|error| RunError::Form { path: shown(), why: error.to_string() })?;
        match run.format {
            RUN_FORMAT => Ok(run),
            format => Err(RunError::Form {
                path: shown(),
                why: format!("its form is {format}, and this program reads {RUN_FORMAT}"),
            }),
        }
    }

    /// The text in which a run is stored.
    #[must_use]
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default()
    }
}

impl Item {
    /// How many times better ours is than row `index`, round by round, compared with that of our rows which does the same;
    /// above 1 means that ours is better. `None` if one of the two has no figures, or the row is ours.
    #[must_use]
    pub fn advantages(&self, index: usize) -> Option<Vec<f64>> {
        let (ours, other) = self.beside_ours(index)?;
        Some(match self.unit.more_is_better() {
            true => statistics::ratios(&other.samples, &ours.samples),
            false => statistics::ratios(&ours.samples, &other.samples),
        })
        .filter(|ratios| !ratios.is_empty())
    }

    /// The same for the processor time of the servers.
    #[must_use]
    pub fn cost_advantages(&self, index: usize) -> Option<Vec<f64>> {
        let (ours, other) = self.beside_ours(index)?;
        Some(statistics::ratios(&ours.costs, &other.costs)).filter(|ratios| !ratios.is_empty())
    }

    /// Our row that does the same as row `index`, and that row.
    #[must_use]
    pub fn beside_ours(&self, index: usize) -> Option<(&Row, &Row)> {
        let row = self.rows.get(index).filter(|row| !row.is_ours)?;
        let ours = self.rows.get(row.beside).filter(|row| row.is_ours)?;
        Some((ours, row))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(unit: Unit) -> Item {
        let row =
            |is_ours, samples: &[f64]| Row { is_ours, samples: samples.to_vec(), ..Row::default() };
        Item {
            scenario: "server".to_owned(),
            name: "GET".to_owned(),
            unit,
            note: String::new(),
            axis: None,
            rows: vec![row(true, &[2.0, 4.0]), row(false, &[1.0, 4.0]), row(false, &[])],
        }
    }

    #[test]
    fn above_one_is_better_whichever_way_the_unit_goes() {
        assert_eq!(item(Unit::PerSecond).advantages(1), Some(vec![2.0, 1.0]));
        assert_eq!(item(Unit::Seconds).advantages(1), Some(vec![0.5, 1.0]));
        assert_eq!(item(Unit::Seconds).advantages(0), None);
        assert_eq!(item(Unit::Seconds).advantages(2), None);
        assert_eq!(item(Unit::Seconds).advantages(3), None);
    }
}
