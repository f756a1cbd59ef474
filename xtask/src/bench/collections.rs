//! Collections over the Redis protocol, beside Redis: large ones of a thousand to a million elements, and
//! small ones at rest.

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpStream,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use tokaido_bench::{
    machine,
    statistics::{self, Summary},
};

use super::{load::connect, peers::Peer};
use crate::{
    failure::{Failure, Outcome},
    files, markdown,
    server::Server,
};

/// The names of the tables.
pub(super) const LARGE: &str = "collections, large";
pub(super) const SMALL: &str = "collections, small hashes";

const SIZES: [u32; 4] = [1_000, 10_000, 100_000, 1_000_000];

const ROUNDS: usize = 3;

/// Ours first.
const PEERS: [Peer; 2] = [Peer::TokaidoInterval, Peer::Redis];

/// Maximum number of elements that are read from a collection.
const READS_MAX: u32 = 20_000;

const PIPELINE: u32 = 100;

/// Small hashes, with so many fields each.
const HASHES: u32 = 500_000;
const FIELDS: u32 = 10;

/// How long a server that has been written to is left alone before it is at rest.
const REST: Duration = Duration::from_secs(5);

/// Something that is done to a collection again and again, with one element each time.
struct Step {
    name: &'static str,
    /// The command for an element.
    command: fn(u32) -> String,
    /// Lines of the reply.
    lines: usize,
    /// Whether it is done with all elements, and not with some of them.
    is_for_all: bool,
}

const STEPS: [Step; 5] = [
    Step {
        name: "ZADD",
        command: |i| format!("ZADD z {} member:{i:07}\r\n", scattered(i)),
        lines: 1,
        is_for_all: true,
    },
    Step {
        name: "ZSCORE",
        command: |i| format!("ZSCORE z member:{i:07}\r\n"),
        lines: 2,
        is_for_all: false,
    },
    Step {
        name: "ZRANK",
        command: |i| format!("ZRANK z member:{i:07}\r\n"),
        lines: 1,
        is_for_all: false,
    },
    Step {
        name: "HSET",
        command: |i| format!("HSET h field:{i:07} value:{i:010}\r\n"),
        lines: 1,
        is_for_all: true,
    },
    Step {
        name: "HGET",
        command: |i| format!("HGET h field:{i:07}\r\n"),
        lines: 2,
        is_for_all: false,
    },
];

/// What is done once, at the end.
const DELETIONS: [(&str, &str); 2] =
    [("DEL of the sorted set", "DEL z\r\n"), ("DEL of the hash", "DEL h\r\n")];

/// A number that looks like chance, and is another one for each element.
fn scattered(i: u32) -> u32 {
    i.wrapping_mul(2_654_435_761)
}

/// Measures what is done to collections of each size, and gives the table.
pub(super) fn large(tokaido: &Path) -> Outcome<String> {
    let mut rows = Vec::new();
    for size in SIZES {
        println!("bench: {LARGE}, {size} elements");
        let mut samples = vec![Vec::new(); PEERS.len()];
        for _ in 0..ROUNDS {
            for (peer, samples) in PEERS.iter().zip(&mut samples) {
                samples.push(seconds(&peer.start(tokaido)?, size)?);
            }
        }
        let names = STEPS.iter().map(|step| step.name).chain(DELETIONS.map(|(name, _)| name));
        for (at, name) in names.enumerate() {
            let of = |peer: usize| samples[peer].iter().map(|round| round[at]).collect::<Vec<_>>();
            let (ours, theirs) = (of(0), of(1));
            let ratio = statistics::ratio(&ours, &theirs);
            let ratio = ratio.map_or_else(String::new, |ratio| {
                format!("{:.2} ({:.0} %)", ratio.median, ratio.spread() * 100.0)
            });
            rows.push(vec![
                name.to_owned(),
                size.to_string(),
                microseconds(&ours),
                microseconds(&theirs),
                ratio,
            ]);
        }
    }
    let [ours, theirs] = PEERS.map(Peer::name);
    Ok(markdown::table(&["what", "elements", ours, theirs, "ratio (spread)"], &rows))
}

fn microseconds(seconds: &[f64]) -> String {
    Summary::of(seconds)
        .map_or_else(|| "no figure".to_owned(), |summary| format!("{:.1} us", summary.median * 1e6))
}

/// Of each step, and of each deletion, for one element or one deletion.
fn seconds(server: &Server, size: u32) -> Outcome<Vec<f64>> {
    let stream = connect(server.port())?;
    let mut replies = BufReader::new(&stream);
    let mut taken = Vec::new();
    for step in &STEPS {
        let count = if step.is_for_all { size } else { size.min(READS_MAX) };
        let start = Instant::now();
        for batch in 0..count.div_ceil(PIPELINE) {
            let elements = batch * PIPELINE..count.min((batch + 1) * PIPELINE);
            let lines = elements.len() * step.lines;
            // Those that are read are spread over all.
            let stride = size / count;
            let commands: String = elements.map(|i| (step.command)(i * stride)).collect();
            ask(&stream, &mut replies, &commands, lines)?;
        }
        taken.push(start.elapsed().as_secs_f64() / f64::from(count));
    }
    for (_, command) in DELETIONS {
        let start = Instant::now();
        ask(&stream, &mut replies, command, 1)?;
        taken.push(start.elapsed().as_secs_f64());
    }
    Ok(taken)
}

/// Sends commands and takes so many lines of replies, of which none may be an error.
fn ask(
    mut stream: &TcpStream,
    replies: &mut impl BufRead,
    commands: &str,
    lines: usize,
) -> Outcome {
    stream.write_all(commands.as_bytes()).map_err(Failure::of("cannot send"))?;
    let mut line = String::new();
    for _ in 0..lines {
        line.clear();
        replies.read_line(&mut line).map_err(Failure::of("a reply has not come"))?;
        if line.is_empty() || line.starts_with('-') || line == "$-1\r\n" {
            return Err(Failure::new(format!("a command was answered with {line:?}")));
        }
    }
    Ok(())
}

/// Measures what small hashes take once all of them are written and, of ours, in the base; gives the
/// table.
pub(super) fn small(tokaido: &Path) -> Outcome<String> {
    let mut rows = Vec::new();
    for peer in PEERS {
        println!("bench: {SMALL}, {}", peer.name());
        let server = peer.start(tokaido)?;
        let stream = connect(server.port())?;
        let mut replies = BufReader::new(&stream);
        let memory = || machine::memory(server.process()).unwrap_or_default();
        let before = memory();
        for batch in 0..HASHES / PIPELINE {
            let hashes = batch * PIPELINE..(batch + 1) * PIPELINE;
            ask(&stream, &mut replies, &hashes.map(hash).collect::<String>(), PIPELINE as usize)?;
        }
        ask(&stream, &mut replies, "SAVE\r\n", 1)?;
        thread::sleep(REST);
        let each = |bytes: u64| format!("{:.0}", bytes as f64 / f64::from(HASHES));
        let disk = files::disk_bytes(server.directory())?;
        let memory = memory().saturating_sub(before);
        rows.push(vec![peer.name().to_owned(), each(memory), each(disk)]);
    }
    let head = ["bytes of a hash of 10 small fields, at rest", "memory", "on disk"];
    Ok(markdown::table(&head, &rows))
}

/// The command that makes one.
fn hash(number: u32) -> String {
    let fields = (0..FIELDS).map(|field| format!(" field{field} {}", scattered(number + field)));
    format!("HSET hash:{number:07}{}\r\n", fields.collect::<String>())
}
