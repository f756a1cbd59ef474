//! What carries the bytes of a connection: TCP or a UNIX socket.
//!
//! Everything above it sees an [`Input`] and a [`Transport`], the two halves of one socket. What
//! only looks at or writes to the socket needs a shared reference; reading takes the one [`Input`].

use std::{
    cell::{Cell, OnceCell},
    fmt,
    io::{self, IoSlice, Read, Write},
    mem::MaybeUninit,
    net::{Shutdown, SocketAddr},
    os::fd::{AsRawFd, RawFd},
    path::Path,
    pin::Pin,
    rc::Rc,
    sync::Arc,
    task::{Context, Poll, ready},
};

use socket2::SockRef;
use tokio::io::{AsyncRead, Interest, ReadBuf, unix::AsyncFd};

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

/// A socket of either kind, which does not block.
pub(crate) enum Socket {
    Tcp(std::net::TcpStream),
    Unix(std::os::unix::net::UnixStream),
}

impl Socket {
    fn receive(&self, buffer: &mut [MaybeUninit<u8>]) -> io::Result<usize> {
        match self {
            Self::Tcp(socket) => SockRef::from(socket).recv(buffer),
            Self::Unix(socket) => SockRef::from(socket).recv(buffer),
        }
    }

    fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(socket) => (&*socket).read(buffer),
            Self::Unix(socket) => (&*socket).read(buffer),
        }
    }

    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(socket) => (&*socket).write(bytes),
            Self::Unix(socket) => (&*socket).write(bytes),
        }
    }

    fn write_vectored(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Tcp(socket) => (&*socket).write_vectored(slices),
            Self::Unix(socket) => (&*socket).write_vectored(slices),
        }
    }

    fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        match self {
            Self::Tcp(socket) => socket.shutdown(how),
            Self::Unix(socket) => socket.shutdown(how),
        }
    }

    fn descriptor(&self) -> RawFd {
        match self {
            Self::Tcp(socket) => socket.as_raw_fd(),
            Self::Unix(socket) => socket.as_raw_fd(),
        }
    }
}

/// A socket that enters the event loop of its thread only when it is waited for, or read from again. A connection
/// for a single request is mostly over before that, which saves the system calls to enter and leave the loop.
struct Stream {
    /// Leaves the loop before the socket is closed, since fields are dropped in order.
    entered: OnceCell<AsyncFd<RawFd>>,
    socket: Socket,
    was_read: Cell<bool>,
}

impl Stream {
    fn enter(&self) -> io::Result<&AsyncFd<RawFd>> {
        if let Some(entered) = self.entered.get() {
            return Ok(entered);
        }
        // SAFETY: it is the descriptor of `socket`, which stays open until `entered` has been dropped.
        let entered = unsafe { AsyncFd::register(self.socket.descriptor()) }?;
        Ok(self.entered.get_or_init(|| entered))
    }

    /// Does what might block. If it would have, the socket can be waited for from then on.
    fn try_io<T>(
        &self,
        interest: Interest,
        work: impl FnOnce(&Socket) -> io::Result<T>,
    ) -> io::Result<T> {
        if let Some(entered) = self.entered.get() {
            return entered.try_io(interest, |_| work(&self.socket));
        }
        let result = work(&self.socket);
        if result.as_ref().is_err_and(is_would_block) {
            self.enter()?;
        }
        result
    }
}

fn is_would_block(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
}

/// The read half.
pub(crate) struct Input(Rc<Stream>);

/// The write half, and everything else that needs no exclusive access.
pub(crate) struct Transport(Rc<Stream>);

impl Transport {
    /// The two halves of a socket.
    pub(crate) fn open(socket: Socket) -> (Self, Input) {
        let stream =
            Rc::new(Stream { entered: OnceCell::new(), socket, was_read: Cell::new(false) });
        (Self(stream.clone()), Input(stream))
    }

    /// The server's end of a TCP connection.
    pub(crate) fn local_addr(&self) -> Option<SocketAddr> {
        match &self.0.socket {
            Socket::Tcp(socket) => socket.local_addr().ok(),
            Socket::Unix(_) => None,
        }
    }

    pub(crate) async fn readable(&self) -> io::Result<()> {
        self.0.enter()?.readable().await.map(drop)
    }

    /// A socket that has not been waited for yet is taken to have room.
    pub(crate) async fn writable(&self) -> io::Result<()> {
        match self.0.entered.get() {
            Some(entered) => entered.writable().await.map(drop),
            None => Ok(()),
        }
    }

    pub(crate) fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.enter()?.poll_read_ready(cx).map_ok(drop)
    }

    /// As [`writable`](Self::writable).
    pub(crate) fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.0.entered.get() {
            Some(entered) => entered.poll_write_ready(cx).map_ok(drop),
            None => Poll::Ready(Ok(())),
        }
    }

    pub(crate) fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.try_io(Interest::READABLE, |socket| socket.read(buffer))
    }

    pub(crate) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_io(Interest::WRITABLE, |socket| socket.write(bytes))
    }

    pub(crate) fn try_write_vectored(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.try_io(Interest::WRITABLE, |socket| socket.write_vectored(slices))
    }

    /// Shuts down one direction, or both, whoever is using them.
    pub(crate) fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.0.socket.shutdown(how)
    }
}

impl AsyncRead for Input {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let stream = &self.0;
        if stream.entered.get().is_none() && !stream.was_read.replace(true) {
            match receive(&stream.socket, buffer) {
                Err(error) if is_would_block(&error) => {}
                received => return Poll::Ready(received.map(drop)),
            }
        }
        let entered = stream.enter()?;
        loop {
            let mut ready = ready!(entered.poll_read_ready(cx))?;
            let room = buffer.remaining();
            match receive(&stream.socket, buffer) {
                Err(error) if is_would_block(&error) => ready.clear_ready(),
                received => {
                    // A read that leaves room has emptied the socket: the next one would be in vain.
                    if received.as_ref().is_ok_and(|&len| len > 0 && len < room) {
                        ready.clear_ready();
                    }
                    return Poll::Ready(received.map(drop));
                }
            }
        }
    }
}

fn receive(socket: &Socket, buffer: &mut ReadBuf<'_>) -> io::Result<usize> {
    // SAFETY: none of these bytes is de-initialized.
    let len = socket.receive(unsafe { buffer.unfilled_mut() })?;
    // SAFETY: the system has just filled this many bytes.
    unsafe { buffer.assume_init(len) };
    buffer.advance(len);
    Ok(len)
}
