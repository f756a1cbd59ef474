//! Opening the sockets that a server listens on.

use std::{
    fs,
    io::{self, ErrorKind},
    net::{SocketAddr, TcpListener, ToSocketAddrs},
    os::unix::{
        fs::{FileTypeExt, MetadataExt, PermissionsExt},
        net::UnixListener,
    },
    path::{Path, PathBuf},
    sync::Arc,
};

use socket2::{Domain, SockAddr, Socket, Type};

use crate::{
    config::{Address, Config, Listen, Mode},
    detect::ProtocolName,
    transport::SocketAddress,
};

/// The default permissions of a UNIX socket: only its owner may connect.
const MODE_DEFAULT: Mode = Mode(0o600);

/// An address cannot be listened on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// The host has no address.
    #[error("cannot find the host of {address}: {source}; name one that this machine knows")]
    Resolve {
        /// The address.
        address: Address,
        /// The system's error.
        source: io::Error,
    },
    /// The address is taken.
    #[error("{address} is in use by another program; stop that one, or choose another address")]
    InUse {
        /// The address.
        address: SocketAddress,
    },
    /// There is something else at the path of a UNIX socket.
    #[error("{} is there, and is no socket; move it away, or choose another path", path.display())]
    NotASocket {
        /// The path.
        path: PathBuf,
    },
    /// The system refuses it.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddress,
        /// The system's error.
        source: io::Error,
    },
    /// Others could reach the server, and nothing would stop them.
    #[error(
        "refusing to listen on {address} without a password: everyone who reaches that address could read and write all data. Set `password`, or listen on 127.0.0.1 or a UNIX socket"
    )]
    OpenWithoutPassword {
        /// The address.
        address: SocketAddr,
    },
}

/// A socket that is listened on.
pub(crate) struct Listener {
    pub(crate) socket: ListenerSocket,
    pub(crate) address: SocketAddress,
    /// The protocols that are spoken there, the preferred one first.
    pub(crate) protocols: Arc<[ProtocolName]>,
    /// The file of a UNIX socket; it is removed when no clone of this is left.
    pub(crate) file: Option<Arc<SocketFile>>,
}

impl Listener {
    /// The same socket, for another event loop.
    pub(crate) fn try_clone(&self) -> Result<Self, ListenError> {
        let socket = match &self.socket {
            ListenerSocket::Tcp(socket) => socket.try_clone().map(ListenerSocket::Tcp),
            ListenerSocket::Unix(socket) => socket.try_clone().map(ListenerSocket::Unix),
        };
        let Self { address, protocols, file, .. } = self;
        Ok(Self {
            socket: socket.map_err(|error| error_at(address.clone(), error))?,
            address: address.clone(),
            protocols: protocols.clone(),
            file: file.clone(),
        })
    }
}

pub(crate) enum ListenerSocket {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// Opens everything that the configuration names, or nothing.
pub(crate) fn open(
    config: &Config,
    needs_authentication: bool,
) -> Result<Vec<Listener>, ListenError> {
    let queue_max = i32::try_from(config.limits.accept_queue_max).unwrap_or(i32::MAX);
    let mut listeners = Vec::new();
    for listen in &config.listen {
        match &listen.address {
            Address::Unix(path) => {
                listeners.push(open_unix(path, listen, queue_max)?);
            }
            Address::Tcp { host, port } => {
                let addresses = resolve(host, *port).map_err(|source| ListenError::Resolve {
                    address: listen.address.clone(),
                    source,
                })?;
                if !needs_authentication {
                    require_loopback(&addresses)?;
                }
                open_tcp(&addresses, listen, queue_max, &mut listeners)?;
            }
        }
    }
    Ok(listeners)
}

/// The addresses of a host, without duplicates.
fn resolve(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    let mut addresses = Vec::new();
    for address in (host, port).to_socket_addrs()? {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    if addresses.is_empty() {
        return Err(io::Error::new(ErrorKind::NotFound, "it has no address"));
    }
    Ok(addresses)
}

fn require_loopback(addresses: &[SocketAddr]) -> Result<(), ListenError> {
    match addresses.iter().find(|address| !address.ip().is_loopback()) {
        Some(&address) => Err(ListenError::OpenWithoutPassword { address }),
        None => Ok(()),
    }
}

/// Listens on all addresses of a host. A name such as `localhost` may have one that this machine
/// does not have; the others are enough.
fn open_tcp(
    addresses: &[SocketAddr],
    listen: &Listen,
    queue_max: i32,
    listeners: &mut Vec<Listener>,
) -> Result<(), ListenError> {
    let count_before = listeners.len();
    let mut failure = None;
    for &address in addresses {
        let opened = bind_tcp(address, queue_max)
            .and_then(|socket| Ok((SocketAddress::Tcp(socket.local_addr()?), socket)));
        match opened {
            Ok((address, socket)) => listeners.push(Listener {
                socket: ListenerSocket::Tcp(socket),
                address,
                protocols: listen.allowed(),
                file: None,
            }),
            Err(error) => match error_at(SocketAddress::Tcp(address), error) {
                taken @ ListenError::InUse { .. } => return Err(taken),
                other => failure = Some(other),
            },
        }
    }
    match failure {
        Some(failure) if listeners.len() == count_before => Err(failure),
        Some(failure) => {
            tracing::warn!("{failure}; listening on the other addresses of {}", listen.address);
            Ok(())
        }
        None => Ok(()),
    }
}

fn bind_tcp(address: SocketAddr, queue_max: i32) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    // So that a server can restart at once: connections of the previous one may still be closing.
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(queue_max)?;
    Ok(socket.into())
}

fn open_unix(path: &Path, listen: &Listen, queue_max: i32) -> Result<Listener, ListenError> {
    let address = SocketAddress::Unix(path.into());
    let is_there = fs::symlink_metadata(path);
    if is_there.is_ok_and(|metadata| !metadata.file_type().is_socket()) {
        return Err(ListenError::NotASocket { path: path.to_owned() });
    }
    let mode = listen.mode.unwrap_or(MODE_DEFAULT);
    let (socket, file) =
        bind_unix(path, mode, queue_max).map_err(|error| error_at(address.clone(), error))?;
    let socket = ListenerSocket::Unix(socket);
    Ok(Listener { socket, address, protocols: listen.allowed(), file: Some(file.into()) })
}

fn bind_unix(path: &Path, mode: Mode, queue_max: i32) -> io::Result<(UnixListener, SocketFile)> {
    let address = SockAddr::unix(path)?;
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    match socket.bind(&address) {
        Err(error) if error.kind() == ErrorKind::AddrInUse && is_left_behind(&address)? => {
            fs::remove_file(path)?;
            socket.bind(&address)?;
        }
        bound => bound?,
    }
    let file = SocketFile { path: path.to_owned(), id: id_of(path)? };
    // Nobody can connect before it listens, so nobody gets in under other permissions.
    fs::set_permissions(path, fs::Permissions::from_mode(mode.0))?;
    socket.listen(queue_max)?;
    Ok((socket.into(), file))
}

/// Whether the server that made the socket is gone, so that nobody accepts connections.
fn is_left_behind(address: &SockAddr) -> io::Result<bool> {
    let probe = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    // A server that is too busy to accept is still there.
    probe.set_nonblocking(true)?;
    let refused = probe.connect(address).err().map(|error| error.kind());
    Ok(refused == Some(ErrorKind::ConnectionRefused))
}

fn error_at(address: SocketAddress, source: io::Error) -> ListenError {
    match source.kind() {
        ErrorKind::AddrInUse => ListenError::InUse { address },
        _ => ListenError::Listen { address, source },
    }
}

/// The file of a UNIX socket, which is removed with its server.
pub(crate) struct SocketFile {
    path: PathBuf,
    /// Its device and inode, which tell it from one that another server put in its place.
    id: (u64, u64),
}

fn id_of(path: &Path) -> io::Result<(u64, u64)> {
    let metadata = fs::symlink_metadata(path)?;
    Ok((metadata.dev(), metadata.ino()))
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if id_of(&self.path).is_ok_and(|found| found == self.id) {
            // If it cannot be removed, the next server replaces it.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    fn open(listen: Listen, password: Option<&str>) -> Result<Vec<Listener>, ListenError> {
        super::open(&Config { listen: vec![listen], ..Config::default() }, password.is_some())
    }

    fn at(address: &str) -> Listen {
        address.parse().expect("an address")
    }

    fn unix(path: &Path) -> Listen {
        Address::Unix(path.to_owned()).into()
    }

    #[test]
    fn an_address_that_others_reach_needs_a_password() {
        let error = open(at("0.0.0.0:0"), None).err().expect("everyone reaches it");
        assert!(matches!(error, ListenError::OpenWithoutPassword { .. }), "{error}");
        assert!(open(at("0.0.0.0:0"), Some("sesame")).is_ok());
        assert!(open(at("127.0.0.1:0"), None).is_ok());
    }

    #[test]
    fn a_name_stands_for_all_addresses_of_its_host() {
        let listeners = open(at("localhost:0"), None).expect("it is looked up");
        assert!(!listeners.is_empty());
        for listener in &listeners {
            let SocketAddress::Tcp(address) = listener.address else { panic!("no TCP") };
            assert!(address.ip().is_loopback() && address.port() > 0, "{address}");
        }
        let error = open(at("no-such-host.invalid:1"), None).err().expect("nobody knows it");
        assert!(matches!(error, ListenError::Resolve { .. }), "{error}");
        assert!(error.to_string().contains("host of no-such-host.invalid:1"), "{error}");
    }

    #[test]
    fn a_socket_is_its_owners_unless_told_otherwise() {
        let directory = tempfile::tempdir().expect("a directory");
        for (mode, expected) in [(None, 0o600), (Some(Mode(0o666)), 0o666), (Some(Mode(0)), 0)] {
            let path = directory.path().join("t.sock");
            let _listener = open(Listen { mode, ..unix(&path) }, None).expect("it listens");
            let found = fs::metadata(&path).expect("a file").permissions().mode() & 0o777;
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn the_file_of_a_socket_goes_with_it() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("t.sock");
        let listeners = open(unix(&path), None).expect("it listens");
        UnixStream::connect(&path).expect("it can be connected to");
        drop(listeners);
        assert!(!path.exists());
        // Another server's file is left alone.
        let listeners = open(unix(&path), None).expect("it listens");
        fs::remove_file(&path).expect("a file");
        let other = std::os::unix::net::UnixListener::bind(&path).expect("the path is free");
        drop(listeners);
        UnixStream::connect(&path).expect("the other is still there");
        drop(other);
    }

    #[test]
    fn the_socket_of_a_dead_server_is_replaced_and_that_of_a_living_one_is_not() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("t.sock");
        drop(std::os::unix::net::UnixListener::bind(&path).expect("a socket"));
        assert!(path.exists(), "the standard library leaves the file");
        let _listeners = open(unix(&path), None).expect("nobody listens there");
        let error = open(unix(&path), None).err().expect("it is taken");
        assert!(matches!(error, ListenError::InUse { .. }), "{error}");
        UnixStream::connect(&path).expect("it still listens");
        assert!(path.exists());
    }

    #[test]
    fn a_file_that_is_no_socket_is_let_alone() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("t.sock");
        fs::write(&path, "precious").expect("a file");
        let error = open(unix(&path), None).err().expect("it is no socket");
        assert!(error.to_string().contains("is there, and is no socket"), "{error}");
        assert_eq!(fs::read(&path).expect("a file"), b"precious");
        let nowhere = directory.path().join("none/t.sock");
        let error = open(unix(&nowhere), None).err().expect("there is no such directory");
        assert!(error.to_string().starts_with("cannot listen on unix:"), "{error}");
    }
}
