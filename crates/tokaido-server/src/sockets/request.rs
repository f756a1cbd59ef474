//! The sockets of one request, which are closed when it ends.

use std::{
    future::poll_fn,
    io,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll},
    time::Duration,
};

use tokaido_script::{Receive, Received, SocketOption, SocketTarget, Sockets};

use super::{
    WorkerSockets,
    input::Input,
    pools,
    stream::{Connection, message_of},
};

/// How much is read at once.
const READ_LEN: usize = 16 << 10;

/// Maximum length of a datagram.
const DATAGRAM_LEN_MAX: usize = 64 << 10;

type Connecting = Pin<Box<dyn Future<Output = Result<Connection, String>>>>;

/// The state of a socket.
enum State {
    Connecting(Connecting),
    Open(Rc<Connection>),
    Failed(String),
}

struct Socket {
    state: State,
    pool: Box<[u8]>,
    pool_size: usize,
    /// How often the connection has been taken out of a pool.
    reused: u32,
    input: Input,
    /// Whether the other side sends no more.
    has_ended: bool,
    /// What the handler waits for.
    wants: Wants,
}

/// What a handler has tried and could not do yet.
#[derive(Clone, Copy, Default)]
struct Wants {
    to_connect: bool,
    to_read: bool,
    to_write: bool,
}

impl Socket {
    fn connection(&self) -> Result<&Rc<Connection>, String> {
        match &self.state {
            State::Open(connection) => Ok(connection),
            State::Connecting(_) => Err("socket busy connecting".to_owned()),
            State::Failed(why) => Err(why.clone()),
        }
    }

    /// Whether something that the handler waits for may have happened. If so, the wait for it ends.
    fn poll(&mut self, cx: &mut Context<'_>) -> bool {
        let mut is_ready = false;
        if let State::Connecting(connecting) = &mut self.state
            && let Poll::Ready(result) = connecting.as_mut().poll(cx)
        {
            self.state = match result {
                Ok(connection) => State::Open(Rc::new(connection)),
                Err(why) => State::Failed(why),
            };
            is_ready = std::mem::take(&mut self.wants.to_connect);
        }
        if let State::Open(connection) = &self.state {
            if self.wants.to_read && connection.poll_read_ready(cx).is_ready() {
                (self.wants.to_read, is_ready) = (false, true);
            }
            if self.wants.to_write && connection.poll_write_ready(cx).is_ready() {
                (self.wants.to_write, is_ready) = (false, true);
            }
        }
        is_ready
    }

    /// Reads once. Returns whether there was anything, if only the end.
    fn read(&mut self, worker: &WorkerSockets) -> Result<bool, String> {
        let connection = Rc::clone(self.connection()?);
        let (bytes_max, held_max) = (worker.bytes_max, worker.bytes_held_max);
        if self.input.len() >= bytes_max {
            return Err(format!("more than {bytes_max} bytes, limits.socket_bytes_max"));
        }
        if worker.bytes_held.get() >= held_max {
            return Err(format!(
                "more than {held_max} bytes for all handlers of a worker, limits.worker_socket_bytes_max"
            ));
        }
        let mut buffer = [0; READ_LEN];
        match connection.try_read(&mut buffer) {
            Ok(0) => self.has_ended = true,
            Ok(len) => self.input.append(&buffer[..len]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(message_of(&error)),
        }
        Ok(true)
    }

    fn receive_datagram(
        &mut self,
        size: usize,
        out: &mut Vec<u8>,
    ) -> Poll<Result<Received, String>> {
        let connection = match self.connection() {
            Ok(connection) => Rc::clone(connection),
            Err(why) => return Poll::Ready(Err(why)),
        };
        out.resize(size.min(DATAGRAM_LEN_MAX), 0);
        let read = connection.try_read(out);
        out.truncate(*read.as_ref().unwrap_or(&0));
        match read {
            Ok(_) => Poll::Ready(Ok(Received::Whole)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.wants.to_read = true;
                Poll::Pending
            }
            Err(error) => Poll::Ready(Err(message_of(&error))),
        }
    }

    fn receive(
        &mut self,
        what: Receive<'_>,
        worker: &WorkerSockets,
        out: &mut Vec<u8>,
    ) -> Poll<Result<Received, String>> {
        self.wants.to_read = false;
        if let Receive::Datagram(size) = what {
            return self.receive_datagram(size, out);
        }
        loop {
            if let Some(received) = self.input.take(what, out) {
                return Poll::Ready(Ok(received));
            }
            let why = match self.has_ended {
                true => "closed".to_owned(),
                false => match self.read(worker) {
                    Ok(true) => continue,
                    Ok(false) => {
                        self.wants.to_read = true;
                        return Poll::Pending;
                    }
                    Err(why) => why,
                },
            };
            self.input.give_up(what, out);
            let is_all = self.has_ended && matches!(what, Receive::All);
            return Poll::Ready(if is_all { Ok(Received::Whole) } else { Err(why) });
        }
    }
}

/// Sockets by number.
pub(crate) struct RequestSockets {
    worker: Rc<WorkerSockets>,
    sockets: Vec<Option<Socket>>,
}

impl RequestSockets {
    pub(crate) fn new(worker: &Rc<WorkerSockets>) -> Self {
        Self { worker: Rc::clone(worker), sockets: Vec::new() }
    }

    /// Waits until something that the handler has tried in vain may be tried again.
    pub(crate) async fn ready(&mut self) {
        poll_fn(|cx| {
            let polled = self.sockets.iter_mut().flatten().map(|socket| socket.poll(cx));
            if polled.fold(false, |any, one| any | one) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    fn socket(&mut self, number: u32) -> Result<&mut Socket, String> {
        let socket = self.sockets.get_mut(number as usize).and_then(Option::as_mut);
        socket.ok_or_else(|| "closed".to_owned())
    }

    /// A kept connection, or one that begins to connect.
    fn begin(&self, target: SocketTarget<'_>) -> Result<(State, u32), String> {
        let (host, port) = match target.host.strip_prefix("unix:") {
            Some(path) => (path, None),
            None => (target.host, target.port),
        };
        self.worker.check(host, port)?;
        if !target.is_of_datagrams
            && let Some((connection, reused)) = pools::take(&self.worker.pools, target.pool)
        {
            return Ok((State::Open(connection), reused));
        }
        let (names, host, permit) =
            (self.worker.names.clone(), host.to_owned(), self.worker.permit()?);
        let connecting: Connecting = match port {
            Some(port) if target.is_of_datagrams => {
                Box::pin(Connection::of_datagrams(names, host, port, permit))
            }
            Some(port) => Box::pin(Connection::to_host(names, host, port, permit)),
            None => Box::pin(Connection::to_path(host, permit)),
        };
        Ok((State::Connecting(connecting), 0))
    }
}

impl Sockets for RequestSockets {
    fn connect(&mut self, target: SocketTarget<'_>) -> Result<u32, String> {
        let max = self.worker.of_request_max;
        let free = self.sockets.iter().position(Option::is_none).unwrap_or(self.sockets.len());
        if free >= max {
            return Err(format!("a request has at most {max} sockets"));
        }
        let (state, reused) = self.begin(target)?;
        let (pool, pool_size) = (target.pool.into(), target.pool_size);
        let (input, wants) = (Input::new(&self.worker.bytes_held), Wants::default());
        let socket = Socket { state, pool, pool_size, reused, input, has_ended: false, wants };
        if free == self.sockets.len() {
            self.sockets.push(None);
        }
        self.sockets[free] = Some(socket);
        Ok(free as u32)
    }

    fn connected(&mut self, socket: u32) -> Poll<Result<u32, String>> {
        let socket = match self.socket(socket) {
            Ok(socket) => socket,
            Err(why) => return Poll::Ready(Err(why)),
        };
        if let State::Connecting(_) = socket.state {
            socket.wants.to_connect = true;
            return Poll::Pending;
        }
        Poll::Ready(socket.connection().map(|_| socket.reused))
    }

    fn send(&mut self, socket: u32, bytes: &[u8]) -> Poll<Result<usize, String>> {
        let sent = self.socket(socket).and_then(|socket| {
            socket.wants.to_write = false;
            match socket.connection()?.try_write(bytes) {
                Ok(sent) => Ok(Some(sent)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    socket.wants.to_write = true;
                    Ok(None)
                }
                Err(error) => Err(message_of(&error)),
            }
        });
        match sent.transpose() {
            Some(done) => Poll::Ready(done),
            None => Poll::Pending,
        }
    }

    fn receive(
        &mut self,
        socket: u32,
        what: Receive<'_>,
        out: &mut Vec<u8>,
    ) -> Poll<Result<Received, String>> {
        let worker = Rc::clone(&self.worker);
        match self.socket(socket) {
            Ok(socket) => socket.receive(what, &worker, out),
            Err(why) => Poll::Ready(Err(why)),
        }
    }

    fn buffered(&self, socket: u32) -> usize {
        let socket = self.sockets.get(socket as usize).and_then(Option::as_ref);
        socket.map_or(0, |socket| socket.input.len())
    }

    fn give_up(&mut self, socket: u32, what: Receive<'_>, out: &mut Vec<u8>) {
        if let Ok(socket) = self.socket(socket) {
            socket.wants.to_read = false;
            socket.input.give_up(what, out);
        }
    }

    fn close(&mut self, socket: u32) {
        if let Some(place) = self.sockets.get_mut(socket as usize) {
            *place = None;
        }
    }

    fn keep(&mut self, socket: u32, time_ms: u64, pool_size: Option<usize>) -> Result<(), String> {
        let socket = self.socket(socket)?;
        if socket.input.len() > 0 {
            return Err("unread data in buffer".to_owned());
        }
        if socket.has_ended {
            return Err("closed".to_owned());
        }
        let connection = Rc::clone(socket.connection()?);
        connection.is_quiet()?;
        let time = (time_ms > 0).then(|| Duration::from_millis(time_ms));
        let (name, reused) = (std::mem::take(&mut socket.pool), socket.reused);
        let size = pool_size.unwrap_or(socket.pool_size);
        pools::put(&self.worker.pools, &name, size, connection, reused, time);
        Ok(())
    }

    fn set_option(&mut self, socket: u32, option: SocketOption, value: u32) -> Result<(), String> {
        self.socket(socket)?.connection()?.set_option(option, value)
    }

    fn wake(&mut self, slot: u64) {
        self.worker.wake(slot);
    }
}
