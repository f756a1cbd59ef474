//! One connection as its worker sees it, and the time limits of all connections.
//!
//! A timer for each request would cost more than many requests do. Instead, each connection notes
//! its current phase, and one sweep every few ms shuts down the sockets that have been in theirs
//! for too long. The connection's own task then reads an end of input and learns the reason here.
//! Stopping works the same way: what the client has sent by then is still read and answered.

use std::{
    cell::{Cell, OnceCell, RefCell},
    collections::HashMap,
    io,
    net::{Shutdown, SocketAddr},
    rc::Rc,
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use crate::{
    config::Limits,
    transport::{Input, Socket, SocketAddress, Transport},
};

/// Longest and shortest time between two sweeps. A limit is accurate to about one such interval.
const SWEEP_MS_MAX: u64 = 250;
const SWEEP_MS_MIN: u64 = 5;

/// How long a connection must be idle to count as at rest.
const REST_MS: u64 = 500;

/// How long, and for how many bytes, a connection is still read from after its last reply. Closing
/// it with unread input would reset it, and the client might never see the reason.
#[derive(Clone, Copy)]
struct Linger {
    time: Duration,
    bytes_max: usize,
}

/// What a connection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Its first line has not arrived.
    FirstLine,
    /// Between requests.
    Idle,
    /// A request has begun to arrive.
    Request,
    /// The server is working on the request.
    Working,
    /// Replies wait for room in the socket.
    Reply,
}

/// An open connection.
pub(crate) struct Connection {
    transport: Transport,
    /// The client's address.
    pub(crate) peer: SocketAddress,
    /// The server's end, once it is known. The system is asked at most once.
    local: OnceCell<Option<SocketAddr>>,
    clock: Rc<Clock>,
    linger: Linger,
    phase: Cell<Phase>,
    since_ms: Cell<u64>,
    expired: Cell<Option<Phase>>,
    /// The task that waits until the connection is at rest.
    rest: RefCell<Option<Waker>>,
}

/// The worker's time in ms, advanced by the sweep, so that looking at it costs nothing.
struct Clock {
    started: Instant,
    now_ms: Cell<u64>,
    stopping: Cell<bool>,
}

impl Connection {
    /// The socket, for everything that needs no exclusive access.
    pub(crate) fn transport(&self) -> &Transport {
        &self.transport
    }

    /// The address that the client connected to; `None` if the system no longer knows it.
    pub(crate) fn local_address(&self) -> Option<SocketAddress> {
        match &self.peer {
            SocketAddress::Tcp(_) => self.local_tcp().map(SocketAddress::Tcp),
            SocketAddress::Unix(_) => Some(self.peer.clone()),
        }
    }

    /// The same, for a TCP connection.
    pub(crate) fn local_tcp(&self) -> Option<SocketAddr> {
        *self.local.get_or_init(|| self.transport.local_addr())
    }

    /// Notes the connection's new phase.
    pub(crate) fn enter(&self, phase: Phase) {
        self.phase.set(phase);
        self.since_ms.set(self.clock.now_ms.get());
    }

    /// As [`enter`](Self::enter), but time already spent in `phase` counts.
    pub(crate) fn remain_in(&self, phase: Phase) {
        if self.phase.get() != phase {
            self.enter(phase);
        }
    }

    pub(crate) fn phase(&self) -> Phase {
        self.phase.get()
    }

    /// Ready once the connection has been idle for long enough to be at rest.
    pub(crate) fn poll_rest(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.is_at_rest() {
            return Poll::Ready(());
        }
        let mut waiting = self.rest.borrow_mut();
        if !waiting.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            *waiting = Some(cx.waker().clone());
        }
        Poll::Pending
    }

    fn is_at_rest(&self) -> bool {
        let spent_ms = self.clock.now_ms.get().saturating_sub(self.since_ms.get());
        self.phase.get() == Phase::Idle && spent_ms >= REST_MS
    }

    /// The phase whose limit was exceeded, if that is why the input has ended.
    pub(crate) fn expired(&self) -> Option<Phase> {
        self.expired.get()
    }

    /// Whether the server is stopping: requests already read are answered, then the connection ends.
    pub(crate) fn is_stopping(&self) -> bool {
        self.clock.stopping.get()
    }

    /// Closes the write side, and reads on for a moment so that the client gets to see the last reply.
    pub(crate) async fn linger(&self) {
        if self.transport.shutdown(Shutdown::Write).is_err() {
            return;
        }
        let drain = async {
            let mut scratch = vec![0; 16 << 10];
            let mut left = self.linger.bytes_max;
            while left > 0 && self.transport.readable().await.is_ok() {
                match self.transport.try_read(&mut scratch) {
                    Ok(0) => break,
                    Ok(n) => left = left.saturating_sub(n),
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                    Err(_) => break,
                }
            }
        };
        // Either way the connection is over.
        let _ = tokio::time::timeout(self.linger.time, drain).await;
    }

    fn limit_ms(&self, limits: &Limits) -> Option<u64> {
        match self.phase.get() {
            Phase::FirstLine => Some(limits.first_line_ms),
            Phase::Idle => (limits.idle_ms > 0).then_some(limits.idle_ms),
            Phase::Request => Some(limits.request_ms),
            Phase::Working => None,
            Phase::Reply => Some(limits.reply_ms),
        }
    }

    /// Ends the phase from outside.
    fn expire(&self) {
        self.expired.set(Some(self.phase.get()));
        if self.phase.get() == Phase::Reply {
            // An error means that the socket is gone already.
            let _ = self.transport.shutdown(Shutdown::Both);
        } else {
            self.end_input();
        }
    }

    /// Ends the input after what the socket already holds.
    fn end_input(&self) {
        // An error means that the socket is gone already.
        let _ = self.transport.shutdown(Shutdown::Read);
    }
}

/// All connections of one worker.
pub(crate) struct Connections {
    clock: Rc<Clock>,
    linger: Linger,
    open: RefCell<HashMap<u64, Rc<Connection>>>,
    next: Cell<u64>,
}

impl Connections {
    pub(crate) fn new(limits: &Limits) -> Self {
        let time = Duration::from_millis(limits.linger_ms);
        let linger = Linger { time, bytes_max: limits.linger_bytes_max };
        let clock =
            Clock { started: Instant::now(), now_ms: Cell::new(0), stopping: Cell::new(false) };
        Self { clock: Rc::new(clock), linger, open: RefCell::default(), next: Cell::new(0) }
    }

    /// Registers a new connection until the guard is dropped. `local` is the server's end, if it is known.
    pub(crate) fn open(
        self: &Rc<Self>,
        socket: Socket,
        peer: SocketAddress,
        local: Option<SocketAddr>,
    ) -> (ConnectionGuard, Input) {
        let (transport, input) = Transport::open(socket);
        let connection = Rc::new(Connection {
            transport,
            peer,
            local: local.map_or_else(OnceCell::new, |local| OnceCell::from(Some(local))),
            clock: self.clock.clone(),
            linger: self.linger,
            phase: Cell::new(Phase::FirstLine),
            since_ms: Cell::new(self.clock.now_ms.get()),
            expired: Cell::new(None),
            rest: RefCell::default(),
        });
        let id = self.next.replace(self.next.get() + 1);
        self.open.borrow_mut().insert(id, connection.clone());
        if connection.is_stopping() {
            connection.end_input();
        }
        (ConnectionGuard { connections: self.clone(), id, connection }, input)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.open.borrow().is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.open.borrow().len()
    }

    /// Ends the input of every connection, and of those that are yet to come.
    pub(crate) fn stop(&self) {
        self.clock.stopping.set(true);
        for connection in self.open.borrow().values() {
            connection.end_input();
        }
    }

    /// Enforces the limits forever.
    pub(crate) async fn sweep(&self, limits: &Limits) {
        let shortest = [limits.first_line_ms, limits.request_ms, limits.reply_ms, limits.idle_ms]
            .into_iter()
            .filter(|&ms| ms > 0)
            .min()
            .unwrap_or(SWEEP_MS_MAX);
        let period_ms = (shortest / 4).clamp(SWEEP_MS_MIN, SWEEP_MS_MAX);
        let mut ticks = tokio::time::interval(Duration::from_millis(period_ms));
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let now_ms = u64::try_from(self.clock.started.elapsed().as_millis()).unwrap_or(0);
            // Phases were stamped with the time of an earlier sweep, at most this much too early.
            let grace_ms = now_ms - self.clock.now_ms.replace(now_ms);
            for connection in self.open.borrow().values() {
                let spent_ms = now_ms.saturating_sub(connection.since_ms.get() + grace_ms);
                let over = connection.limit_ms(limits).is_some_and(|limit_ms| spent_ms >= limit_ms);
                if over && connection.expired.get().is_none() {
                    connection.expire();
                }
                if connection.is_at_rest()
                    && let Some(waiting) = connection.rest.take()
                {
                    waiting.wake();
                }
            }
        }
    }
}

/// A connection that is known to its worker as long as this lives.
pub(crate) struct ConnectionGuard {
    connections: Rc<Connections>,
    id: u64,
    connection: Rc<Connection>,
}

impl ConnectionGuard {
    pub(crate) fn connection(&self) -> &Rc<Connection> {
        &self.connection
    }
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        self.connections.open.borrow_mut().remove(&self.id);
    }
}
