//! Bytes of memory for a record, resident: what the program itself holds, and beside it the page
//! cache that the system may take back.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::{Ipv4Addr, TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use tokaido_store::{NewRecord, cache};

use crate::{
    Outcome,
    peers::{Peer, Subject},
    random::{self, KEYS, VALUE, key},
    subject::{Place, Took},
};

/// Where the kernel sums up the memory of a process.
fn rollup(process: &str, field: &str) -> Outcome<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/smaps_rollup"))?;
    let line = text.lines().find_map(|line| line.strip_prefix(field)).ok_or("no such field")?;
    let kib: u64 = line.trim_matches(|c: char| !c.is_ascii_digit()).parse()?;
    Ok(kib * 1024)
}

/// As a workload: the sum is the bytes of a cache that holds all records.
pub(crate) fn of_cache() -> Outcome<Took> {
    let before = rollup("self", "Anonymous:")?;
    let cache =
        cache::Cache::new(cache::Options { bytes_max: 1 << 30, ..cache::Options::default() })?;
    Took::timed(KEYS, || {
        for n in 0..KEYS {
            cache.set(&key(n), NewRecord::of(&VALUE))?;
        }
        Ok(rollup("self", "Anonymous:")?.saturating_sub(before))
    })
}

/// As a workload: the sum is what a store holds for itself when all its records are in the base,
/// after all of them were read.
pub(crate) fn of_tree(place: &Place) -> Outcome<Took> {
    let keys = random::keys();
    let before = rollup("self", "Anonymous:")?;
    let store = random::at_rest(place, &keys)?;
    let took = random::get_all(&store, &keys)?;
    Ok(Took { sum: rollup("self", "Anonymous:")?.saturating_sub(before), ..took })
}

/// Prints the table.
pub(crate) fn print(place: &Path) -> Outcome {
    println!("\n| memory of a record of 16 + 64 bytes, {KEYS} records | goal | bytes |");
    println!("|---|---|---|");
    let row = |what: &str, goal: &str, bytes: u64| {
        println!("| {what} | {goal} | {:.1} |", bytes as f64 / KEYS as f64);
    };
    // Made by a process of its own, so that what it took to make it does not count.
    Subject::start(Peer::Tokaido, place)?.run("random-scan")?;
    for (name, what, goal) in [
        ("memory-cache", "Tokaido, cache", "130"),
        ("memory-tree", "Tokaido, tree at rest, without the page cache", "0"),
    ] {
        let mut subject = Subject::start(Peer::Tokaido, place)?;
        row(what, goal, subject.run(name)?.sum);
    }
    for (server, name) in [(Server::redis()?, "Redis"), (Server::memcached()?, "memcached")] {
        match server {
            Some(server) => row(name, "", server.fill()?),
            None => println!("| {name} | | not installed |"),
        }
    }
    Ok(())
}

/// A server of somebody else.
struct Server {
    child: Child,
    port: u16,
    /// A request that stores one record, and how many lines answer it.
    request: fn(&[u8]) -> Vec<u8>,
}

impl Server {
    fn redis() -> Outcome<Option<Self>> {
        let request = |key: &[u8]| {
            let head = format!("*3\r\n$3\r\nSET\r\n${}\r\n", key.len());
            let middle = format!("\r\n${}\r\n", VALUE.len());
            [head.as_bytes(), key, middle.as_bytes(), &VALUE, b"\r\n"].concat()
        };
        let port = free_port()?;
        let text = port.to_string();
        let arguments = ["--port", &text, "--bind", "127.0.0.1", "--save", ""];
        Self::start(Command::new("redis-server").args(arguments), port, request)
    }

    fn memcached() -> Outcome<Option<Self>> {
        let request = |key: &[u8]| {
            let tail = format!(" 0 0 {}\r\n", VALUE.len());
            [b"set ", key, tail.as_bytes(), &VALUE, b"\r\n"].concat()
        };
        let port = free_port()?;
        let text = port.to_string();
        let arguments = ["-p", &text, "-l", "127.0.0.1", "-m", "1024", "-u", "root"];
        Self::start(Command::new("memcached").args(arguments), port, request)
    }

    fn start(
        command: &mut Command,
        port: u16,
        request: fn(&[u8]) -> Vec<u8>,
    ) -> Outcome<Option<Self>> {
        let Ok(child) = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn() else {
            return Ok(None);
        };
        Ok(Some(Self { child, port, request }))
    }

    /// Stores all records; gives the bytes that the server has grown by.
    fn fill(&self) -> Outcome<u64> {
        const BATCH: u64 = 1_000;
        let mut tries = 0;
        let stream = loop {
            match TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)) {
                Ok(stream) => break stream,
                Err(error) if tries == 100 => return Err(error.into()),
                Err(_) => tries += 1,
            }
            thread::sleep(Duration::from_millis(50));
        };
        let mut answers = BufReader::new(&stream);
        let process = self.child.id().to_string();
        let before = rollup(&process, "Rss:")?;
        for first in (0..KEYS).step_by(BATCH as usize) {
            let request: Vec<u8> =
                (first..first + BATCH).flat_map(|n| (self.request)(&key(n))).collect();
            (&stream).write_all(&request)?;
            for _ in 0..BATCH {
                let mut answer = String::new();
                answers.read_line(&mut answer)?;
                if answer != "+OK\r\n" && answer != "STORED\r\n" {
                    return Err(format!("a server answered {answer:?}").into());
                }
            }
        }
        Ok(rollup(&process, "Rss:")?.saturating_sub(before))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free_port() -> Outcome<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}
