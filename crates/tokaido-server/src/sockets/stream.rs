//! One connection, by TCP or a UNIX socket.

use std::{
    cell::Cell,
    io,
    rc::Rc,
    task::{Context, Poll},
};

use socket2::SockRef;
use tokaido_script::SocketOption;
use tokio::net::{TcpStream, UnixStream, lookup_host};

/// Does the same with either kind of stream.
macro_rules! with_stream {
    ($connection:expr, $stream:ident => $do:expr) => {
        match &$connection.stream {
            Stream::Tcp($stream) => $do,
            Stream::Unix($stream) => $do,
        }
    };
}

enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// One of the sockets that a worker has open, counted as long as it is there.
pub(super) struct Permit(Rc<Cell<usize>>);

impl Permit {
    /// One more, unless there are that many.
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
    _permit: Permit,
}

impl Connection {
    /// Connects to the first address of that name that takes it.
    pub(super) async fn to_host(host: String, port: u16, permit: Permit) -> Result<Self, String> {
        let unresolved = |error| format!("{host} could not be resolved ({})", message_of(&error));
        let addresses = lookup_host((host.as_str(), port)).await.map_err(unresolved)?;
        let mut why = format!("{host} could not be resolved (Host not found)");
        for address in addresses {
            match TcpStream::connect(address).await {
                Ok(stream) => {
                    // Handlers send whole messages.
                    let _ = stream.set_nodelay(true);
                    return Ok(Self { stream: Stream::Tcp(stream), _permit: permit });
                }
                Err(error) => why = message_of(&error),
            }
        }
        Err(why)
    }

    /// Connects to a UNIX socket.
    pub(super) async fn to_path(path: String, permit: Permit) -> Result<Self, String> {
        let stream = UnixStream::connect(path).await.map_err(|error| message_of(&error))?;
        Ok(Self { stream: Stream::Unix(stream), _permit: permit })
    }

    pub(super) fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        with_stream!(self, stream => stream.try_read(buffer))
    }

    pub(super) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        with_stream!(self, stream => stream.try_write(bytes))
    }

    pub(super) fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        with_stream!(self, stream => stream.poll_read_ready(cx))
    }

    pub(super) fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        with_stream!(self, stream => stream.poll_write_ready(cx))
    }

    /// Waits until there is something to read, or the other side has closed.
    pub(super) async fn readable(&self) {
        // An error is found when it is next read from.
        let _ = with_stream!(self, stream => stream.readable().await);
    }

    /// Whether it is open and nothing has come.
    pub(super) fn is_quiet(&self) -> Result<(), String> {
        match self.try_read(&mut [0]) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Ok(0) => Err("closed".to_owned()),
            Ok(_) => Err("connection in dubious state".to_owned()),
            Err(error) => Err(message_of(&error)),
        }
    }

    pub(super) fn set_option(&self, option: SocketOption, value: u32) -> Result<(), String> {
        let socket = with_stream!(self, stream => SockRef::from(stream));
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

/// What the system says, in the words and the case that handlers know from nginx.
pub(super) fn message_of(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    text.to_ascii_lowercase()
}
