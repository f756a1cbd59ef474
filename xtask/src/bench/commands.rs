//! Commands of the Redis protocol beside Redis, which `redis-benchmark` sends from 50 connections: with what is on disk
//! up to a second old beside Redis that keeps nothing there, and with every write synced on both sides.

use std::path::Path;

use tokaido_bench::{
    machine,
    statistics::{self, Summary},
};

use super::{
    load::{self, Sample},
    peers::Peer,
};
use crate::{failure::Outcome, markdown, process};

/// The names of the tables.
pub(super) const COMMANDS: &str = "commands of Redis";
pub(super) const TAIL: &str = "tail of SET";

const GENERATOR: &str = "redis-benchmark";

const ROUNDS: usize = 3;

const REQUESTS: u32 = 300_000;

/// Where each request is waited for, which takes several times as long.
const SINGLE_REQUESTS: u32 = 100_000;

/// Keys, elements and scores are of so many.
const OF_KEYS: &str = "-c 50 -r 100000";

/// Sets, gets and counts, in one call.
const SCRIPT: &str = "redis.call('set', KEYS[1], ARGV[1]) redis.call('get', KEYS[1]) return \
                      redis.call('incr', KEYS[2])";

/// Two servers that promise the same, or, of the first pair, nearly so: ours first.
const PAIRS: [[Peer; 2]; 2] =
    [[Peer::TokaidoInterval, Peer::Redis], [Peer::TokaidoByRedis, Peer::RedisSynced]];

/// What is sent, with the goals of the two pairs: so many times the rate of Redis.
struct Row {
    name: &'static str,
    pipeline: u32,
    arguments: &'static str,
    /// What fills the server before that, in the words of the generator.
    filling: &'static str,
    goals: [f64; 2],
}

const fn row(name: &'static str, arguments: &'static str, filling: &'static str) -> Row {
    Row { name, pipeline: 16, arguments, filling, goals: [0.8, 2.0] }
}

/// Its name: the SHA-1 of its text.
const SCRIPT_NAME: &str = "990d59787a247bce49201f39cad483e4870594ba";

/// A call of it, with its name to be put in.
const CALL: &str = "EVALSHA SCRIPT_NAME 2 key:__rand_int__ n:__rand_int__ value";

const ROWS: [Row; 16] = [
    Row { pipeline: 1, goals: [1.0, 1.0], ..row("GET", "-t get", "-t set -d 64") },
    Row { goals: [1.5, 1.5], ..row("GET", "-t get", "-t set -d 64") },
    Row { pipeline: 1, goals: [1.0, 1.2], ..row("SET", "-t set -d 64", "") },
    Row { goals: [1.0, 1.5], ..row("SET", "-t set -d 64", "") },
    row("LPUSH", "-t lpush", ""),
    row("RPOP", "-t rpop", "-t rpush"),
    row("SADD", "-t sadd", ""),
    row("SPOP", "-t spop", "-t sadd"),
    row("HSET", "-t hset", ""),
    row("HGET", "HGET myhash element:__rand_int__", "-t hset"),
    row("ZADD", "-t zadd", ""),
    row(
        "ZRANGEBYSCORE",
        "ZRANGEBYSCORE myzset __rand_int__ +inf LIMIT 0 10",
        "ZADD myzset __rand_int__ element:__rand_int__",
    ),
    row("XADD", "XADD mystream * field value:__rand_int__", ""),
    row("LRANGE of 100", "LRANGE mylist 0 99", "-t lpush"),
    Row { pipeline: 1, goals: [1.0, 1.0], ..row("EVALSHA: set, get, incr", CALL, "") },
    Row { goals: [2.0, 2.0], ..row("EVALSHA: set, get, incr", CALL, "") },
];

/// Rates, and what an operation takes of the server's processor time, of both servers of a pair.
#[derive(Default)]
struct Samples {
    rates: [Vec<f64>; 2],
    costs: [Vec<f64>; 2],
}

/// How long the tail is looked at: over several checkpoints.
const TAIL_SECONDS: f64 = 60.0;

/// The same where what is on disk may be up to a second old on both sides.
const TAIL_PAIRS: [[Peer; 2]; 2] =
    [[Peer::TokaidoInterval, Peer::RedisEverySecond], [Peer::TokaidoByRedis, Peer::RedisSynced]];

/// Measures how long SETs at full speed take at most, and gives the table. The goal is not above Redis.
pub(super) fn tail(tokaido: &Path) -> Outcome<String> {
    if !process::is_installed(GENERATOR) {
        return Ok(format!("{TAIL}: {GENERATOR} is not installed\n"));
    }
    let mut rows = Vec::new();
    for peers in TAIL_PAIRS {
        for pipeline in [1, 16, 100] {
            println!("bench: {TAIL}, pipeline of {pipeline}, {}", peers[0].name());
            let mut cells = vec![format!("SET, pipeline of {pipeline}")];
            for peer in peers.into_iter().filter(|peer| peer.is_installed()) {
                let server = peer.start(tokaido)?;
                let arguments = format!("-c 50 -r 1000000 -d 64 -t set -P {pipeline}");
                let rate = load::redis_benchmark(server.port(), REQUESTS, &arguments)?.figure;
                let requests = (rate * TAIL_SECONDS) as u32;
                let tail = load::redis_tail(server.port(), requests, &arguments)?;
                cells.push(format!(
                    "{}: {:.1} ms, {:.1} ms",
                    peer.name(),
                    tail.nearly_all_ms,
                    tail.worst_ms
                ));
            }
            cells.resize(3, "not installed".to_owned());
            rows.push(cells);
        }
    }
    let head = ["what", "99.9 % of ours below, worst", "of Redis"];
    Ok(markdown::table(&head, &rows))
}

/// Measures every command with every pair of servers, and gives the table.
pub(super) fn commands(tokaido: &Path) -> Outcome<String> {
    if !process::is_installed(GENERATOR) || !Peer::Redis.is_installed() {
        return Ok(format!("{COMMANDS}: {GENERATOR} or redis-server is not installed\n"));
    }
    let mut rows = Vec::new();
    for (pair, peers) in PAIRS.iter().enumerate() {
        for row in &ROWS {
            println!("bench: {COMMANDS}, {}, {}", row.name, peers[0].name());
            let mut samples = Samples::default();
            for _ in 0..ROUNDS {
                for (peer, at) in peers.iter().zip(0..) {
                    let (sample, cost) = measure(*peer, tokaido, row)?;
                    samples.rates[at].push(sample.figure);
                    samples.costs[at].extend(cost);
                }
            }
            rows.push(cells(row, *peers, row.goals[pair], &samples));
        }
    }
    let head = ["what", "servers", "a second", "ratio (spread)", "goal", "processor time of one"];
    Ok(markdown::table(&head, &rows))
}

fn cells(row: &Row, peers: [Peer; 2], goal: f64, samples: &Samples) -> Vec<String> {
    let median = |figures: &[f64]| Summary::of(figures).map_or(0.0, |summary| summary.median);
    let [ours, theirs] = &samples.rates;
    let ratio = statistics::ratio(theirs, ours).map_or_else(String::new, |ratio| {
        format!("{:.2} ({:.0} %)", ratio.median, ratio.spread() * 100.0)
    });
    let cost = |at: usize| median(&samples.costs[at]) * 1e6;
    vec![
        format!("{}, pipeline of {}", row.name, row.pipeline),
        format!("{} / {}", peers[0].name(), peers[1].name()),
        format!("{:.0} / {:.0}", median(ours), median(theirs)),
        ratio,
        format!("{goal:.1}"),
        format!("{:.2} / {:.2} us", cost(0), cost(1)),
    ]
}

/// Of a new server: the sample, and the server's processor time for an operation in seconds.
fn measure(peer: Peer, tokaido: &Path, row: &Row) -> Outcome<(Sample, Option<f64>)> {
    let server = peer.start(tokaido)?;
    let port = server.port();
    if !row.filling.is_empty() {
        load::redis_benchmark(port, REQUESTS, &format!("{OF_KEYS} -P 100 {}", row.filling))?;
    }
    load::redis_command(port, &["SCRIPT", "LOAD", SCRIPT])?;
    // The generator takes errors for replies like any other, so the name is tried.
    load::redis_command(port, &["EVALSHA", SCRIPT_NAME, "2", "key", "n", "value"])?;
    let requests = if row.pipeline == 1 { SINGLE_REQUESTS } else { REQUESTS };
    let words = row.arguments.replace("SCRIPT_NAME", SCRIPT_NAME);
    let arguments = format!("{OF_KEYS} -P {} {words}", row.pipeline);
    let before = machine::processor_time(server.process());
    let sample = load::redis_benchmark(port, requests, &arguments)?;
    let after = machine::processor_time(server.process());
    let cost = before.zip(after).map(|(before, after)| (after - before).as_secs_f64());
    Ok((sample, cost.map(|cost| cost / sample.operations)))
}
