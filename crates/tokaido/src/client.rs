//! A blocking client of the Redis protocol.

use std::{
    io::{self, Read, Write},
    net::{Shutdown, SocketAddr, ToSocketAddrs},
    time::{Duration, Instant},
};

use tokaido_script::Interrupt;
use tokaido_server::{Address, PORT_DEFAULT};
use tokaido_wire::resp::{ProtocolError, Reply, ReplyDecoder, encode_command};

use crate::{
    error::{EXIT_FAILED, EXIT_INTERRUPTED, EXIT_UNREACHABLE, EXIT_USAGE},
    stream::Stream,
};

/// How long establishing a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long the server may be silent while a reply is due.
const REPLY_TIMEOUT: Duration = Duration::from_secs(120);

/// How often an interruptible client checks for an interrupt while it waits for a reply.
const INTERRUPT_POLL: Duration = Duration::from_millis(50);

/// Size of a read from the socket in bytes.
const READ_LEN: usize = 64 << 10;

/// A server, and the password that it expects first.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    address: Address,
    password: Option<String>,
}

/// Talking to a server failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    #[error(
        "{0:?} is no address; write HOST:PORT, as in 127.0.0.1:{PORT_DEFAULT}, or unix:PATH for a UNIX socket"
    )]
    Address(String),
    #[error("cannot find the host of {server}: {source}")]
    Resolve { server: String, source: io::Error },
    #[error(
        "cannot connect to {server}: {source}; is a server running there? `tokaido serve` starts one, and --dir opens a store without one"
    )]
    Connect { server: String, source: io::Error },
    #[error("{server} wants a password; give --password, or set TOKAIDO_PASSWORD")]
    NoPassword { server: String },
    #[error("{server} does not take this password; check --password and TOKAIDO_PASSWORD")]
    WrongPassword { server: String },
    #[error("{server} does not speak the Redis protocol ({source}); is it a Tokaido server?")]
    Protocol { server: String, source: ProtocolError },
    #[error("{server} closed the connection; look at its log")]
    Closed { server: String },
    #[error("{server} has not answered for {} s", REPLY_TIMEOUT.as_secs())]
    Timeout { server: String },
    #[error("the connection to {server} broke: {source}")]
    Io { server: String, source: io::Error },
    #[error("the server says: {message}")]
    Refused { message: String },
    #[error(
        "{server} answered {command} with something else than expected; is it a Tokaido server?"
    )]
    Unexpected { server: String, command: &'static str },
    #[error("interrupted; the server may have run the command all the same")]
    Interrupted,
}

impl ClientError {
    /// The exit code of a command that ends with this error.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Address(_) => EXIT_USAGE,
            // The server answered.
            Self::Refused { .. } | Self::NoPassword { .. } | Self::WrongPassword { .. } => {
                EXIT_FAILED
            }
            Self::Interrupted => EXIT_INTERRUPTED,
            _ => EXIT_UNREACHABLE,
        }
    }
}

impl Server {
    /// Reads `HOST:PORT`, `HOST`, `:PORT` or `unix:PATH`; missing parts have their defaults.
    pub(crate) fn new(
        address: Option<&str>,
        password: Option<String>,
    ) -> Result<Self, ClientError> {
        let text = address.unwrap_or_default();
        let bad = || ClientError::Address(text.to_owned());
        if text.starts_with("unix:") {
            return Ok(Self { address: text.parse().map_err(|_| bad())?, password });
        }
        let is_bare_v6 = text.parse::<std::net::Ipv6Addr>().is_ok();
        let (host, port) = match text.rsplit_once(':') {
            // The last colon of a v6 address belongs to the host.
            Some((_, tail)) if is_bare_v6 || tail.ends_with(']') => (text, PORT_DEFAULT),
            Some((host, port)) => (host, port.parse().map_err(|_| bad())?),
            None => (text, PORT_DEFAULT),
        };
        let host = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
        if host.contains(['/', ' ', '@']) || port == 0 {
            return Err(bad());
        }
        let host = if host.is_empty() { "127.0.0.1" } else { host };
        Ok(Self { address: Address::Tcp { host: host.to_owned(), port }, password })
    }

    pub(crate) fn password(&self) -> Option<&str> {
        self.password.as_deref()
    }

    /// Opens a connection.
    pub(crate) fn open(&self) -> Result<Stream, ClientError> {
        let connected = match &self.address {
            Address::Unix(path) => Stream::connect_unix(path),
            Address::Tcp { host, port } => {
                let addresses = (host.as_str(), *port)
                    .to_socket_addrs()
                    .map_err(|source| ClientError::Resolve { server: self.to_string(), source })?;
                connect_to_any(addresses)
            }
        };
        let stream = connected
            .map_err(|source| ClientError::Connect { server: self.to_string(), source })?;
        let prepared = stream.prepare(REPLY_TIMEOUT);
        prepared.map_err(|source| ClientError::Io { server: self.to_string(), source })?;
        Ok(stream)
    }

    /// The error that a failed read or write means.
    pub(crate) fn io_error(&self, source: io::Error) -> ClientError {
        let server = self.to_string();
        match source.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => ClientError::Timeout { server },
            io::ErrorKind::UnexpectedEof
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::BrokenPipe => ClientError::Closed { server },
            _ => ClientError::Io { server, source },
        }
    }
}

impl std::fmt::Display for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.address.fmt(f)
    }
}

/// Connects to the first of a host's addresses that accepts a connection.
fn connect_to_any(addresses: impl Iterator<Item = SocketAddr>) -> io::Result<Stream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in addresses {
        match Stream::connect_tcp(&address, CONNECT_TIMEOUT) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// A connection to a server that is known to speak the protocol.
pub(crate) struct Client {
    server: Server,
    stream: Stream,
    decoder: ReplyDecoder,
    /// Received bytes; those before `start` have been decoded.
    input: Vec<u8>,
    start: usize,
    interrupt: Option<Interrupt>,
    /// The position in the stream of replies is lost.
    is_out_of_step: bool,
}

impl Client {
    /// Connects, authenticates if there is a password, and sends PING, so that a wrong port or
    /// password is reported here and not at the first command.
    pub(crate) fn connect(server: &Server) -> Result<Self, ClientError> {
        Self::connect_with(server, None)
    }

    /// The same, but `interrupt` ends waiting for a reply, now and later.
    pub(crate) fn connect_interruptible(
        server: &Server,
        interrupt: Interrupt,
    ) -> Result<Self, ClientError> {
        Self::connect_with(server, Some(interrupt))
    }

    fn connect_with(server: &Server, interrupt: Option<Interrupt>) -> Result<Self, ClientError> {
        let stream = server.open()?;
        if interrupt.is_some() {
            let set = stream.set_read_timeout(INTERRUPT_POLL);
            set.map_err(|error| server.io_error(error))?;
        }
        let mut client = Self {
            server: server.clone(),
            stream,
            decoder: ReplyDecoder::new(),
            input: Vec::new(),
            start: 0,
            interrupt,
            is_out_of_step: false,
        };
        if let Some(password) = server.password() {
            client.call(&["AUTH", password]).map_err(|error| match error {
                ClientError::Refused { message } if message.starts_with("WRONGPASS") => {
                    ClientError::WrongPassword { server: server.to_string() }
                }
                error => error,
            })?;
        }
        match client.call(&["PING"])? {
            Reply::Simple(_) => Ok(client),
            _ => Err(ClientError::Unexpected { server: server.to_string(), command: "PING" }),
        }
    }

    pub(crate) fn server(&self) -> &Server {
        &self.server
    }

    /// Whether a [`call`](Self::call) failed for any reason other than a refusal by the server. The
    /// connection can then no longer be used.
    pub(crate) fn is_out_of_step(&self) -> bool {
        self.is_out_of_step
    }

    fn is_interrupted(&self) -> bool {
        self.interrupt.as_ref().is_some_and(Interrupt::is_raised)
    }

    /// Whether to retry a read that returned nothing.
    fn reads_again(&self, error: &io::Error, since: Instant) -> bool {
        match error.kind() {
            io::ErrorKind::Interrupted => !self.is_interrupted(),
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                let is_poll = self.interrupt.is_some() && since.elapsed() < REPLY_TIMEOUT;
                is_poll && !self.is_interrupted()
            }
            _ => false,
        }
    }

    /// Sends one command and returns its reply; an error reply is an error.
    pub(crate) fn call(&mut self, command: &[impl AsRef<[u8]>]) -> Result<Reply, ClientError> {
        self.call_raw(command).and_then(|reply| self.accept(reply))
    }

    /// Sends one command and returns its reply, even if it is an error.
    pub(crate) fn call_raw(&mut self, command: &[impl AsRef<[u8]>]) -> Result<Reply, ClientError> {
        let mut request = Vec::new();
        encode_command(&mut request, command);
        let sent = self.stream.write_all(&request).map_err(|error| self.server.io_error(error));
        let reply = sent.and_then(|()| self.read_reply());
        self.is_out_of_step |= reply.is_err();
        reply
    }

    /// Sends `count` commands at once, and passes each reply, in order, to `take`. The first error
    /// reply ends it.
    ///
    /// A separate thread does the sending: a server whose replies are not read stops reading, and
    /// both sides would wait for each other.
    pub(crate) fn pipeline<E: From<ClientError>>(
        &mut self,
        requests: &[u8],
        count: usize,
        mut take: impl FnMut(usize, Reply) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut stream = self.stream.try_clone().map_err(|error| self.server.io_error(error))?;
        std::thread::scope(|scope| {
            scope.spawn(move || {
                // A failure shows on the reading side as well, where it is reported.
                let _ = stream.write_all(requests);
            });
            let taken = (0..count).try_for_each(|index| {
                let reply = self.read_reply()?;
                take(index, self.accept(reply)?)
            });
            if taken.is_err() {
                // Ends the sender, which may be waiting for the server to continue reading.
                let _ = self.stream.shutdown(Shutdown::Both);
            }
            taken
        })
    }

    /// The error for an unexpected reply.
    pub(crate) fn unexpected(&self, command: &'static str) -> ClientError {
        ClientError::Unexpected { server: self.server.to_string(), command }
    }

    fn accept(&self, reply: Reply) -> Result<Reply, ClientError> {
        match reply {
            Reply::Error(message) if message.starts_with("NOAUTH") => {
                Err(ClientError::NoPassword { server: self.server.to_string() })
            }
            Reply::Error(message) => Err(ClientError::Refused { message }),
            reply => Ok(reply),
        }
    }

    fn read_reply(&mut self) -> Result<Reply, ClientError> {
        loop {
            let decoded = self.decoder.decode(&self.input[self.start..]).map_err(|source| {
                ClientError::Protocol { server: self.server.to_string(), source }
            })?;
            if let Some((reply, len)) = decoded {
                self.start += len;
                if !matches!(reply, Reply::Push(_)) {
                    return Ok(reply);
                }
                continue;
            }
            self.input.drain(..self.start);
            self.start = 0;
            self.receive()?;
        }
    }

    fn receive(&mut self) -> Result<(), ClientError> {
        let len = self.input.len();
        self.input.resize(len + READ_LEN, 0);
        let since = Instant::now();
        let read = loop {
            match self.stream.read(&mut self.input[len..]) {
                Err(error) if self.reads_again(&error, since) => {}
                read => break read,
            }
        };
        self.input.truncate(len + read.as_ref().map_or(0, |&read| read));
        match read {
            // Even in the middle of a long reply.
            _ if self.is_interrupted() => Err(ClientError::Interrupted),
            Ok(0) => Err(ClientError::Closed { server: self.server.to_string() }),
            Ok(_) => Ok(()),
            Err(error) => Err(self.server.io_error(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_with_their_defaults() {
        let shown = |text| Server::new(Some(text), None).map(|server| server.to_string());
        for (text, address) in [
            ("", "127.0.0.1:7653"),
            ("db.example", "db.example:7653"),
            ("db.example:1", "db.example:1"),
            (":1", "127.0.0.1:1"),
            ("::1", "[::1]:7653"),
            ("[::1]", "[::1]:7653"),
            ("[::1]:65535", "[::1]:65535"),
            ("unix:/run/tokaido.sock", "unix:/run/tokaido.sock"),
        ] {
            assert_eq!(shown(text).unwrap(), address, "{text}");
        }
        for text in ["a:b", "a:", "a:0", "a:65536", "http://a:1", "a b:1", "redis://a", "unix:"] {
            assert!(matches!(shown(text), Err(ClientError::Address(_))), "{text}");
        }
    }
}
