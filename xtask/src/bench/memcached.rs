//! The load of the memcached protocol: connections that each send a batch, and all of its replies
//! read before the next one.

use std::{
    io::{Read, Write},
    net::TcpStream,
    time::Instant,
};

use super::load::connect;
use crate::failure::{Failure, Outcome};

/// Keys that the servers hold, of 16 bytes; each has a value of 64.
const KEYS: u32 = 1_000_000;

const CONNECTIONS: usize = 50;

/// Requests of one sample. Those of a last batch that is not full are left out.
const REQUESTS: usize = 600_000;

/// Requests of a batch that fills a server.
const FILL_BATCH: u32 = 1_000;

/// What is sent again and again, each time for another key.
struct Load {
    /// What stands around the key.
    request: (&'static str, String),
    /// As the request, of its reply if all is well.
    reply: (&'static str, String),
    repeats_key: bool,
}

impl Load {
    fn get() -> Self {
        let reply = ("VALUE ", format!(" 0 64\r\n{}\r\nEND\r\n", "x".repeat(64)));
        Self { request: ("get ", "\r\n".to_owned()), reply, repeats_key: true }
    }

    fn set() -> Self {
        let request = ("set ", format!(" 0 0 64\r\n{}\r\n", "x".repeat(64)));
        Self { request, reply: ("STORED", "\r\n".to_owned()), repeats_key: false }
    }

    /// Appends the request for a key, and the reply expected.
    fn push(&self, key: u32, requests: &mut String, replies: &mut String) {
        let key = format!("key:{key:012}");
        let ((head, tail), (reply_head, reply_tail)) = (&self.request, &self.reply);
        requests.extend([*head, &key, tail]);
        let key = if self.repeats_key { &key } else { "" };
        replies.extend([*reply_head, key, reply_tail]);
    }
}

/// A batch on its way.
#[derive(Default)]
struct Batch {
    requests: String,
    replies: String,
}

impl Batch {
    fn fill(&mut self, load: &Load, keys: impl Iterator<Item = u32>) {
        self.requests.clear();
        self.replies.clear();
        keys.for_each(|key| load.push(key, &mut self.requests, &mut self.replies));
    }

    fn send(&self, mut stream: &TcpStream) -> Outcome {
        stream.write_all(self.requests.as_bytes()).map_err(Failure::of("cannot send"))
    }

    fn receive(&self, mut stream: &TcpStream, scratch: &mut Vec<u8>) -> Outcome {
        scratch.resize(self.replies.len(), 0);
        stream.read_exact(scratch).map_err(Failure::of("not all replies have come"))?;
        if scratch == self.replies.as_bytes() {
            return Ok(());
        }
        let start = String::from_utf8_lossy(&scratch[..scratch.len().min(100)]).into_owned();
        Err(Failure::new(format!("a batch was answered with {start:?}")))
    }
}

/// Stores a value under every key.
pub(super) fn fill(port: u16) -> Outcome {
    let (stream, load) = (connect(port)?, Load::set());
    let (mut batch, mut scratch) = (Batch::default(), Vec::new());
    for first in (0..KEYS).step_by(FILL_BATCH as usize) {
        batch.fill(&load, first..first + FILL_BATCH);
        batch.send(&stream)?;
        batch.receive(&stream, &mut scratch)?;
    }
    Ok(())
}

/// Gets values, so many requests in a batch, and gives requests per second.
pub(super) fn get(port: u16, pipeline: usize) -> Outcome<f64> {
    run(port, &Load::get(), pipeline)
}

/// As [`get`], storing values.
pub(super) fn set(port: u16, pipeline: usize) -> Outcome<f64> {
    run(port, &Load::set(), pipeline)
}

fn run(port: u16, load: &Load, pipeline: usize) -> Outcome<f64> {
    let mut connections = Vec::new();
    let (mut scratch, mut key) = (Vec::new(), 1);
    // A command that is memcached's alone, for a port that many protocols share.
    let greeting = Batch { requests: "mn\r\n".to_owned(), replies: "MN\r\n".to_owned() };
    for _ in 0..CONNECTIONS {
        let stream = connect(port)?;
        greeting.send(&stream)?;
        greeting.receive(&stream, &mut scratch)?;
        connections.push((stream, Batch::default()));
    }
    let turns = REQUESTS / (CONNECTIONS * pipeline);
    let start = Instant::now();
    for _ in 0..turns {
        for (stream, batch) in &mut connections {
            batch.fill(load, (0..pipeline).map(|_| next_key(&mut key)));
            batch.send(stream)?;
        }
        for (stream, batch) in &connections {
            batch.receive(stream, &mut scratch)?;
        }
    }
    Ok((turns * CONNECTIONS * pipeline) as f64 / start.elapsed().as_secs_f64())
}

/// The next key of a row that looks like chance (xorshift), and is the same each time.
fn next_key(state: &mut u32) -> u32 {
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    *state % KEYS
}

#[cfg(test)]
mod tests {
    use std::{collections::HashSet, net::TcpListener};

    use super::*;

    #[test]
    fn keys_are_many() {
        let mut state = 1;
        let keys: HashSet<u32> = (0..10_000).map(|_| next_key(&mut state)).collect();
        assert!(keys.len() > 9_900 && keys.iter().all(|key| *key < KEYS));
    }

    #[test]
    fn a_miss_is_no_hit() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        let mut batch = Batch::default();
        batch.fill(&Load::get(), 7..8);
        assert_eq!(batch.requests, "get key:000000000007\r\n");
        server.write_all(batch.replies.as_bytes()).unwrap();
        batch.receive(&stream, &mut Vec::new()).unwrap();
        server.write_all("END\r\n".repeat(30).as_bytes()).unwrap();
        let failure = batch.receive(&stream, &mut Vec::new()).unwrap_err().to_string();
        assert!(failure.contains("END"), "{failure}");
    }
}
