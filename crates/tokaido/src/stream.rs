//! A connection to a server: TCP or a UNIX socket.

use std::{
    io::{self, Read, Write},
    net::{Shutdown, SocketAddr, TcpStream},
    os::unix::net::UnixStream,
    path::Path,
    time::Duration,
};

/// A connection to a server.
#[derive(Debug)]
pub(crate) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// Does the same with either kind of stream.
macro_rules! with_stream {
    ($given:expr, $stream:ident => $do:expr) => {
        match $given {
            Stream::Tcp($stream) => $do,
            Stream::Unix($stream) => $do,
        }
    };
}

impl Stream {
    pub(crate) fn connect_tcp(address: &SocketAddr, timeout: Duration) -> io::Result<Self> {
        TcpStream::connect_timeout(address, timeout).map(Self::Tcp)
    }

    pub(crate) fn connect_unix(path: &Path) -> io::Result<Self> {
        UnixStream::connect(path).map(Self::Unix)
    }

    /// The `Host` header of an HTTP request: the address, since a server need not know every
    /// name that resolves to it. For a path there is none.
    pub(crate) fn host(&self) -> io::Result<String> {
        match self {
            Self::Tcp(stream) => {
                let address = stream.peer_addr()?;
                Ok(SocketAddr::new(address.ip(), address.port()).to_string())
            }
            Self::Unix(_) => Ok("localhost".to_owned()),
        }
    }

    /// Limits how long a read or a write may take, and disables the delay of small writes.
    pub(crate) fn prepare(&self, timeout: Duration) -> io::Result<()> {
        if let Self::Tcp(stream) = self {
            stream.set_nodelay(true)?;
        }
        with_stream!(self, stream => {
            stream.set_read_timeout(Some(timeout))?;
            stream.set_write_timeout(Some(timeout))
        })
    }

    /// Limits how long a read may take.
    pub(crate) fn set_read_timeout(&self, timeout: Duration) -> io::Result<()> {
        with_stream!(self, stream => stream.set_read_timeout(Some(timeout)))
    }

    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        match self {
            Self::Tcp(stream) => stream.try_clone().map(Self::Tcp),
            Self::Unix(stream) => stream.try_clone().map(Self::Unix),
        }
    }

    pub(crate) fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        with_stream!(self, stream => stream.shutdown(how))
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        with_stream!(self, stream => stream.read(buffer))
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        with_stream!(self, stream => stream.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        with_stream!(self, stream => stream.flush())
    }
}
