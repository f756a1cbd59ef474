//! The results of a stored run of `tokaido bench suite`: a page of tables, and the README's charts.

use tokaido_bench::{
    report::{self, Chart},
    suite::{Item, Run},
};

use crate::{
    failure::{Failure, Outcome},
    files,
};

/// The path, from the root of the repository, of the run that the documents show.
const RUN: &str = "bench/runs/latest.json";

const HEAD: &str = "\
# Tokaido beside its peers

A run of `tokaido bench suite`, by one machine; [how it measures](bench.md#tokaido-beside-its-peers), and what the columns mean. This page is made of
[bench/runs/latest.json](../bench/runs/latest.json) by `cargo xtask docs`.

";

pub(super) fn page() -> Outcome<String> {
    Ok(HEAD.to_owned() + &report::markdown(&run()?))
}

pub(super) fn hello() -> Outcome<String> {
    picture("hello", "hello world, connections kept, one core")
}

pub(super) fn set() -> Outcome<String> {
    picture("server", "SET, every write synced")
}

fn run() -> Outcome<Run> {
    Run::read(&files::root().join(RUN)).map_err(|error| Failure::new(error.to_string()))
}

fn picture(scenario: &str, name: &str) -> Outcome<String> {
    let run = run()?;
    let is_wanted = |item: &&Item| item.scenario == scenario && item.name == name;
    let item = run.items.iter().find(is_wanted);
    let item = item.ok_or_else(|| Failure::new(format!("{RUN} has no {scenario}: {name}")))?;
    let picture = report::picture(item, Chart::Bars);
    picture.map_err(|error| Failure::new(error.to_string()))
}
