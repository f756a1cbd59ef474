//! The address of a server, and a socket to it.

use std::{
    fmt,
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream, ToSocketAddrs},
    os::{
        fd::{AsRawFd, RawFd},
        unix::net::UnixStream,
    },
    path::PathBuf,
    str::FromStr,
    time::Duration,
};

/// The prefix of a UNIX socket's address.
const UNIX: &str = "unix:";

/// How long establishing a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The address of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A host, with its name as it was given.
    Tcp {
        /// `HOST:PORT`.
        name: String,
        /// The resolved address.
        address: SocketAddr,
    },
    /// A UNIX socket.
    Unix(PathBuf),
}

/// The text is not an address.
#[derive(Debug, thiserror::Error)]
#[error("{text:?} is no address of a server: write HOST:PORT, or unix:PATH for a UNIX socket")]
pub struct AddressError {
    text: String,
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        if let Some(path) = text.strip_prefix(UNIX).filter(|path| !path.is_empty()) {
            return Ok(Self::Unix(path.into()));
        }
        let found = text.to_socket_addrs().ok().and_then(|mut addresses| addresses.next());
        let address = found.ok_or_else(|| AddressError { text: text.to_owned() })?;
        Ok(Self::Tcp { name: text.to_owned(), address })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { name, .. } => f.write_str(name),
            Self::Unix(path) => write!(f, "{UNIX}{}", path.display()),
        }
    }
}

/// A connection.
pub(super) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    /// Connects, and waits for it. Reads and writes block until [`set_ready`](Self::set_ready).
    pub(super) fn connect(address: &Address) -> io::Result<Self> {
        match address {
            Address::Tcp { address, .. } => {
                let stream = TcpStream::connect_timeout(address, CONNECT_TIMEOUT)?;
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(CONNECT_TIMEOUT))?;
                Ok(Self::Tcp(stream))
            }
            Address::Unix(path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_read_timeout(Some(CONNECT_TIMEOUT))?;
                Ok(Self::Unix(stream))
            }
        }
    }

    /// From here on no call blocks.
    pub(super) fn set_ready(&self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.set_nonblocking(true),
            Self::Unix(stream) => stream.set_nonblocking(true),
        }
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(buffer),
            Self::Unix(stream) => stream.read(buffer),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsRawFd for Socket {
    fn as_raw_fd(&self) -> RawFd {
        match self {
            Self::Tcp(stream) => stream.as_raw_fd(),
            Self::Unix(stream) => stream.as_raw_fd(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_hosts_with_ports_and_paths() {
        let address: Address = "127.0.0.1:7653".parse().unwrap();
        assert_eq!(address.to_string(), "127.0.0.1:7653");
        let address: Address = "unix:/run/t.sock".parse().unwrap();
        assert_eq!(
            (address.to_string().as_str(), address),
            ("unix:/run/t.sock", Address::Unix("/run/t.sock".into()))
        );
        for text in ["", "127.0.0.1", "unix:", ":x"] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }
}
