//! What carries the bytes of a connection: TCP or a UNIX socket.
//!
//! Everything above it sees an [`Input`] and a [`Transport`], the two halves of one socket. What a
//! worker only looks at or writes to is behind a shared reference; reading takes the one [`Input`].

use std::{
    fmt,
    io::{self, IoSlice},
    net::{Shutdown, SocketAddr},
    path::Path,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use socket2::SockRef;
use tokio::{
    io::{AsyncRead, ReadBuf},
    net::{TcpStream, UnixStream, tcp, unix},
};

/// Where a server listens, or where a connection comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SocketAddress {
    /// An IP address with its port.
    Tcp(SocketAddr),
    /// A UNIX socket. Its clients have no address of their own and are known by the server's.
    Unix(Arc<Path>),
}

impl SocketAddress {
    /// The IP address with its port.
    #[must_use]
    pub fn tcp(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(address) => Some(*address),
            Self::Unix(_) => None,
        }
    }

    /// The path of a UNIX socket.
    #[must_use]
    pub fn unix(&self) -> Option<&Path> {
        match self {
            Self::Tcp(_) => None,
            Self::Unix(path) => Some(path),
        }
    }
}

impl fmt::Display for SocketAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// A socket that is in no event loop, on its way from one to another.
pub(crate) enum Socket {
    Tcp(std::net::TcpStream),
    Unix(std::os::unix::net::UnixStream),
}

/// The way in.
pub(crate) enum Input {
    Tcp(tcp::OwnedReadHalf),
    Unix(unix::OwnedReadHalf),
}

/// The way out, and all else that needs no exclusive access.
pub(crate) enum Transport {
    Tcp(tcp::OwnedWriteHalf),
    Unix(unix::OwnedWriteHalf),
}

/// Does the same with the stream of whichever transport it is.
macro_rules! with_stream {
    ($transport:expr, $stream:ident => $do:expr) => {
        match $transport {
            Transport::Tcp(half) => {
                let $stream: &TcpStream = half.as_ref();
                $do
            }
            Transport::Unix(half) => {
                let $stream: &UnixStream = half.as_ref();
                $do
            }
        }
    };
}

impl Transport {
    /// Enters a socket into the event loop of this thread.
    pub(crate) fn open(socket: Socket) -> io::Result<(Self, Input)> {
        Ok(match socket {
            Socket::Tcp(stream) => {
                let (input, output) = TcpStream::from_std(stream)?.into_split();
                (Self::Tcp(output), Input::Tcp(input))
            }
            Socket::Unix(stream) => {
                let (input, output) = UnixStream::from_std(stream)?.into_split();
                (Self::Unix(output), Input::Unix(input))
            }
        })
    }

    /// The server's end of a TCP connection.
    pub(crate) fn local_addr(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(half) => half.local_addr().ok(),
            Self::Unix(_) => None,
        }
    }

    pub(crate) async fn readable(&self) -> io::Result<()> {
        with_stream!(self, stream => stream.readable().await)
    }

    pub(crate) async fn writable(&self) -> io::Result<()> {
        with_stream!(self, stream => stream.writable().await)
    }

    pub(crate) fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        with_stream!(self, stream => stream.poll_read_ready(cx))
    }

    pub(crate) fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        with_stream!(self, stream => stream.poll_write_ready(cx))
    }

    pub(crate) fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        with_stream!(self, stream => stream.try_read(buffer))
    }

    pub(crate) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        with_stream!(self, stream => stream.try_write(bytes))
    }

    pub(crate) fn try_write_vectored(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        with_stream!(self, stream => stream.try_write_vectored(slices))
    }

    /// Ends one direction, or both, whoever is using them.
    pub(crate) fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        with_stream!(self, stream => SockRef::from(stream).shutdown(how))
    }
}

impl AsyncRead for Input {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(half) => Pin::new(half).poll_read(cx, buffer),
            Self::Unix(half) => Pin::new(half).poll_read(cx, buffer),
        }
    }
}
