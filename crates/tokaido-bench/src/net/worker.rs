//! One thread of the generator: an event loop over its connections.

use std::{
    collections::VecDeque,
    os::fd::AsRawFd,
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc::Sender,
    },
    time::{Duration, Instant},
};

use mio::{Events, Interest, Poll, Token, unix::SourceFd};

use super::{
    connection::{Connection, InFlight},
    histogram::{Latency, Tally},
    process::ThreadTime,
    requests::Requests,
    run::LoadError,
    socket::Address,
    timer::Timer,
};

/// How long to wait for answers after the time is over.
const DRAIN: Duration = Duration::from_secs(5);

/// A shorter wait for the next request is not worth a system call.
const SPIN_NS: u64 = 10_000;

/// Size of the read buffer.
const READ_LEN: usize = 64 << 10;

/// Maximum number of events per poll.
const EVENTS: usize = 1024;

/// Longest wait before checking whether to stop.
const LOOK_NS: u64 = 100_000_000;

const INTERVAL_NS: u64 = 1_000_000_000;

const TIMER: Token = Token(usize::MAX);

/// A worker's instructions. Times are in ns since `began`.
pub(super) struct Order<'a> {
    pub(super) began: Instant,
    pub(super) address: &'a Address,
    pub(super) pipeline: usize,
    pub(super) reconnect: bool,
    /// The interval between requests and when the first one is due; `None` in a closed loop.
    pub(super) schedule: Option<Schedule>,
    /// Requests due earlier are sent but not counted.
    pub(super) measure_from: u64,
    pub(super) end: u64,
    /// The number of requests to count, if that ends the load.
    pub(super) requests: Option<u64>,
    pub(super) stop: &'a AtomicBool,
}

/// When requests are due.
#[derive(Clone, Copy, Debug)]
pub(super) struct Schedule {
    pub(super) first_ns: f64,
    pub(super) interval_ns: f64,
}

impl Schedule {
    fn due(&self, index: u64) -> u64 {
        (self.first_ns + self.interval_ns * index as f64) as u64
    }
}

/// What a worker has done in one second.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) second: u64,
    pub(super) tally: Tally,
}

/// The final results of a worker.
#[derive(Debug, Default)]
pub(super) struct Done {
    pub(super) tally: Tally,
    /// Number of requests in the tally that were answered before the end.
    pub(super) in_time: u64,
    /// Requests that were due but not sent.
    pub(super) unsent: u64,
    /// Requests that were sent but not answered.
    pub(super) unanswered: u64,
    /// How late requests were sent although a connection was free.
    pub(super) lateness: Latency,
    /// When the last answer came.
    pub(super) last_answer: u64,
    /// Thread time from the start of counting to its end.
    pub(super) time: ThreadTime,
}

pub(super) struct Worker<'a> {
    order: Order<'a>,
    requests: Requests,
    connections: Vec<Connection>,
    poll: Poll,
    timer: Timer,
    /// Where bytes are first read to.
    buffer: Vec<u8>,
    /// Connections with room for a request, and whether there were none when one was due.
    free: VecDeque<usize>,
    is_starved: bool,
    /// The number of the next request.
    next: u64,
    /// Number of counted requests that were sent.
    counted: u64,
    done: Done,
    part: Part,
    parts: Sender<Part>,
}

impl<'a> Worker<'a> {
    pub(super) fn new(
        order: Order<'a>,
        requests: Requests,
        connections: Vec<Connection>,
        parts: Sender<Part>,
    ) -> Result<Self, LoadError> {
        let poll = Poll::new().map_err(LoadError::System)?;
        let timer = Timer::new().map_err(LoadError::System)?;
        let registry = poll.registry();
        let registered =
            registry.register(&mut SourceFd(&timer.as_raw_fd()), TIMER, Interest::READABLE);
        registered.map_err(LoadError::System)?;
        for (index, connection) in connections.iter().enumerate() {
            register(&poll, connection, index)?;
        }
        let free = (0..connections.len()).collect();
        let mut worker = Self {
            order,
            requests,
            connections,
            poll,
            timer,
            buffer: vec![0; READ_LEN],
            free,
            is_starved: false,
            next: 0,
            counted: 0,
            done: Done::default(),
            part: Part { second: 0, tally: Tally::default() },
            parts,
        };
        worker.connections.iter_mut().for_each(|connection| connection.is_listed = true);
        Ok(worker)
    }

    fn now(&self) -> u64 {
        self.order.began.elapsed().as_nanos() as u64
    }

    /// Sends requests until the end, and waits for the last answers.
    pub(super) fn run(mut self) -> Result<Done, LoadError> {
        let mut events = Events::with_capacity(EVENTS);
        let mut time_before = ThreadTime::default();
        let mut is_measuring = false;
        loop {
            let now = self.now();
            if !is_measuring && now >= self.order.measure_from {
                is_measuring = true;
                time_before = ThreadTime::of_this_thread();
            }
            if self.order.stop.load(Ordering::Relaxed) {
                break;
            }
            // Even when the time is over, requests due before the end are sent.
            self.send(now)?;
            if self.is_over(now) {
                break;
            }
            self.wait(&mut events, self.wake_at(now))?;
        }
        self.done.time = ThreadTime::of_this_thread().since(&time_before);
        self.drain(&mut events)?;
        self.give_up();
        self.report();
        Ok(self.done)
    }

    fn is_over(&self, now: u64) -> bool {
        let has_all = self.order.requests.is_some_and(|requests| self.counted >= requests);
        now >= self.order.end || has_all
    }

    /// Sends the requests that are due.
    fn send(&mut self, now: u64) -> Result<(), LoadError> {
        while let Some(&index) = self.free.front() {
            if self.order.requests.is_some_and(|requests| self.counted >= requests) {
                break;
            }
            let due = match self.order.schedule {
                None => now,
                Some(schedule) => schedule.due(self.next),
            };
            if due > now || due >= self.order.end {
                self.is_starved = false;
                break;
            }
            if self.order.schedule.is_some() && !self.is_starved && due >= self.order.measure_from {
                self.done.lateness.record(now - due);
            }
            self.free.pop_front();
            self.connections[index].is_listed = false;
            self.fill(index, due, now)?;
        }
        self.is_starved |= self.free.is_empty();
        Ok(())
    }

    /// Sends what a connection has room for: in a closed loop as many requests as the pipeline
    /// holds, at a rate one, or more if they are due.
    fn fill(&mut self, index: usize, first_due: u64, now: u64) -> Result<(), LoadError> {
        let connection = &mut self.connections[index];
        let mut due = first_due;
        while connection.in_flight.len() < self.order.pipeline {
            if due >= self.order.measure_from {
                if self.order.requests.is_some_and(|requests| self.counted >= requests) {
                    break;
                }
                self.counted += 1;
            }
            connection.is_used = self.order.reconnect;
            let sent = self.requests.next(connection.out());
            connection.in_flight.push_back(InFlight { due, sent_at: now, sent });
            self.next += 1;
            if let Some(schedule) = self.order.schedule {
                // Other connections may have room for it, too.
                due = schedule.due(self.next);
                if !self.free.is_empty() || due > now || due >= self.order.end {
                    break;
                }
            }
        }
        self.write(index)?;
        self.list(index);
        Ok(())
    }

    /// Adds a connection to the list of those with room, if it has any.
    fn list(&mut self, index: usize) {
        let connection = &mut self.connections[index];
        let has_room = match self.order.schedule {
            // It waits for the server to close it.
            _ if connection.is_used => false,
            // A pipeline is sent as a whole.
            None => connection.in_flight.is_empty(),
            Some(_) => connection.in_flight.len() < self.order.pipeline,
        };
        if has_room && !connection.is_listed {
            connection.is_listed = true;
            self.free.push_back(index);
        }
    }

    fn write(&mut self, index: usize) -> Result<(), LoadError> {
        let written = self.connections[index].write();
        let len = written.map_err(|source| LoadError::Broken {
            address: self.order.address.to_string(),
            source,
        })?;
        self.done.tally.bytes_out += len;
        self.part.tally.bytes_out += len;
        Ok(())
    }

    /// When to check again, at the latest.
    fn wake_at(&self, now: u64) -> u64 {
        let look = (now + LOOK_NS).min(self.order.end).min((self.part.second + 1) * INTERVAL_NS);
        match self.order.schedule {
            Some(schedule) if !self.free.is_empty() => look.min(schedule.due(self.next)),
            _ => look,
        }
    }

    /// Waits for answers until `wake_at`, and processes them.
    fn wait(&mut self, events: &mut Events, wake_at: u64) -> Result<(), LoadError> {
        let wait_ns = wake_at.saturating_sub(self.now());
        let timeout = if wait_ns < SPIN_NS {
            Some(Duration::ZERO)
        } else {
            self.timer.set(Duration::from_nanos(wait_ns)).map_err(LoadError::System)?;
            None
        };
        match self.poll.poll(events, timeout) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => return Ok(()),
            polled => polled.map_err(LoadError::System)?,
        }
        for event in events.iter().filter(|event| event.token() != TIMER) {
            let index = event.token().0;
            if event.is_writable() {
                self.write(index)?;
            }
            if event.is_readable() {
                self.read(index)?;
            }
        }
        let now = self.now();
        if now >= (self.part.second + 1) * INTERVAL_NS {
            self.report();
            self.part.second = now / INTERVAL_NS;
        }
        Ok(())
    }

    fn read(&mut self, index: usize) -> Result<(), LoadError> {
        loop {
            let len = self.connections[index].read(&mut self.buffer, self.order.address)?;
            self.done.tally.bytes_in += len as u64;
            self.part.tally.bytes_in += len as u64;
            let now = self.order.began.elapsed().as_nanos() as u64;
            let (order, done, part) = (&self.order, &mut self.done, &mut self.part);
            self.connections[index].answers(&*self.requests.codec, |request, answer| {
                let (response, service) = (now - request.due, now - request.sent_at);
                part.tally.count(request.sent.kind, &answer);
                part.tally.response.record(response);
                part.tally.service.record(service);
                if request.due < order.measure_from {
                    return;
                }
                done.tally.count(request.sent.kind, &answer);
                done.tally.response.record(response);
                done.tally.service.record(service);
                done.in_time += u64::from(now <= order.end);
                done.last_answer = now;
            })?;
            // Only another read shows the end of the connection.
            let may_end = self.order.reconnect && len > 0;
            if len < self.buffer.len() && !may_end {
                break;
            }
        }
        if self.connections[index].is_closed {
            self.reconnect(index)?;
        }
        self.list(index);
        Ok(())
    }

    /// Replaces a connection that the server has closed by a new one.
    fn reconnect(&mut self, index: usize) -> Result<(), LoadError> {
        let mut connection = Connection::open(self.order.address, &*self.requests.codec)?;
        register(&self.poll, &connection, index)?;
        connection.is_listed = self.connections[index].is_listed;
        self.connections[index] = connection;
        Ok(())
    }

    /// Waits for the answers to what was sent.
    fn drain(&mut self, events: &mut Events) -> Result<(), LoadError> {
        let end = self.now() + DRAIN.as_nanos() as u64;
        while self.connections.iter().any(|connection| !connection.in_flight.is_empty()) {
            let now = self.now();
            if now >= end {
                break;
            }
            self.wait(events, (now + LOOK_NS).min(end))?;
        }
        Ok(())
    }

    /// Requests that were not answered, or were due and not even sent, have waited at least until now, and count as
    /// such: to leave them out would make the server look faster the slower it is.
    fn give_up(&mut self) {
        let now = self.now();
        for request in self.connections.iter().flat_map(|connection| &connection.in_flight) {
            if request.due >= self.order.measure_from {
                self.done.tally.response.record(now - request.due);
                self.done.tally.service.record(now - request.sent_at);
                self.done.unanswered += 1;
            }
        }
        let Some(schedule) = self.order.schedule.filter(|_| self.order.requests.is_none()) else {
            return;
        };
        let end = self.order.end.min(now);
        for index in self.next.. {
            let due = schedule.due(index);
            if due >= end {
                break;
            }
            if due >= self.order.measure_from {
                self.done.tally.response.record(end - due);
                self.done.unsent += 1;
            }
        }
    }

    /// Passes on the results of the second.
    fn report(&mut self) {
        let tally = self.part.tally.clone();
        self.part.tally.clear();
        // The receiver is gone if it is no longer interested.
        let _ = self.parts.send(Part { second: self.part.second, tally });
    }
}

/// From here on the poll reports events of the connection.
fn register(poll: &Poll, connection: &Connection, index: usize) -> Result<(), LoadError> {
    let both = Interest::READABLE | Interest::WRITABLE;
    let descriptor = connection.socket.as_raw_fd();
    let registered = poll.registry().register(&mut SourceFd(&descriptor), Token(index), both);
    registered.map_err(LoadError::System)
}
