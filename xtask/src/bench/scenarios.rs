//! What is measured over the wire: each scenario puts the same load on ours and on its peers, in
//! turn.

use std::{path::Path, time::Instant};

use tokaido_bench::{machine, timing};

use crate::{
    failure::{Failure, Outcome},
    files, process, server,
    server::Server,
};

use super::{
    load, memcached,
    peers::Peer,
    report::{self, Measured},
};

/// Samples of each subject, after one that does not count.
const ROUNDS: usize = 5;

/// Keys that the servers hold before they are asked for them.
const KEYS: u32 = 100_000;

/// Which way a figure is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    RequestsPerSecond,
    Seconds,
}

/// One load, and the program that makes it (empty: this one).
struct Scenario {
    name: &'static str,
    unit: Unit,
    /// Ours first.
    subjects: &'static [Peer],
    generator: &'static str,
    fill: fn(u16) -> Outcome,
    sample: fn(Peer, u16) -> Outcome<f64>,
}

const SCENARIOS: [Scenario; 13] = [
    Scenario {
        name: "GET, 50 connections",
        unit: Unit::RequestsPerSecond,
        subjects: &[Peer::Tokaido, Peer::Redis],
        generator: "redis-benchmark",
        fill: |port| load::fill(port, KEYS),
        sample: |_, port| load::redis_benchmark(port, "-t get -c 50 -n 150000 -r 100000"),
    },
    Scenario {
        name: "GET, 50 connections, pipeline 16",
        unit: Unit::RequestsPerSecond,
        subjects: &[Peer::Tokaido, Peer::Redis],
        generator: "redis-benchmark",
        fill: |port| load::fill(port, KEYS),
        sample: |_, port| load::redis_benchmark(port, "-t get -c 50 -P 16 -n 1000000 -r 100000"),
    },
    Scenario {
        name: "SET 64 bytes, 50 connections",
        unit: Unit::RequestsPerSecond,
        subjects: &[Peer::Tokaido, Peer::RedisSynced, Peer::Redis],
        generator: "redis-benchmark",
        fill: |port| load::fill(port, KEYS),
        sample: |_, port| load::redis_benchmark(port, "-t set -d 64 -c 50 -n 50000 -r 100000"),
    },
    Scenario {
        name: "SET 64 bytes, 50 connections, pipeline 16",
        unit: Unit::RequestsPerSecond,
        subjects: &[Peer::Tokaido, Peer::RedisSynced, Peer::Redis],
        generator: "redis-benchmark",
        fill: |port| load::fill(port, KEYS),
        sample: |_, port| {
            load::redis_benchmark(port, "-t set -d 64 -c 50 -P 16 -n 200000 -r 100000")
        },
    },
    Scenario {
        name: "procedure: 100,000 keys set, got, removed",
        unit: Unit::Seconds,
        subjects: &[Peer::Tokaido, Peer::Redis],
        generator: "",
        fill: |_| Ok(()),
        sample: loop_procedure,
    },
    Scenario {
        name: "hello world from a Lua route, 100 connections",
        unit: Unit::RequestsPerSecond,
        subjects: &[Peer::Tokaido, Peer::Nginx],
        generator: "wrk",
        fill: |_| Ok(()),
        sample: |_, port| load::wrk(port, "/bench/hello", "-t1 -c100 -d2s"),
    },
    Scenario {
        name: "fib(37) in a Lua route",
        unit: Unit::Seconds,
        subjects: &[Peer::Tokaido, Peer::Nginx],
        generator: "",
        fill: |_| Ok(()),
        sample: |_, port| load::http(port, "GET", "/bench/fib"),
    },
    memcached("memcached get", |_, port| memcached::get(port, 1)),
    memcached("memcached get, pipeline 16", |_, port| memcached::get(port, 16)),
    memcached("memcached get, pipeline 100", |_, port| memcached::get(port, 100)),
    memcached("memcached set 64 bytes", |_, port| memcached::set(port, 1)),
    memcached("memcached set 64 bytes, pipeline 16", |_, port| memcached::set(port, 16)),
    memcached("memcached set 64 bytes, pipeline 100", |_, port| memcached::set(port, 100)),
];

/// From 50 connections, among a million keys.
const fn memcached(name: &'static str, sample: fn(Peer, u16) -> Outcome<f64>) -> Scenario {
    Scenario {
        name,
        unit: Unit::RequestsPerSecond,
        subjects: &[Peer::TokaidoCache, Peer::Memcached],
        generator: "",
        fill: memcached::fill,
        sample,
    }
}

/// Runs all scenarios and gives their table.
pub(super) fn run() -> Outcome<String> {
    let tokaido = server::release_binary()?;
    let mut measured = Vec::new();
    for scenario in &SCENARIOS {
        println!("bench: {}", scenario.name);
        measured.push(measure(scenario, &tokaido)?);
    }
    Ok(report::table(&measured))
}

fn measure(scenario: &Scenario, tokaido: &Path) -> Outcome<Measured> {
    let mut measured = Measured::of(scenario.name, scenario.unit);
    if !scenario.generator.is_empty() && !process::is_installed(scenario.generator) {
        measured.missing.push(scenario.generator);
        return Ok(measured);
    }
    let mut subjects: Vec<(Peer, Server)> = Vec::new();
    for &peer in scenario.subjects {
        if !peer.is_installed() {
            measured.missing.push(peer.name());
            continue;
        }
        let server = peer.start(tokaido)?;
        (scenario.fill)(server.port())?;
        subjects.push((peer, server));
    }
    let before = machine::children_processor_time();
    let start = Instant::now();
    let samples = timing::interleave(subjects.len(), ROUNDS, |index| {
        let (peer, server) = &subjects[index];
        (scenario.sample)(*peer, server.port())
    })?;
    let wall = start.elapsed().as_secs_f64();
    let after = machine::children_processor_time();
    if !scenario.generator.is_empty() {
        measured.client_busy =
            before.zip(after).map(|(before, after)| (after - before).as_secs_f64() / wall);
    }
    measured.samples = subjects.iter().map(|(peer, _)| peer.name()).zip(samples).collect();
    Ok(measured)
}

fn loop_procedure(peer: Peer, port: u16) -> Outcome<f64> {
    match peer {
        Peer::Tokaido => load::redis_command(port, &["FCALL", "bench.loop", "0"]),
        Peer::Redis | Peer::RedisSynced => {
            let script = files::read("xtask/bench/redis-loop.lua")?;
            load::redis_command(port, &["EVAL", &script, "0"])
        }
        Peer::TokaidoCache | Peer::Memcached | Peer::Nginx => {
            Err(Failure::new("it is not asked to run the procedure"))
        }
    }
}
