//! A blocking client of the Redis protocol.

use std::{
    io::{self, Read, Write},
    net::{Shutdown, TcpStream, ToSocketAddrs},
    time::Duration,
};

use tokaido_server::PORT_DEFAULT;
use tokaido_wire::resp::{ProtocolError, Reply, ReplyDecoder, encode_command};

/// How long a connection may take to come about.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long the server may be silent while a reply is due.
const REPLY_TIMEOUT: Duration = Duration::from_secs(120);

/// Bytes taken from the socket at once.
const READ_LEN: usize = 64 << 10;

/// A server, and what it wants to be told before it listens.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    host: String,
    port: u16,
    password: Option<String>,
}

/// Talking to a server failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    #[error("{0:?} is no address; write HOST:PORT, as in 127.0.0.1:{PORT_DEFAULT}")]
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
}

impl Server {
    /// Reads `HOST:PORT`, `HOST` or `:PORT`; what is left out is the default's.
    pub(crate) fn new(
        address: Option<&str>,
        password: Option<String>,
    ) -> Result<Self, ClientError> {
        let text = address.unwrap_or_default();
        let bad = || ClientError::Address(text.to_owned());
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
        Ok(Self { host: host.to_owned(), port, password })
    }

    pub(crate) fn password(&self) -> Option<&str> {
        self.password.as_deref()
    }

    /// Opens a connection.
    pub(crate) fn open(&self) -> Result<TcpStream, ClientError> {
        let addresses = (self.host.as_str(), self.port)
            .to_socket_addrs()
            .map_err(|source| ClientError::Resolve { server: self.to_string(), source })?;
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
        for address in addresses {
            match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
                Ok(stream) => {
                    let set = stream
                        .set_nodelay(true)
                        .and_then(|()| stream.set_read_timeout(Some(REPLY_TIMEOUT)))
                        .and_then(|()| stream.set_write_timeout(Some(REPLY_TIMEOUT)));
                    return set
                        .map(|()| stream)
                        .map_err(|source| ClientError::Io { server: self.to_string(), source });
                }
                Err(error) => last = error,
            }
        }
        Err(ClientError::Connect { server: self.to_string(), source: last })
    }

    /// What a failed read or write means.
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
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// A connection that has proved to speak the protocol.
pub(crate) struct Client {
    server: Server,
    stream: TcpStream,
    decoder: ReplyDecoder,
    /// Received bytes; those before `start` have been decoded.
    input: Vec<u8>,
    start: usize,
}

impl Client {
    /// Connects, gives the password if there is one, and waits for a sign of life, so that a wrong
    /// port or password is told here and not at the first command.
    pub(crate) fn connect(server: &Server) -> Result<Self, ClientError> {
        let stream = server.open()?;
        let mut client = Self {
            server: server.clone(),
            stream,
            decoder: ReplyDecoder::new(),
            input: Vec::new(),
            start: 0,
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

    /// Sends one command and takes its reply; an error reply is an error.
    pub(crate) fn call(&mut self, command: &[impl AsRef<[u8]>]) -> Result<Reply, ClientError> {
        self.call_raw(command).and_then(|reply| self.accept(reply))
    }

    /// Sends one command and takes its reply, even if it is an error.
    pub(crate) fn call_raw(&mut self, command: &[impl AsRef<[u8]>]) -> Result<Reply, ClientError> {
        let mut request = Vec::new();
        encode_command(&mut request, command);
        self.stream.write_all(&request).map_err(|error| self.server.io_error(error))?;
        self.read_reply()
    }

    /// Sends `count` commands at once and gives each reply, in order, to `take`. An error reply
    /// ends it.
    ///
    /// Sending has a thread of its own: a server whose replies are not taken stops reading, and
    /// would wait for us while we waited for it.
    pub(crate) fn pipeline<E: From<ClientError>>(
        &mut self,
        requests: &[u8],
        count: usize,
        mut take: impl FnMut(usize, Reply) -> Result<(), E>,
    ) -> Result<(), E> {
        let stream = self.stream.try_clone().map_err(|error| self.server.io_error(error))?;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // A failure shows on the reading side as well, where it is reported.
                let _ = (&stream).write_all(requests);
            });
            let taken = (0..count).try_for_each(|index| {
                let reply = self.read_reply()?;
                take(index, self.accept(reply)?)
            });
            if taken.is_err() {
                // Ends the sender, which may be waiting for the server to read on.
                let _ = self.stream.shutdown(Shutdown::Both);
            }
            taken
        })
    }

    /// The error that an unexpected reply is.
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
        let read = loop {
            match self.stream.read(&mut self.input[len..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read,
            }
        };
        self.input.truncate(len + read.as_ref().map_or(0, |&read| read));
        match read {
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
        ] {
            assert_eq!(shown(text).unwrap(), address, "{text}");
        }
        for text in ["a:b", "a:", "a:0", "a:65536", "http://a:1", "a b:1", "redis://a"] {
            assert!(matches!(shown(text), Err(ClientError::Address(_))), "{text}");
        }
    }
}
