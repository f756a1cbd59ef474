//! What is measured over the wire: each scenario puts the same load on ours and on its peers, in
//! turn.

use std::{path::Path, time::Instant};

use tokaido_bench::{machine, statistics::Summary, timing};

use crate::{
    failure::{Failure, Outcome},
    process, server,
    server::Server,
};

use super::{
    collections, commands, dialects, idle,
    load::Sample,
    peers::Peer,
    records::{self, Wire, Work},
    report::{self, Measured, Samples},
    timed,
};

/// Samples of each subject, after one that does not count.
pub(super) const ROUNDS: usize = 5;

/// The same where a difference of a few per cent is looked for.
const FINE_ROUNDS: usize = 15;

/// Connections that do nothing beside those that work.
const CROWD: usize = 10_000;

/// Which way a figure is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    RequestsPerSecond,
    Seconds,
}

/// One load, and the program that makes it (empty: this one).
pub(super) struct Scenario {
    pub(super) name: &'static str,
    pub(super) unit: Unit,
    /// Ours first.
    pub(super) subjects: &'static [Peer],
    pub(super) generator: &'static str,
    pub(super) rounds: usize,
    pub(super) fill: fn(u16) -> Outcome,
    pub(super) sample: fn(Peer, u16) -> Outcome<Sample>,
}

const SCENARIOS: [Scenario; 18] = [
    Scenario {
        rounds: FINE_ROUNDS,
        ..memcached("memcached get", |_, port| by_memcached(port, Work::Get, 1))
    },
    memcached("memcached get, pipeline 16", |_, port| by_memcached(port, Work::Get, 16)),
    memcached("memcached get, pipeline 100", |_, port| by_memcached(port, Work::Get, 100)),
    Scenario {
        rounds: FINE_ROUNDS,
        ..memcached("memcached set 64 bytes", |_, port| by_memcached(port, Work::Set, 1))
    },
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
    in_memcached_crowd("crowd: memcached get", |_, port| by_memcached(port, Work::Get, 1)),
    in_memcached_crowd("crowd: memcached set, pipeline 16", |_, port| {
        by_memcached(port, Work::Set, 16)
    }),
    in_redis_crowd("crowd: Redis GET", |_, port| records::rate(port, Wire::Redis, Work::Get, 1)),
    in_redis_crowd("crowd: Redis GET, pipeline 16", |_, port| {
        records::rate(port, Wire::Redis, Work::Get, 16)
    }),
];

/// From 50 connections, among a million keys.
const fn memcached(name: &'static str, sample: fn(Peer, u16) -> Outcome<Sample>) -> Scenario {
    Scenario {
        name,
        unit: Unit::RequestsPerSecond,
        subjects: &[Peer::TokaidoCache, Peer::Memcached],
        generator: "",
        rounds: ROUNDS,
        fill: |port| records::fill(port, Wire::Memcached),
        sample,
    }
}

fn by_memcached(port: u16, work: Work, pipeline: usize) -> Outcome<Sample> {
    records::rate(port, Wire::Memcached, work, pipeline)
}

/// From 50 connections, among a million keys, beside the same work by the Redis protocol.
const fn beside_redis(
    name: &'static str,
    subjects: &'static [Peer],
    sample: fn(Peer, u16) -> Outcome<Sample>,
) -> Scenario {
    let fill = |port| records::fill(port, Wire::Redis);
    Scenario {
        name,
        unit: Unit::RequestsPerSecond,
        subjects,
        generator: "",
        rounds: ROUNDS,
        fill,
        sample,
    }
}

const fn in_bulk(name: &'static str, sample: fn(Peer, u16) -> Outcome<Sample>) -> Scenario {
    beside_redis(name, &[Peer::TokaidoByKyoto, Peer::TokaidoByRedis], sample)
}

const fn by_tyrant(name: &'static str, sample: fn(Peer, u16) -> Outcome<Sample>) -> Scenario {
    beside_redis(name, &[Peer::TokaidoByTyrant, Peer::TokaidoByRedis], sample)
}

const fn in_memcached_crowd(
    name: &'static str,
    sample: fn(Peer, u16) -> Outcome<Sample>,
) -> Scenario {
    let subjects = &[Peer::TokaidoCacheCrowded, Peer::TokaidoCache];
    Scenario { subjects, rounds: FINE_ROUNDS, ..memcached(name, sample) }
}

const fn in_redis_crowd(name: &'static str, sample: fn(Peer, u16) -> Outcome<Sample>) -> Scenario {
    let subjects = &[Peer::TokaidoByRedisCrowded, Peer::TokaidoByRedis];
    Scenario { rounds: FINE_ROUNDS, ..beside_redis(name, subjects, sample) }
}

fn bulk(peer: Peer, port: u16, work: Work) -> Outcome<Sample> {
    let is_kyoto = peer == Peer::TokaidoByKyoto;
    records::rate(port, if is_kyoto { Wire::KyotoBulk } else { Wire::RedisBulk }, work, 100)
}

fn tyrant(peer: Peer, port: u16, work: Work, pipeline: usize) -> Outcome<Sample> {
    let is_tyrant = peer == Peer::TokaidoByTyrant;
    records::rate(port, if is_tyrant { Wire::Tyrant } else { Wire::Redis }, work, pipeline)
}

/// What has a table of its own: its name, and what gives the table.
type Other = (&'static str, fn(&Path) -> Outcome<String>);

/// Runs what has a name that begins so, or all, and gives the tables.
pub(super) fn run(names: &[&str]) -> Outcome<String> {
    let tokaido = server::release_binary()?;
    let is_named =
        |name: &str| names.is_empty() || names.iter().any(|start| name.starts_with(start));
    let mut measured = Vec::new();
    let scenarios = SCENARIOS.iter().chain(&dialects::SCENARIOS);
    for scenario in scenarios.filter(|scenario| is_named(scenario.name)) {
        println!("bench: {}", scenario.name);
        measured.push(measure(scenario, &tokaido)?);
    }
    for loops in timed::LOOPS.iter().filter(|loops| is_named(loops.name)) {
        println!("bench: {}", loops.name);
        measured.push(loops.measure(&tokaido)?);
    }
    let mut tables = Vec::new();
    if !measured.is_empty() {
        tables.push(report::table(&measured));
    }
    let others: [Other; 5] = [
        (idle::NAME, idle::run),
        (commands::COMMANDS, commands::commands),
        (commands::TAIL, commands::tail),
        (collections::LARGE, collections::large),
        (collections::SMALL, collections::small),
    ];
    for (_, run) in others.iter().filter(|(name, _)| is_named(name)) {
        tables.push(run(&tokaido)?);
    }
    Ok(tables.join("\n"))
}

fn measure(scenario: &Scenario, tokaido: &Path) -> Outcome<Measured> {
    let mut measured = Measured::of(scenario.name, scenario.unit);
    if !scenario.generator.is_empty() && !process::is_installed(scenario.generator) {
        measured.missing.push(scenario.generator);
        return Ok(measured);
    }
    let mut subjects: Vec<(Peer, Server)> = Vec::new();
    let mut crowds = Vec::new();
    for &peer in scenario.subjects {
        if !peer.is_installed() {
            measured.missing.push(peer.name());
            continue;
        }
        let server = peer.start(tokaido)?;
        (scenario.fill)(server.port())?;
        if let Some(wire) = peer.crowd() {
            crowds.push(records::open(server.port(), wire, CROWD)?);
        }
        subjects.push((peer, server));
    }
    let before = machine::children_processor_time();
    let start = Instant::now();
    let mut costs = vec![Vec::new(); subjects.len()];
    let mut busy = Vec::new();
    let samples = timing::interleave(subjects.len(), scenario.rounds, |index| {
        let (peer, server) = &subjects[index];
        let before = machine::processor_time(server.process());
        let sample = (scenario.sample)(*peer, server.port())?;
        let after = machine::processor_time(server.process());
        let cost = before.zip(after).map(|(before, after)| (after - before).as_secs_f64());
        costs[index].extend(cost.map(|cost| cost / sample.operations));
        busy.extend(sample.client_busy);
        Ok::<_, Failure>(sample.figure)
    })?;
    let wall = start.elapsed().as_secs_f64();
    let after = machine::children_processor_time();
    measured.client_busy = if scenario.generator.is_empty() {
        Summary::of(&busy).map(|busy| busy.median)
    } else {
        before.zip(after).map(|(before, after)| (after - before).as_secs_f64() / wall)
    };
    let subjects = subjects.iter().zip(samples).zip(costs);
    measured.samples = subjects
        // The first round does not count here, either.
        .map(|(((peer, _), figures), costs)| Samples {
            subject: peer.name(),
            figures,
            costs: costs.into_iter().skip(1).collect(),
        })
        .collect();
    Ok(measured)
}
