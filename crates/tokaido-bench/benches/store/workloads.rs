//! What is measured: each workload with the sides that run it.

use std::path::Path;

use tokaido_bench::timing;

use crate::{
    Outcome, memory,
    peers::{Peer, Subject},
    report::{HEAD, Measured},
};

/// A program and what it runs.
#[derive(Clone, Copy)]
struct Side {
    peer: Peer,
    /// How the table names it.
    title: &'static str,
    /// What it knows the workload by.
    workload: &'static str,
}

struct Workload {
    title: &'static str,
    goal: &'static str,
    /// Ours first.
    sides: &'static [Side],
}

const fn ours(workload: &'static str) -> Side {
    Side { peer: Peer::Tokaido, title: "Tokaido", workload }
}

const fn lmdb(workload: &'static str) -> Side {
    Side { peer: Peer::Lmdb, title: "LMDB", workload }
}

const fn side(peer: Peer, title: &'static str, workload: &'static str) -> Side {
    Side { peer, title, workload }
}

const WORKLOADS: &[Workload] = &[
    Workload {
        title: "1 M random keys put, 50 in a transaction",
        goal: "800 ns",
        sides: &[ours("random-put"), lmdb("random-put")],
    },
    Workload {
        title: "random gets among them, in the base",
        goal: "1.1 x LMDB",
        sides: &[ours("random-get"), lmdb("random-get")],
    },
    Workload {
        title: "the same, in the memtable",
        goal: "300 ns",
        sides: &[ours("random-get-memtable")],
    },
    Workload {
        title: "scan, a record",
        goal: "60 ns",
        sides: &[ours("random-scan"), lmdb("random-scan")],
    },
    Workload {
        title: "a durable commit",
        goal: "1.3 x the bare append",
        sides: &[
            ours("durable-commit"),
            side(Peer::Bare, "512 bytes appended, fdatasync", "durable-commit"),
            lmdb("durable-commit"),
        ],
    },
    Workload {
        title: "a durable commit, 64 writers",
        goal: "1/25 of one",
        sides: &[
            side(Peer::Tokaido, "Tokaido, as tasks", "durable-64-tasks"),
            side(Peer::Tokaido, "Tokaido, as threads", "durable-64"),
            side(Peer::Tokaido, "Tokaido, one writer", "durable-commit"),
        ],
    },
    Workload {
        title: "1,000 expired of 100,000 removed, a record",
        goal: "",
        sides: &[ours("expiry-100k")],
    },
    Workload {
        title: "10,000 expired of 1 M removed, a record",
        goal: "",
        sides: &[ours("expiry-1m")],
    },
];

/// Runs the workloads whose names begin with one of `names`, or all, and prints their table.
pub(crate) fn run(names: &[&str], rounds: usize) -> Outcome {
    // On the disk that the target directory is on, since a temporary one may be in memory.
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    let place = place.path();
    let is_chosen =
        |workload: &str| names.is_empty() || names.iter().any(|name| workload.starts_with(name));
    println!("{HEAD}");
    for workload in WORKLOADS.iter().filter(|workload| is_chosen(workload.sides[0].workload)) {
        for row in measure(workload, rounds, place)?.rows() {
            println!("{row}");
        }
    }
    if is_chosen("memory") { memory::print(place) } else { Ok(()) }
}

fn measure(workload: &Workload, rounds: usize, place: &Path) -> Outcome<Measured> {
    eprintln!("bench: {}", workload.title);
    let mut measured = Measured::of(workload.title, workload.goal);
    let mut subjects = Vec::new();
    for &side in workload.sides {
        match Subject::start(side.peer, place) {
            Ok(subject) => subjects.push((side, subject)),
            Err(why) => {
                eprintln!("bench: {} cannot be measured: {why}", side.title);
                measured.missing.push(side.title);
            }
        }
    }
    let mut sums = Vec::new();
    measured.worked = vec![Vec::new(); subjects.len()];
    let samples = timing::interleave(subjects.len(), rounds, |index| {
        let (side, subject) = &mut subjects[index];
        let answer = subject.run(side.workload)?;
        sums.push(answer.sum);
        measured.worked[index].push(answer.worked);
        Outcome::Ok(answer.nanoseconds)
    })?;
    if let Some(other) = sums.iter().find(|&&sum| sum != sums[0]) {
        let what = workload.title;
        return Err(format!("{what}: not all did the same: sums {} and {other}", sums[0]).into());
    }
    measured.samples = subjects.iter().map(|(side, _)| side.title).zip(samples).collect();
    Ok(measured)
}
