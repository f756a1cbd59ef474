//! One connection, over TCP, a UNIX socket or UDP.

use std::{
    cell::Cell,
    io,
    net::SocketAddr,
    rc::Rc,
    task::{Context, Poll},
};

use socket2::SockRef;
use tokaido_script::SocketOption;
use tokio::net::{TcpStream, UnixStream};

use super::{datagrams::Datagrams, names::Names};

enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
    Udp(Datagrams),
}

/// One of a worker's open sockets, counted as long as this lives.
pub(super) struct Permit(Rc<Cell<usize>>);

impl Permit {
    /// Takes one more, unless there are `max` already.
    pub(super) fn take(open: &Rc<Cell<usize>>, max: usize) -> Option<Self> {
        if open.get() >= max {
            return None;
        }
        open.set(open.get() + 1);
        Some(Self(Rc::clone(open)))
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

/// A connection to a peer. It is closed when it is dropped.
pub(super) struct Connection {
    stream: Stream,
    /// Set until another connection has taken it over.
    permit: Cell<Option<Permit>>,
}

impl Connection {
    /// Hands the permit over for another connection: this one is about to be closed.
    pub(super) fn take_permit(&self) -> Option<Permit> {
        self.permit.take()
    }

    /// Connects to the first address of that name that accepts.
    pub(super) async fn to_host(
        names: Names,
        host: String,
        port: u16,
        permit: Permit,
    ) -> Result<Self, String> {
        let connect = async |address| {
            let stream = TcpStream::connect(address).await?;
            // Handlers send whole messages.
            stream.set_nodelay(true)?;
            Ok(Stream::Tcp(stream))
        };
        let stream = to_first(&names, &host, port, connect).await?;
        Ok(Self { stream, permit: Cell::new(Some(permit)) })
    }

    /// A socket that sends datagrams to the first address of that name, and receives them only from it.
    pub(super) async fn of_datagrams(
        names: Names,
        host: String,
        port: u16,
        permit: Permit,
    ) -> Result<Self, String> {
        let connect = async |address| Ok(Stream::Udp(Datagrams::to(address).await?));
        let stream = to_first(&names, &host, port, connect).await?;
        Ok(Self { stream, permit: Cell::new(Some(permit)) })
    }

    /// Connects to a UNIX socket.
    pub(super) async fn to_path(path: String, permit: Permit) -> Result<Self, String> {
        let stream = UnixStream::connect(path).await.map_err(|error| message_of(&error))?;
        Ok(Self { stream: Stream::Unix(stream), permit: Cell::new(Some(permit)) })
    }

    pub(super) fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match &self.stream {
            Stream::Tcp(stream) => stream.try_read(buffer),
            Stream::Unix(stream) => stream.try_read(buffer),
            Stream::Udp(datagrams) => datagrams.try_receive(buffer),
        }
    }

    pub(super) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match &self.stream {
            Stream::Tcp(stream) => stream.try_write(bytes),
            Stream::Unix(stream) => stream.try_write(bytes),
            Stream::Udp(datagrams) => datagrams.socket.try_send(bytes),
        }
    }

    pub(super) fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &self.stream {
            Stream::Tcp(stream) => stream.poll_read_ready(cx),
            Stream::Unix(stream) => stream.poll_read_ready(cx),
            Stream::Udp(datagrams) => datagrams.poll_receive_ready(cx),
        }
    }

    pub(super) fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &self.stream {
            Stream::Tcp(stream) => stream.poll_write_ready(cx),
            Stream::Unix(stream) => stream.poll_write_ready(cx),
            Stream::Udp(datagrams) => datagrams.socket.poll_send_ready(cx),
        }
    }

    /// Waits until there is something to read, or the other side has closed.
    pub(super) async fn readable(&self) {
        // The next read finds any error.
        let _ = match &self.stream {
            Stream::Tcp(stream) => stream.readable().await,
            Stream::Unix(stream) => stream.readable().await,
            Stream::Udp(datagrams) => datagrams.socket.readable().await,
        };
    }

    /// Whether it is open and nothing has arrived.
    pub(super) fn is_quiet(&self) -> Result<(), String> {
        match self.try_read(&mut [0]) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Ok(0) => Err("closed".to_owned()),
            Ok(_) => Err("connection in dubious state".to_owned()),
            Err(error) => Err(message_of(&error)),
        }
    }

    pub(super) fn set_option(&self, option: SocketOption, value: u32) -> Result<(), String> {
        let socket = match &self.stream {
            Stream::Tcp(stream) => SockRef::from(stream),
            Stream::Unix(stream) => SockRef::from(stream),
            Stream::Udp(datagrams) => SockRef::from(&*datagrams.socket),
        };
        let set = match option {
            SocketOption::KeepAlive => socket.set_keepalive(value != 0),
            SocketOption::ReuseAddress => socket.set_reuse_address(value != 0),
            SocketOption::NoDelay => socket.set_tcp_nodelay(value != 0),
            SocketOption::SendBuffer => socket.set_send_buffer_size(value as usize),
            SocketOption::ReceiveBuffer => socket.set_recv_buffer_size(value as usize),
        };
        set.map_err(|error| message_of(&error))
    }
}

/// Connects to the addresses of a name in turn, until one accepts.
async fn to_first(
    names: &Names,
    host: &str,
    port: u16,
    connect: impl AsyncFn(SocketAddr) -> io::Result<Stream>,
) -> Result<Stream, String> {
    let mut why = String::new();
    for address in names.look_up(host, port).await? {
        match connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => why = message_of(&error),
        }
    }
    Err(why)
}

/// The system's error, in the words and the case that handlers know from nginx.
pub(super) fn message_of(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    text.to_ascii_lowercase()
}
