//! A load: what is sent to a server and for how long, and the results.

use std::{
    collections::BTreeMap,
    io,
    sync::{
        atomic::AtomicBool,
        mpsc::{self, Receiver},
    },
    thread,
    time::{Duration, Instant},
};

use super::{
    command::Command,
    connection::Connection,
    histogram::{Latency, Tally},
    keys::{KeySource, Keys, KeysError},
    operation::{Kind, Mix},
    process::{self, Usage},
    protocol::{self, Codec, Protocol, ProtocolError},
    requests::Requests,
    socket::Address,
    values::{ValueSource, Values},
    worker::{Done, Order, Part, Schedule, Worker},
};
use crate::random::Random;

/// What is sent to a server.
#[derive(Clone, Debug)]
pub struct Load {
    /// The server.
    pub address: Address,
    /// Its protocol.
    pub protocol: Protocol,
    /// Options of the protocol.
    pub options: protocol::Options,
    /// Total number of connections.
    pub connections: usize,
    /// Maximum number of requests in flight on one connection.
    pub pipeline: usize,
    /// Threads that share the connections; each uses up to a core.
    pub threads: usize,
    /// Whether each request has a connection of its own, which the server closes; only over HTTP and without a pipeline.
    pub reconnect: bool,
    /// When requests are sent.
    pub pace: Pace,
    /// For how long, not counting the warm-up.
    pub time: Duration,
    /// Total number of requests, if that ends the load.
    pub requests: Option<u64>,
    /// How long requests are sent before they count.
    pub warm_up: Duration,
    /// Which keys.
    pub keys: Keys,
    /// The number of keys, if they are generated.
    pub keys_count: u64,
    /// Which values.
    pub values: Values,
    /// Which operations.
    pub mix: Mix,
    /// Sent in place of the operations, in the Redis protocol.
    pub command: Option<Command>,
    /// The seed of the random numbers.
    pub seed: u64,
}

/// When requests are sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// A connection sends its next requests when the last ones are answered.
    Closed,
    /// This many per second in total, at even intervals, whatever the server does.
    Rate(f64),
}

/// A load failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// A connection could not be established.
    #[error("cannot connect to {address}: {source}; is a server running there?")]
    Connect {
        /// The server.
        address: String,
        /// The cause.
        source: io::Error,
    },
    /// A connection broke.
    #[error("a connection to {address} broke: {source}")]
    Broken {
        /// The server.
        address: String,
        /// The cause.
        source: io::Error,
    },
    /// The server closed a connection.
    #[error("{address} closed a connection; look at its log, and whether it takes so many")]
    Closed {
        /// The server.
        address: String,
    },
    /// The server refused the initial requests.
    #[error("{address} does not let us in: {message}")]
    Greeting {
        /// The server.
        address: String,
        /// Its message.
        message: String,
    },
    /// The server refused a request that the result depends on.
    #[error("{address} refused a request: {message}")]
    Refused {
        /// The server.
        address: String,
        /// Its message.
        message: String,
    },
    /// The server speaks another protocol.
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
    /// Keys or values are unavailable.
    #[error(transparent)]
    Keys(#[from] KeysError),
    /// The protocol lacks an operation of the mix.
    #[error("{protocol} has no {kind}; leave it out of the mix")]
    NoOperation {
        /// The protocol.
        protocol: Protocol,
        /// The operation.
        kind: Kind,
    },
    /// Other protocols have no such commands.
    #[error("{protocol} has no commands of words; take resp2 or resp3")]
    NoCommand {
        /// The protocol.
        protocol: Protocol,
    },
    /// Only HTTP can ask a server to close a connection.
    #[error(
        "a connection for each request is for http without a pipeline: elsewhere a server does not close connections"
    )]
    Reconnect,
    /// The system refused a call.
    #[error("cannot wait for sockets: {0}")]
    System(io::Error),
}

/// The results of one second.
#[derive(Debug)]
pub struct Interval {
    /// Its number, counted from the start of the warm-up.
    pub second: u64,
    /// Whether it began after the warm-up.
    pub counts: bool,
    /// What was answered in it.
    pub tally: Tally,
}

/// The results of a load.
#[derive(Debug)]
pub struct Outcome {
    /// What was answered.
    pub tally: Tally,
    /// Answers per second, of those that arrived before the end.
    pub rate: f64,
    /// How long that was.
    pub time: Duration,
    /// Requests that were due but not sent, since no connection was free.
    pub unsent: u64,
    /// Requests that were sent but not answered within some seconds after the end.
    pub unanswered: u64,
    /// By how much the generator itself was late, at a rate.
    pub lateness: Latency,
    /// The fraction of the time in which the generator's threads ran.
    pub ran: f64,
    /// The fraction in which they were ready to run while others had the processor.
    pub waited: f64,
    /// What this program used.
    pub client: Usage,
    /// What the server used; `None` if it is not a process of this machine that is visible to this one.
    pub server: Option<Usage>,
}

impl Load {
    /// The same load, but setting every key once, in a closed loop.
    ///
    /// # Errors
    /// If keys come from a file that cannot be read.
    pub fn filling(&self) -> Result<Self, LoadError> {
        let count = KeySource::new(&self.keys, self.keys_count)?.count();
        let keys = match &self.keys {
            Keys::File(_) | Keys::Shuffled => self.keys.clone(),
            _ => Keys::Sequential,
        };
        Ok(Self {
            mix: Mix::only(Kind::Set),
            command: None,
            pace: Pace::Closed,
            requests: Some(count),
            warm_up: Duration::ZERO,
            time: Duration::MAX,
            threads: 1,
            keys,
            ..self.clone()
        })
    }

    fn check(&self) -> Result<(), LoadError> {
        if self.reconnect && (self.protocol != Protocol::Http || self.pipeline != 1) {
            return Err(LoadError::Reconnect);
        }
        if self.command.is_some() && !matches!(self.protocol, Protocol::Resp2 | Protocol::Resp3) {
            return Err(LoadError::NoCommand { protocol: self.protocol });
        }
        let missing = self.mix.parts().iter().find(|(kind, _)| !self.protocol.has(*kind));
        match missing {
            Some(&(kind, _)) => Err(LoadError::NoOperation { protocol: self.protocol, kind }),
            None => Ok(()),
        }
    }
}

/// Runs a load. It calls `interval` for every second; setting `stop` ends it early.
///
/// # Errors
/// See [`LoadError`]: the first one of any thread.
pub fn run(
    load: &Load,
    stop: &AtomicBool,
    interval: &mut dyn FnMut(&Interval),
) -> Result<Outcome, LoadError> {
    load.check()?;
    let options = protocol::Options { close: load.reconnect, ..load.options.clone() };
    run_with(load, stop, interval, &|| load.protocol.codec(&options))
}

/// The same with another codec.
pub(super) fn run_with(
    load: &Load,
    stop: &AtomicBool,
    interval: &mut dyn FnMut(&Interval),
    codec: &(dyn Fn() -> Box<dyn Codec> + Sync),
) -> Result<Outcome, LoadError> {
    let threads = load.threads.clamp(1, load.connections.max(1));
    let keys = KeySource::new(&load.keys, load.keys_count)?;
    let values = ValueSource::new(&load.values, load.seed)?;
    let mut connections = Vec::with_capacity(threads);
    for thread in 0..threads {
        let count = share(load.connections as u64, thread, threads);
        let codec = codec();
        let open = |_| Connection::open(&load.address, &*codec);
        connections.push((0..count.max(1)).map(open).collect::<Result<Vec<_>, _>>()?);
    }
    let server = processes_of(&load.address);
    let began = Instant::now();
    let (parts, received) = mpsc::channel();
    thread::scope(|scope| {
        let mut workers = Vec::with_capacity(threads);
        for (thread, connections) in connections.into_iter().enumerate() {
            let requests = Requests {
                codec: codec(),
                keys: keys.of_thread(thread, threads),
                values: values.clone(),
                mix: load.mix.clone(),
                command: load.command.clone(),
                random: Random::new(load.seed.wrapping_add(thread as u64 + 1)),
                key: Vec::new(),
                words: Vec::new(),
            };
            let order = order(load, began, thread, threads, stop);
            let parts = parts.clone();
            // Created on its own thread, since the kernel counts time per thread.
            workers
                .push(scope.spawn(move || Worker::new(order, requests, connections, parts)?.run()));
        }
        drop(parts);
        let usage = watch(load, began, &server, &received, threads, interval);
        let mut all = Vec::with_capacity(threads);
        for worker in workers {
            all.push(worker.join().expect("a worker does not panic")?);
        }
        Ok(outcome(load, &all, began, &usage))
    })
}

/// The server, if it is on this machine.
fn processes_of(address: &Address) -> Vec<u32> {
    match address {
        Address::Tcp { address, .. } if address.ip().is_loopback() => {
            process::of_port(address.port())
        }
        Address::Tcp { .. } => Vec::new(),
        Address::Unix(path) => process::of_unix_socket(path),
    }
}

fn order<'a>(
    load: &'a Load,
    began: Instant,
    thread: usize,
    threads: usize,
    stop: &'a AtomicBool,
) -> Order<'a> {
    let schedule = match load.pace {
        Pace::Closed => None,
        Pace::Rate(rate) => Some(Schedule {
            first_ns: thread as f64 * 1e9 / rate,
            interval_ns: threads as f64 * 1e9 / rate,
        }),
    };
    let measure_from = ns(load.warm_up);
    Order {
        began,
        address: &load.address,
        pipeline: load.pipeline.max(1),
        reconnect: load.reconnect,
        schedule,
        measure_from,
        end: measure_from.saturating_add(ns(load.time)),
        requests: load.requests.map(|requests| share(requests, thread, threads)),
        stop,
    }
}

/// One thread's share of a number.
fn share(number: u64, thread: usize, threads: usize) -> u64 {
    let (thread, threads) = (thread as u64, threads as u64);
    number / threads + u64::from(thread < number % threads)
}

fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// What this program and the server used between the warm-up and the end.
struct Measured {
    client: Usage,
    server: Option<Usage>,
}

/// Passes on the results of each second, and looks at the processes after the warm-up and at the end.
fn watch(
    load: &Load,
    began: Instant,
    server: &[u32],
    parts: &Receiver<Part>,
    threads: usize,
    interval: &mut dyn FnMut(&Interval),
) -> Measured {
    let look = || (Usage::of_this_program(), Usage::of(server));
    let end = began + load.warm_up.saturating_add(load.time).min(LONGEST);
    let (mut before, mut after) = (None, None);
    let mut seconds = BTreeMap::<u64, (usize, Tally)>::new();
    loop {
        let next = if before.is_none() { began + load.warm_up } else { end };
        let wait = next.saturating_duration_since(Instant::now());
        let part = match (before.is_some(), after.is_some()) {
            (_, true) => parts.recv().map_err(|_| mpsc::RecvTimeoutError::Disconnected),
            _ => parts.recv_timeout(wait),
        };
        match part {
            Ok(part) => {
                let (count, tally) = seconds.entry(part.second).or_default();
                *count += 1;
                tally.add(&part.tally);
                if *count == threads {
                    hand_on(&mut seconds, part.second, load, interval);
                }
            }
            Err(mpsc::RecvTimeoutError::Timeout) if before.is_none() => before = Some(look()),
            Err(mpsc::RecvTimeoutError::Timeout) => after = Some(look()),
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
        }
    }
    while let Some(&second) = seconds.keys().next() {
        hand_on(&mut seconds, second, load, interval);
    }
    let (client, of_server) = after.unwrap_or_else(look);
    let (client_before, server_before) = before.unwrap_or((client, of_server));
    let server = (!server.is_empty()).then(|| of_server.since(&server_before));
    Measured { client: client.since(&client_before), server }
}

/// Longer than any load.
const LONGEST: Duration = Duration::from_secs(366 * 86_400);

fn hand_on(
    seconds: &mut BTreeMap<u64, (usize, Tally)>,
    second: u64,
    load: &Load,
    interval: &mut dyn FnMut(&Interval),
) {
    let Some((_, tally)) = seconds.remove(&second) else { return };
    let counts = Duration::from_secs(second) >= load.warm_up;
    interval(&Interval { second, counts, tally });
}

fn outcome(load: &Load, all: &[Done], began: Instant, usage: &Measured) -> Outcome {
    let (mut tally, mut lateness) = (Tally::default(), Latency::default());
    let (mut in_time, mut last_answer) = (0, 0);
    for done in all {
        tally.add(&done.tally);
        lateness.add(&done.lateness);
        in_time += done.in_time;
        last_answer = last_answer.max(done.last_answer);
    }
    let elapsed = ns(began.elapsed()).saturating_sub(ns(load.warm_up));
    let answered = last_answer.saturating_sub(ns(load.warm_up));
    // A load that ended by its number of requests, or early, ended with its last answer.
    let is_by_time = load.requests.is_none() && elapsed >= ns(load.time);
    let time = Duration::from_nanos(if is_by_time { ns(load.time) } else { answered });
    let seconds = time.as_secs_f64().max(f64::MIN_POSITIVE);
    let part = |time: fn(&Done) -> Duration| {
        all.iter().map(|done| time(done).as_secs_f64()).sum::<f64>() / seconds / all.len() as f64
    };
    Outcome {
        rate: if in_time == 0 { 0.0 } else { in_time as f64 / seconds },
        time,
        unsent: all.iter().map(|done| done.unsent).sum(),
        unanswered: all.iter().map(|done| done.unanswered).sum(),
        ran: part(|done| done.time.ran),
        waited: part(|done| done.time.waited),
        tally,
        lateness,
        client: usage.client,
        server: usage.server,
    }
}
