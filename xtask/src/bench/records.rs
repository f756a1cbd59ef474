//! A load of gets and sets, in each protocol: connections that each have a batch under way, and
//! all of its replies read before the next one.

use std::{
    collections::VecDeque,
    io::{Read, Write},
    net::TcpStream,
    time::{Duration, Instant},
};

use tokaido_bench::machine;

use super::load::{Sample, connect};
use crate::failure::{Failure, Outcome};

/// Keys that the servers hold, of 16 bytes; each has a value of 64.
const KEYS: u32 = 1_000_000;

const CONNECTIONS: usize = 50;

/// Records of one sample. Those of a last batch that is not full are left out.
const RECORDS: usize = 600_000;

/// The same where each is asked for alone, which takes several times as long.
const SINGLE_RECORDS: usize = 150_000;

/// Records of a batch that fills a server.
const FILL_BATCH: u32 = 1_000;

const VALUE: &[u8; 64] = &[b'x'; 64];

/// What is asked, of each record of a batch.
#[derive(Clone, Copy)]
pub(super) enum Work {
    Get,
    Set,
}

/// How it is said. Bulk: a batch is one request about all of its records.
#[derive(Clone, Copy)]
pub(super) enum Wire {
    Memcached,
    Redis,
    RedisBulk,
    KyotoBulk,
    Tyrant,
}

/// The expiry of a record that never expires, as Kyoto Tycoon gives it.
const KYOTO_NEVER: i64 = (1 << 40) - 1;

impl Wire {
    /// A request that is this protocol's alone, for a port that many share, and its reply.
    fn greeting(self) -> (&'static [u8], &'static [u8]) {
        match self {
            Self::Memcached => (b"mn\r\n", b"MN\r\n"),
            Self::Redis | Self::RedisBulk => (b"*1\r\n$4\r\nPING\r\n", b"+PONG\r\n"),
            Self::KyotoBulk => (b"\xba\0\0\0\0\0\0\0\0", b"\xba\0\0\0\0"),
            Self::Tyrant => (b"\xc8\x38\0\0\0\x01-", b"\x01"),
        }
    }
}

/// A batch on its way: the requests, and the replies expected.
#[derive(Clone, Default)]
struct Batch {
    requests: Vec<u8>,
    replies: Vec<u8>,
}

impl Batch {
    fn fill(&mut self, wire: Wire, work: Work, keys: impl ExactSizeIterator<Item = u32>) {
        self.requests.clear();
        self.replies.clear();
        self.head(wire, work, keys.len());
        for key in keys {
            let key = format!("key:{key:012}");
            match work {
                Work::Get => self.get(wire, key.as_bytes()),
                Work::Set => self.set(wire, key.as_bytes()),
            }
        }
    }

    /// What a request in bulk begins with, and its reply.
    fn head(&mut self, wire: Wire, work: Work, count: usize) {
        match (wire, work) {
            (Wire::RedisBulk, Work::Get) => {
                self.requests(&[format!("*{}\r\n$4\r\nMGET\r\n", count + 1).as_bytes()]);
                self.replies(&[format!("*{count}\r\n").as_bytes()]);
            }
            (Wire::RedisBulk, Work::Set) => {
                self.requests(&[format!("*{}\r\n$4\r\nMSET\r\n", 2 * count + 1).as_bytes()]);
                self.replies(&[b"+OK\r\n"]);
            }
            (Wire::KyotoBulk, work) => {
                let magic = if matches!(work, Work::Get) { b"\xba" } else { b"\xb8" };
                let count = (count as u32).to_be_bytes();
                self.requests(&[magic, &[0; 4], &count]);
                self.replies(&[magic, &count]);
            }
            (Wire::Memcached | Wire::Redis | Wire::Tyrant, _) => {}
        }
    }

    fn get(&mut self, wire: Wire, key: &[u8]) {
        let key_len = (key.len() as u32).to_be_bytes();
        let value_len = (VALUE.len() as u32).to_be_bytes();
        match wire {
            Wire::Memcached => {
                self.requests(&[b"get ", key, b"\r\n"]);
                self.replies(&[b"VALUE ", key, b" 0 64\r\n", VALUE, b"\r\nEND\r\n"]);
            }
            Wire::Redis => {
                self.requests(&[b"*2\r\n$3\r\nGET\r\n$16\r\n", key, b"\r\n"]);
                self.replies(&[b"$64\r\n", VALUE, b"\r\n"]);
            }
            Wire::RedisBulk => {
                self.requests(&[b"$16\r\n", key, b"\r\n"]);
                self.replies(&[b"$64\r\n", VALUE, b"\r\n"]);
            }
            Wire::KyotoBulk => {
                self.requests(&[&[0; 2], &key_len, key]);
                let never = KYOTO_NEVER.to_be_bytes();
                self.replies(&[&[0; 2], &key_len, &value_len, &never, key, VALUE]);
            }
            Wire::Tyrant => {
                self.requests(&[b"\xc8\x30", &key_len, key]);
                self.replies(&[&[0], &value_len, VALUE]);
            }
        }
    }

    fn set(&mut self, wire: Wire, key: &[u8]) {
        let key_len = (key.len() as u32).to_be_bytes();
        let value_len = (VALUE.len() as u32).to_be_bytes();
        match wire {
            Wire::Memcached => {
                self.requests(&[b"set ", key, b" 0 0 64\r\n", VALUE, b"\r\n"]);
                self.replies(&[b"STORED\r\n"]);
            }
            Wire::Redis => {
                let head = b"*3\r\n$3\r\nSET\r\n$16\r\n";
                self.requests(&[head, key, b"\r\n$64\r\n", VALUE, b"\r\n"]);
                self.replies(&[b"+OK\r\n"]);
            }
            Wire::RedisBulk => {
                self.requests(&[b"$16\r\n", key, b"\r\n$64\r\n", VALUE, b"\r\n"]);
            }
            Wire::KyotoBulk => {
                let never = i64::MAX.to_be_bytes();
                self.requests(&[&[0; 2], &key_len, &value_len, &never, key, VALUE]);
            }
            Wire::Tyrant => {
                self.requests(&[b"\xc8\x10", &key_len, &value_len, key, VALUE]);
                self.replies(&[&[0]]);
            }
        }
    }

    fn requests(&mut self, parts: &[&[u8]]) {
        parts.iter().for_each(|part| self.requests.extend_from_slice(part));
    }

    fn replies(&mut self, parts: &[&[u8]]) {
        parts.iter().for_each(|part| self.replies.extend_from_slice(part));
    }

    fn send(&self, mut stream: &TcpStream) -> Outcome {
        stream.write_all(&self.requests).map_err(Failure::of("cannot send"))
    }

    fn receive(&self, mut stream: &TcpStream, scratch: &mut Vec<u8>) -> Outcome {
        scratch.resize(self.replies.len(), 0);
        stream.read_exact(scratch).map_err(Failure::of("not all replies have come"))?;
        if *scratch == self.replies {
            return Ok(());
        }
        let start = String::from_utf8_lossy(&scratch[..scratch.len().min(100)]).into_owned();
        Err(Failure::new(format!("a batch was answered with {start:?}")))
    }
}

/// Stores a value under every key.
pub(super) fn fill(port: u16, wire: Wire) -> Outcome {
    let stream = connect(port)?;
    let (mut batch, mut scratch) = (Batch::default(), Vec::new());
    for first in (0..KEYS).step_by(FILL_BATCH as usize) {
        batch.fill(wire, Work::Set, first..first + FILL_BATCH);
        batch.send(&stream)?;
        batch.receive(&stream, &mut scratch)?;
    }
    Ok(())
}

/// Gets or sets records under random keys, so many in a batch, and gives records per second.
pub(super) fn rate(port: u16, wire: Wire, work: Work, batch_len: usize) -> Outcome<Sample> {
    let run = run(port, wire, work, batch_len)?;
    Ok(run.sample(run.records / run.took.as_secs_f64()))
}

/// As [`rate`], but gives the seconds within which 99 of 100 batches were answered.
pub(super) fn latency(port: u16, wire: Wire, work: Work, batch_len: usize) -> Outcome<Sample> {
    let mut run = run(port, wire, work, batch_len)?;
    run.latencies.sort_unstable();
    let place = run.latencies.len() * 99 / 100;
    let latency = run.latencies.get(place).ok_or_else(|| Failure::new("no batch was sent"))?;
    Ok(run.sample(latency.as_secs_f64()))
}

struct Run {
    records: f64,
    took: Duration,
    /// Of each batch, from its being sent to its last reply.
    latencies: Vec<Duration>,
    /// Processor time of this program.
    client: Option<Duration>,
}

impl Run {
    fn sample(&self, figure: f64) -> Sample {
        let client_busy = self.client.map(|client| client.as_secs_f64() / self.took.as_secs_f64());
        Sample { figure, operations: self.records, client_busy }
    }
}

/// All batches are made before the first one is sent, so that the client takes as little of the
/// processor from the server as it can.
fn run(port: u16, wire: Wire, work: Work, batch_len: usize) -> Outcome<Run> {
    let records = if batch_len == 1 { SINGLE_RECORDS } else { RECORDS };
    let (mut scratch, mut key) = (Vec::new(), 1);
    let turns = records / (CONNECTIONS * batch_len);
    let mut batches = vec![Batch::default(); turns * CONNECTIONS];
    for batch in &mut batches {
        batch.fill(wire, work, (0..batch_len).map(|_| next_key(&mut key)));
    }
    let connections = open(port, wire, CONNECTIONS)?;
    let mut latencies = Vec::with_capacity(batches.len());
    let processor_time = || machine::processor_time(std::process::id());
    let (start, client_before) = (Instant::now(), processor_time());
    // A connection is given its next batch once its last one was answered, while the others have theirs under way: the
    // client works beside the server, and not in turn with it.
    let mut under_way = VecDeque::with_capacity(CONNECTIONS);
    let mut finish = |(place, sent): (usize, Instant)| {
        batches[place].receive(&connections[place % CONNECTIONS], &mut scratch)?;
        latencies.push(sent.elapsed());
        Ok(())
    };
    for (place, batch) in batches.iter().enumerate() {
        if under_way.len() == CONNECTIONS {
            under_way.pop_front().map_or(Ok(()), &mut finish)?;
        }
        under_way.push_back((place, Instant::now()));
        batch.send(&connections[place % CONNECTIONS])?;
    }
    under_way.into_iter().try_for_each(finish)?;
    let (took, client_after) = (start.elapsed(), processor_time());
    let client = client_after.zip(client_before).map(|(after, before)| after - before);
    Ok(Run { records: (batches.len() * batch_len) as f64, took, latencies, client })
}

/// Connections that have been greeted, and so are known to speak this protocol.
pub(super) fn open(port: u16, wire: Wire, count: usize) -> Outcome<Vec<TcpStream>> {
    let (request, reply) = wire.greeting();
    let greeting = Batch { requests: request.to_vec(), replies: reply.to_vec() };
    let mut scratch = Vec::new();
    let greeted = (0..count).map(|_| {
        let stream = connect(port)?;
        greeting.send(&stream)?;
        greeting.receive(&stream, &mut scratch)?;
        Ok(stream)
    });
    greeted.collect()
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
        batch.fill(Wire::Memcached, Work::Get, [7].into_iter());
        assert_eq!(batch.requests, b"get key:000000000007\r\n");
        server.write_all(&batch.replies).unwrap();
        batch.receive(&stream, &mut Vec::new()).unwrap();
        server.write_all("END\r\n".repeat(30).as_bytes()).unwrap();
        let failure = batch.receive(&stream, &mut Vec::new()).unwrap_err().to_string();
        assert!(failure.contains("END"), "{failure}");
    }
}
