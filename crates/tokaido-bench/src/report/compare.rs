//! Compares two runs: what has become better or worse.

use std::fmt;

use super::cells;
use crate::{
    statistics::Summary,
    suite::{Item, Row, Run},
};

/// The change from which on a row counts as better or worse, if the quartiles do not overlap, either. Two runs are not
/// interleaved, so it includes what has changed on the machine itself in between.
const CHANGE_MIN: f64 = 0.05;

/// The change of one row.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The item, with its scenario.
    pub item: String,
    /// The subject, with its settings.
    pub subject: String,
    /// Whether it is Tokaido.
    pub is_ours: bool,
    /// The medians before and now, with their units.
    pub medians: [String; 2],
    /// How many times better it is now.
    pub better: f64,
    /// The same relative to the peers, which cancels their own change: the change of the ratio.
    /// `None` if the item has no peer in both runs.
    pub beside_peers: Option<f64>,
    /// Whether the quartiles overlap.
    pub overlaps: bool,
}

/// The changes from one run to another.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// All rows that are in both.
    pub changes: Vec<Change>,
    /// Why the runs are not comparable, if they are not.
    pub warnings: Vec<String>,
}

impl Change {
    /// The change that counts: relative to the peers if there are any.
    fn factor(&self) -> f64 {
        self.beside_peers.unwrap_or(self.better)
    }

    /// Whether ours has become worse by more than the runs scatter.
    #[must_use]
    pub fn is_regression(&self) -> bool {
        self.is_ours && !self.overlaps && self.factor() < 1.0 - CHANGE_MIN
    }

    fn verdict(&self) -> &'static str {
        match self.factor() {
            _ if self.overlaps => "no difference measurable",
            factor if factor < 1.0 - CHANGE_MIN => "worse",
            factor if factor > 1.0 + CHANGE_MIN => "better",
            _ => "the same",
        }
    }
}

impl Comparison {
    /// Compares `now` with what was `before`.
    #[must_use]
    pub fn of(before: &Run, now: &Run) -> Self {
        let mut changes = Vec::new();
        for item in &now.items {
            let is_same = |other: &&Item| {
                (&other.scenario, &other.name, other.unit)
                    == (&item.scenario, &item.name, item.unit)
            };
            let Some(earlier) = before.items.iter().find(is_same) else { continue };
            let peers = peers_change(earlier, item);
            changes.extend(item.rows.iter().filter_map(|row| change(earlier, item, row, peers)));
        }
        let mut warnings = Vec::new();
        if before.machine != now.machine {
            warnings.push(format!(
                "the machines differ, so only what is beside peers says something: {} before, {} now",
                before.machine, now.machine
            ));
        }
        if before.scale != now.scale {
            warnings.push("the runs are of different scales".to_owned());
        }
        for (name, version) in &now.peers {
            if let Some(other) = before.peers.get(name).filter(|other| *other != version) {
                warnings.push(format!("{name} was {other}, and is {version} now"));
            }
        }
        Self { changes, warnings }
    }

    /// The rows that have become worse.
    pub fn regressions(&self) -> impl Iterator<Item = &Change> {
        self.changes.iter().filter(|change| change.is_regression())
    }
}

fn same_row<'a>(item: &'a Item, row: &Row) -> Option<&'a Row> {
    let is_same = |other: &&Row| (&other.subject, &other.settings) == (&row.subject, &row.settings);
    item.rows.iter().find(is_same)
}

/// How many times better a row is now.
fn better(item: &Item, before: &Summary, now: &Summary) -> f64 {
    match item.unit.more_is_better() {
        true => now.median / before.median,
        false => before.median / now.median,
    }
}

/// How many times better the peers are now: the median over all of them.
fn peers_change(before: &Item, now: &Item) -> Option<f64> {
    let of_row = |row: &Row| {
        let earlier = Summary::of(&same_row(before, row)?.samples)?;
        Some(better(now, &earlier, &Summary::of(&row.samples)?))
    };
    let peers = now.rows.iter().filter(|row| !row.is_ours);
    let changes: Vec<f64> = peers.filter_map(of_row).collect();
    Summary::of(&changes).map(|summary| summary.median)
}

fn change(before: &Item, item: &Item, row: &Row, peers: Option<f64>) -> Option<Change> {
    let earlier = Summary::of(&same_row(before, row)?.samples)?;
    let now = Summary::of(&row.samples)?;
    let better = better(item, &earlier, &now);
    Some(Change {
        item: format!("{}: {}", item.scenario, item.name),
        subject: cells::subject(row),
        is_ours: row.is_ours,
        medians: [earlier, now].map(|summary| cells::figure(item.unit, summary.median)),
        better,
        beside_peers: peers.filter(|_| row.is_ours).map(|peers| better / peers),
        overlaps: earlier.quartile_low <= now.quartile_high
            && now.quartile_low <= earlier.quartile_high,
    })
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for warning in &self.warnings {
            writeln!(f, "warning: {warning}")?;
        }
        let mut item = "";
        for change in &self.changes {
            if change.item != item {
                item = &change.item;
                writeln!(f, "\n{item}")?;
            }
            let [before, now] = &change.medians;
            let beside = change
                .beside_peers
                .map_or_else(String::new, |beside| format!(", {beside:.2} times beside the peers"));
            let Change { subject, better, .. } = change;
            let verdict = change.verdict();
            writeln!(
                f,
                "  {subject}: {before}, now {now}; {better:.2} times as good{beside}: {verdict}"
            )?;
        }
        writeln!(
            f,
            "\n{}",
            match self.regressions().count() {
                0 => "Nothing of Tokaido has become worse.".to_owned(),
                1 => "One figure of Tokaido has become worse.".to_owned(),
                count => format!("{count} figures of Tokaido have become worse."),
            }
        )
    }
}
