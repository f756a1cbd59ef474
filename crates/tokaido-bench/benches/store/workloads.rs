//! What is measured: each workload with the peers that run it.

use std::path::Path;

use tokaido_bench::timing;

use crate::{
    Outcome,
    peers::{Peer, Subject},
    report::{HEAD, Measured},
};

struct Workload {
    /// As the subjects know it.
    name: &'static str,
    title: &'static str,
    goal: &'static str,
    peers: &'static [Peer],
}

const WORKLOADS: [Workload; 10] = [
    Workload {
        name: "order",
        title: "P1: 100,000 keys set, got, removed",
        goal: "150 ns",
        peers: &[Peer::Kyoto],
    },
    Workload {
        name: "order-random",
        title: "P2: the same with random keys",
        goal: "240 ns",
        peers: &[Peer::Kyoto],
    },
    Workload {
        name: "order-etc",
        title: "P3: also added, appended to, scanned both ways",
        goal: "160 ns",
        peers: &[Peer::Kyoto],
    },
    Workload {
        name: "order-random-etc",
        title: "P4: P3 with random keys",
        goal: "240 ns",
        peers: &[Peer::Kyoto],
    },
    Workload {
        name: "wicked",
        title: "P5: 100,000 random operations",
        goal: "250 ns",
        peers: &[Peer::Kyoto],
    },
    Workload {
        name: "wicked-x4",
        title: "P6: 400,000 of them",
        goal: "280 ns",
        peers: &[Peer::Kyoto],
    },
    Workload {
        name: "random-put",
        title: "1 M random keys put, 50 in a transaction",
        goal: "800 ns",
        peers: &[Peer::Lmdb],
    },
    Workload {
        name: "random-get",
        title: "random gets among them, in the base",
        goal: "1.1 x LMDB",
        peers: &[Peer::Lmdb],
    },
    Workload {
        name: "random-get-memtable",
        title: "the same, in the memtable",
        goal: "300 ns",
        peers: &[],
    },
    Workload { name: "random-scan", title: "scan, a record", goal: "60 ns", peers: &[Peer::Lmdb] },
];

/// Runs the workloads whose names begin with one of `names`, or all, and prints their table.
pub(crate) fn run(names: &[&str], rounds: usize) -> Outcome {
    // On the disk that the target directory is on, since a temporary one may be in memory.
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    println!("{HEAD}");
    for workload in &WORKLOADS {
        if !names.is_empty() && !names.iter().any(|name| workload.name.starts_with(name)) {
            continue;
        }
        for row in measure(workload, rounds, place.path())?.rows() {
            println!("{row}");
        }
    }
    Ok(())
}

fn measure(workload: &Workload, rounds: usize, place: &Path) -> Outcome<Measured> {
    let (title, goal) = (workload.title, workload.goal);
    let mut measured =
        Measured { title, goal, samples: Vec::new(), worked: Vec::new(), missing: Vec::new() };
    let mut subjects = Vec::new();
    for &peer in [Peer::Tokaido].iter().chain(workload.peers) {
        match Subject::start(peer, place, &place.join("rows")) {
            Ok(subject) => subjects.push((peer, subject)),
            Err(why) => {
                eprintln!("bench: {} cannot be measured: {why}", peer.name());
                measured.missing.push(peer.name());
            }
        }
    }
    let mut sums = Vec::new();
    measured.worked = vec![Vec::new(); subjects.len()];
    let samples = timing::interleave(subjects.len(), rounds, |index| {
        let answer = subjects[index].1.run(workload.name)?;
        sums.push(answer.sum);
        measured.worked[index].push(answer.worked);
        Outcome::Ok(answer.nanoseconds)
    })?;
    if let Some(other) = sums.iter().find(|&&sum| sum != sums[0]) {
        let name = workload.name;
        return Err(format!("{name}: not all did the same: sums {} and {other}", sums[0]).into());
    }
    measured.samples = subjects.iter().map(|(peer, _)| peer.name()).zip(samples).collect();
    Ok(measured)
}
