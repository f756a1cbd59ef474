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
    load,
    peers::Peer,
    records::{self, Wire, Work},
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

const SCENARIOS: [Scenario; 21] = [
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
    memcached("memcached get", |_, port| by_memcached(port, Work::Get, 1)),
    memcached("memcached get, pipeline 16", |_, port| by_memcached(port, Work::Get, 16)),
    memcached("memcached get, pipeline 100", |_, port| by_memcached(port, Work::Get, 100)),
    memcached("memcached set 64 bytes", |_, port| by_memcached(port, Work::Set, 1)),
    memcached("memcached set 64 bytes, pipeline 16", |_, port| by_memcached(port, Work::Set, 16)),
    memcached("memcached set 64 bytes, pipeline 100", |_, port| by_memcached(port, Work::Set, 100)),
    Scenario {
        unit: Unit::Seconds,
        ..memcached("memcached get, 99th percentile", |_, port| {
            records::latency(port, Wire::Memcached, Work::Get, 1)
        })
    },
    Scenario {
        unit: Unit::Seconds,
        ..memcached("memcached set 64 bytes, 99th percentile", |_, port| {
            records::latency(port, Wire::Memcached, Work::Set, 1)
        })
    },
    in_bulk("Kyoto Tycoon get_bulk of 100, beside MGET", |peer, port| bulk(peer, port, Work::Get)),
    in_bulk("Kyoto Tycoon set_bulk of 100, beside MSET", |peer, port| bulk(peer, port, Work::Set)),
    by_tyrant("Tokyo Tyrant get, beside GET", |peer, port| tyrant(peer, port, Work::Get, 1)),
    by_tyrant("Tokyo Tyrant get, pipeline 16, beside GET", |peer, port| {
        tyrant(peer, port, Work::Get, 16)
    }),
    by_tyrant("Tokyo Tyrant put, beside SET", |peer, port| tyrant(peer, port, Work::Set, 1)),
    by_tyrant("Tokyo Tyrant put, pipeline 16, beside SET", |peer, port| {
        tyrant(peer, port, Work::Set, 16)
    }),
];

/// From 50 connections, among a million keys.
const fn memcached(name: &'static str, sample: fn(Peer, u16) -> Outcome<f64>) -> Scenario {
    Scenario {
        name,
        unit: Unit::RequestsPerSecond,
        subjects: &[Peer::TokaidoCache, Peer::Memcached],
        generator: "",
        fill: |port| records::fill(port, Wire::Memcached),
        sample,
    }
}

fn by_memcached(port: u16, work: Work, pipeline: usize) -> Outcome<f64> {
    records::rate(port, Wire::Memcached, work, pipeline)
}

/// From 50 connections, among a million keys, beside the same work by the Redis protocol.
const fn beside_redis(
    name: &'static str,
    subjects: &'static [Peer],
    sample: fn(Peer, u16) -> Outcome<f64>,
) -> Scenario {
    let fill = |port| records::fill(port, Wire::Redis);
    Scenario { name, unit: Unit::RequestsPerSecond, subjects, generator: "", fill, sample }
}

const fn in_bulk(name: &'static str, sample: fn(Peer, u16) -> Outcome<f64>) -> Scenario {
    beside_redis(name, &[Peer::TokaidoByKyoto, Peer::TokaidoByRedis], sample)
}

const fn by_tyrant(name: &'static str, sample: fn(Peer, u16) -> Outcome<f64>) -> Scenario {
    beside_redis(name, &[Peer::TokaidoByTyrant, Peer::TokaidoByRedis], sample)
}

fn bulk(peer: Peer, port: u16, work: Work) -> Outcome<f64> {
    let is_kyoto = peer == Peer::TokaidoByKyoto;
    records::rate(port, if is_kyoto { Wire::KyotoBulk } else { Wire::RedisBulk }, work, 100)
}

fn tyrant(peer: Peer, port: u16, work: Work, pipeline: usize) -> Outcome<f64> {
    let is_tyrant = peer == Peer::TokaidoByTyrant;
    records::rate(port, if is_tyrant { Wire::Tyrant } else { Wire::Redis }, work, pipeline)
}

/// Runs the scenarios whose names begin so, or all, and gives their table.
pub(super) fn run(names: &[&str]) -> Outcome<String> {
    let tokaido = server::release_binary()?;
    let mut measured = Vec::new();
    let is_named = |scenario: &&Scenario| {
        names.is_empty() || names.iter().any(|name| scenario.name.starts_with(name))
    };
    for scenario in SCENARIOS.iter().filter(is_named) {
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
        _ => Err(Failure::new("it is not asked to run the procedure")),
    }
}
