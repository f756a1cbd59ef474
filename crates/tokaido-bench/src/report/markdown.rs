//! A run as Markdown that is readable in a terminal, too.

use std::fmt::Write;

use super::cells;
use crate::suite::{Item, Run, SCENARIOS};

const HEAD: [&str; 9] = [
    "subject",
    "median (quartiles)",
    "Tokaido is so many times better (95 % sure)",
    "a request of the server's processor time",
    "its ratio",
    "client's share",
    "the client's processor time (user + system)",
    "the server's",
    "by the number of records",
];

/// A whole run.
#[must_use]
pub fn markdown(run: &Run) -> String {
    let mut text = cells::circumstances(run).join(".  \n");
    text.push_str(".\n");
    let mut scenario = "";
    let mut note = "";
    for item in &run.items {
        if item.scenario != scenario {
            (scenario, note) = (&item.scenario, "");
            let what = SCENARIOS.iter().find(|known| known.name == scenario);
            let what = what.map_or("", |scenario| scenario.what);
            let _ = write!(text, "\n## {scenario}: {what}\n");
        }
        let _ = write!(text, "\n### {}\n\n", item.name);
        // A note that several items share is printed once.
        if item.note != note {
            note = &item.note;
            let _ = write!(text, "{note}\n\n");
        }
        text.push_str(&item_table(item));
    }
    text
}

/// The table of an item, without empty columns.
#[must_use]
pub fn item_table(item: &Item) -> String {
    let rows = cells_of(item);
    let columns = columns_of(&rows);
    let mut text = line(columns.iter().map(|(_, head)| *head));
    text.push_str(&format!("|{}\n", "---|".repeat(columns.len())));
    for row in &rows {
        text.push_str(&line(columns.iter().map(|(column, _)| row[*column].as_str())));
    }
    text
}

/// All cells of an item, in the order of [`HEAD`].
pub(super) fn cells_of(item: &Item) -> Vec<[String; HEAD.len()]> {
    let row = |(index, row)| {
        let [client, server] = cells::times(item, row);
        [
            cells::subject(row),
            cells::median(item.unit, row),
            cells::advantage(item, index),
            cells::cost(row),
            cells::cost_advantage(item, index),
            cells::client_share(row),
            client,
            server,
            cells::by_records(item, row),
        ]
    };
    item.rows.iter().enumerate().map(row).collect()
}

/// The columns that are not empty, with their headings.
pub(super) fn columns_of(rows: &[[String; HEAD.len()]]) -> Vec<(usize, &'static str)> {
    let is_needed = |column: &usize| rows.iter().any(|row| !row[*column].is_empty());
    (0..HEAD.len()).filter(is_needed).map(|column| (column, HEAD[column])).collect()
}

fn line<'a>(cells: impl Iterator<Item = &'a str>) -> String {
    // A program's message may contain line ends and bars.
    let cells: Vec<String> =
        cells.map(|cell| cell.replace('|', "\\|").replace(['\n', '\r'], " ")).collect();
    format!("| {} |\n", cells.join(" | "))
}
