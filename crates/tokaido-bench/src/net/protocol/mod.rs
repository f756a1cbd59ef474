//! The client sides of the protocols: operations to bytes, and bytes to answers. None does any I/O.

mod http;
mod kyoto;
mod memcached_binary;
mod memcached_meta;
mod memcached_text;
mod resp;
mod tyrant;

use std::{fmt, str::FromStr};

use super::operation::{Answer, Kind, Operation};

/// A protocol to speak with a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// The Redis protocol, version 2.
    Resp2,
    /// The Redis protocol, version 3.
    Resp3,
    /// The text protocol of memcached.
    Memcached,
    /// The meta commands of memcached.
    MemcachedMeta,
    /// The binary protocol of memcached.
    MemcachedBinary,
    /// HTTP/1.1: GET, PUT and DELETE of a path for each key.
    Http,
    /// The binary protocol of Kyoto Tycoon.
    KyotoTycoon,
    /// The binary protocol of Tokyo Tyrant.
    TokyoTyrant,
}

/// There is no protocol of that name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no protocol {name:?}; there are {}", names())]
pub struct UnknownProtocol {
    /// The name.
    pub name: String,
}

fn names() -> String {
    Protocol::ALL.map(Protocol::name).join(", ")
}

/// A server sent something that is not its protocol.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the server does not speak {protocol}: it sent {found:?}")]
pub struct ProtocolError {
    /// The protocol.
    pub protocol: Protocol,
    /// The start of what it sent.
    pub found: String,
}

/// Bytes of a reply that an error shows.
const SHOWN_LEN: usize = 80;

impl ProtocolError {
    fn of(protocol: Protocol, input: &[u8]) -> Self {
        let shown = &input[..input.len().min(SHOWN_LEN)];
        Self { protocol, found: String::from_utf8_lossy(shown).into_owned() }
    }
}

impl Protocol {
    /// All protocols.
    pub const ALL: [Self; 8] = [
        Self::Resp2,
        Self::Resp3,
        Self::Memcached,
        Self::MemcachedMeta,
        Self::MemcachedBinary,
        Self::Http,
        Self::KyotoTycoon,
        Self::TokyoTyrant,
    ];

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Resp2 => "resp2",
            Self::Resp3 => "resp3",
            Self::Memcached => "memcached",
            Self::MemcachedMeta => "memcached-meta",
            Self::MemcachedBinary => "memcached-binary",
            Self::Http => "http",
            Self::KyotoTycoon => "kyototycoon",
            Self::TokyoTyrant => "tokyotyrant",
        }
    }

    /// Whether it has this kind of operation.
    #[must_use]
    pub fn has(self, kind: Kind) -> bool {
        kind != Kind::Increment || !matches!(self, Self::Http | Self::KyotoTycoon)
    }

    /// Whether it has a way to send a password.
    #[must_use]
    pub fn has_password(self) -> bool {
        matches!(self, Self::Resp2 | Self::Resp3 | Self::Http)
    }

    /// The client side of a connection.
    pub(super) fn codec(self, options: &Options) -> Box<dyn Codec> {
        match self {
            Self::Resp2 => Box::new(resp::Resp::new(self, options)),
            Self::Resp3 => Box::new(resp::Resp::new(self, options)),
            Self::Memcached => Box::new(memcached_text::Text),
            Self::MemcachedMeta => Box::new(memcached_meta::Meta),
            Self::MemcachedBinary => Box::new(memcached_binary::Binary),
            Self::Http => Box::new(http::Http::new(options)),
            Self::KyotoTycoon => Box::new(kyoto::Binary),
            Self::TokyoTyrant => Box::new(tyrant::Binary),
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Protocol {
    type Err = UnknownProtocol;

    fn from_str(text: &str) -> Result<Self, UnknownProtocol> {
        let found = Self::ALL.into_iter().find(|protocol| protocol.name() == text);
        found.ok_or_else(|| UnknownProtocol { name: text.to_owned() })
    }
}

/// Options that some protocols need.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The password of the server.
    pub password: Option<String>,
    /// The path of a record over HTTP, with `{key}` in place of its key.
    pub path: String,
    /// The host that an HTTP request names.
    pub host: String,
    /// Whether an HTTP request asks the server to close the connection after it.
    pub close: bool,
}

/// A request that was sent and waits for its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) kind: Kind,
    /// The request's length in bytes.
    pub(super) len: usize,
}

/// The client side of a protocol.
pub(super) trait Codec: Send {
    /// The initial requests of a connection, if any, each of which gets one reply.
    fn greetings(&self) -> Vec<Vec<u8>> {
        Vec::new()
    }

    /// Appends a request.
    fn encode(&self, operation: &Operation<'_>, out: &mut Vec<u8>);

    /// Reads the answer to `sent` at the start of the input, and its length; `None` if it is incomplete.
    fn decode(&self, input: &[u8], sent: Sent) -> Result<Option<(usize, Answer)>, ProtocolError>;
}

/// The first line of the input without its end, and its length with the end.
fn line(input: &[u8]) -> Option<(&[u8], usize)> {
    let end = input.windows(2).position(|pair| pair == b"\r\n")?;
    Some((&input[..end], end + 2))
}

/// A decimal number that consists of digits only.
fn number(digits: &[u8]) -> Option<usize> {
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(digits).ok().filter(|_| is_number)?.parse().ok()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn encoded(codec: &dyn Codec, kind: Kind) -> Vec<u8> {
        let mut out = Vec::new();
        codec.encode(&Operation { kind, key: b"key", value: b"value" }, &mut out);
        out
    }

    /// A reply gives this answer, and none of its prefixes gives any.
    #[track_caller]
    pub(super) fn assert_answers(codec: &dyn Codec, kind: Kind, reply: &[u8], answer: Answer) {
        let sent = Sent { kind, len: 0 };
        for end in 0..reply.len() {
            assert_eq!(codec.decode(&reply[..end], sent), Ok(None), "{end}");
        }
        let behind = [reply, b"next"].concat();
        assert_eq!(codec.decode(&behind, sent), Ok(Some((reply.len(), answer))));
    }

    #[track_caller]
    pub(super) fn assert_refuses(codec: &dyn Codec, kind: Kind, reply: &[u8]) {
        assert!(codec.decode(reply, Sent { kind, len: 0 }).is_err());
    }

    #[test]
    fn protocols_have_names() {
        for protocol in Protocol::ALL {
            assert_eq!(protocol.name().parse(), Ok(protocol));
        }
        let error = "resp".parse::<Protocol>().unwrap_err().to_string();
        assert!(error.starts_with("there is no protocol \"resp\"; there are resp2, "), "{error}");
    }
}
