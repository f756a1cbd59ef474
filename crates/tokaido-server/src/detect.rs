//! Detects which protocol a connection speaks, by its first bytes.
//!
//! [`ROWS`] says what each protocol begins with. These rules decide, in this order:
//!
//! 1. The first byte, where it can only be one protocol's.
//! 2. The first line, where it can only be one protocol's: an HTTP request line ends in its version, and
//!    `set k 0 0 5` or `version` are memcached commands that Redis would refuse.
//! 3. A line that could be several protocols' (`get k`, `touch k 1` and `quit` are inline commands of
//!    Redis and memcached commands) belongs to the first of them in the listener's order, which is that of its
//!    `protocols`, or of [`ROWS`] if it names none.
//! 4. Anything else belongs to the listener's first protocol, which answers with an error.
//!
//! Empty lines before all this decide nothing: HTTP lets a client send some.
//!
//! Only a protocol that the listener allows is served. One that it does not allow is recognized by
//! the first two rules only, so a port for one protocol never takes an ambiguous line for another.

use serde::{Deserialize, Serialize};
use tokaido_wire::{
    kyoto,
    memcached::{self, Mode, Verb},
    tyrant,
};

/// Maximum number of bytes of a first line that are looked at: as many as an unauthenticated client
/// may send, unless that limit is set otherwise.
pub(crate) const FIRST_LINE_BYTES_MAX: usize = 16 << 10;

/// Maximum number of words after a memcached command that are looked at.
const MEMCACHED_WORDS_MAX: usize = 4;

/// A TLS handshake begins with these, whatever its version.
const TLS_HANDSHAKE: [u8; 2] = [0x16, 0x03];

/// A protocol, by its name in the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProtocolName {
    /// The Redis protocol, as arrays of bulk strings or as lines.
    Redis,
    /// HTTP/1.0 and 1.1.
    Http,
    /// The memcached protocol.
    Memcached,
    /// Kyoto Tycoon: HTTP for its procedures and records, and its binary protocol.
    Kyoto,
    /// Tokyo Tyrant: its binary protocol, and memcached lines and HTTP as far as it understands them.
    Tyrant,
}

impl ProtocolName {
    /// The name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Redis => "redis",
            Self::Http => "http",
            Self::Memcached => "memcached",
            Self::Kyoto => "kyoto",
            Self::Tyrant => "tyrant",
        }
    }
}

/// What a protocol begins with.
pub(crate) struct Row<P> {
    pub(crate) protocol: P,
    /// The first bytes that no other protocol uses.
    pub(crate) first_bytes: &'static [u8],
    /// Whether a first line, without its line feed, is one of this protocol's.
    pub(crate) first_line: fn(&[u8]) -> Claim,
}

/// A protocol's judgement of a first line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// The line does not belong to the protocol.
    No,
    /// The line may belong to the protocol.
    Possible,
    /// The line belongs to the protocol.
    Certain,
}

/// The protocols that are served, in the order that applies where a listener names none.
pub(crate) const ROWS: &[Row<ProtocolName>] = &[
    // Any line may be an inline command. Garbage gets an error that a person can read.
    Row { protocol: ProtocolName::Redis, first_bytes: b"*", first_line: |_| Claim::Possible },
    Row { protocol: ProtocolName::Http, first_bytes: b"", first_line: http_request_line },
    Row {
        protocol: ProtocolName::Memcached,
        first_bytes: &[memcached::binary::REQUEST_MAGIC],
        first_line: memcached_line,
    },
    // Where one port has all protocols, plain HTTP comes first; it knows Kyoto Tycoon's procedures as well.
    Row {
        protocol: ProtocolName::Kyoto,
        first_bytes: kyoto::binary::MAGICS,
        first_line: http_request_line,
    },
    // Lines that others of these speak, too, are theirs, unless an address is for Tokyo Tyrant alone.
    Row {
        protocol: ProtocolName::Tyrant,
        first_bytes: &[tyrant::binary::MAGIC],
        first_line: tyrant_line,
    },
];

/// What to do with a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict<P> {
    Serve(P),
    /// The client speaks a protocol that is not allowed here.
    Refuse(P),
    /// The client wants to speak TLS.
    Tls,
}

/// What the first bytes of a connection show, or `None` if they do not show it yet. `allowed` has
/// the protocols that the listener allows, in its order.
pub(crate) fn detect<P: Copy + PartialEq>(
    rows: &[Row<P>],
    allowed: &[P],
    input: &[u8],
) -> Option<Verdict<P>> {
    let is_allowed = |row: &&Row<P>| allowed.contains(&row.protocol);
    let verdict = |row: &Row<P>| {
        if is_allowed(&row) { Verdict::Serve(row.protocol) } else { Verdict::Refuse(row.protocol) }
    };
    let input = skip_empty_lines(input);
    let first_byte = input.first()?;
    if let Some(row) = rows.iter().find(|row| row.first_bytes.contains(first_byte)) {
        return Some(verdict(row));
    }
    if *first_byte == TLS_HANDSHAKE[0] && *input.get(1)? == TLS_HANDSHAKE[1] {
        return Some(Verdict::Tls);
    }
    let line = first_line(input)?;
    let row_of = |protocol: &P| rows.iter().find(|row| row.protocol == *protocol);
    let in_order = || allowed.iter().filter_map(row_of);
    let others = || rows.iter().filter(|row| !is_allowed(row));
    let claims = |claim| move |row: &&Row<P>| (row.first_line)(line) == claim;
    in_order()
        .find(claims(Claim::Certain))
        .or_else(|| others().find(claims(Claim::Certain)))
        .or_else(|| in_order().find(claims(Claim::Possible)))
        .or_else(|| in_order().next())
        .map(verdict)
}

/// The input after its empty lines. If there is nothing else within the first line's limit, the
/// empty lines themselves are judged.
fn skip_empty_lines(input: &[u8]) -> &[u8] {
    let mut rest = input;
    while let [b'\n', after @ ..] | [b'\r', b'\n', after @ ..] = rest {
        rest = after;
    }
    let is_too_much = input.len() - rest.len() >= FIRST_LINE_BYTES_MAX;
    if is_too_much { input } else { rest }
}

/// The first line without its line feed. One that is too long is cut off.
fn first_line(input: &[u8]) -> Option<&[u8]> {
    let window = &input[..input.len().min(FIRST_LINE_BYTES_MAX)];
    match memchr::memchr(b'\n', window) {
        Some(end) => Some(&window[..end]),
        None => (window.len() == FIRST_LINE_BYTES_MAX).then_some(window),
    }
}

/// Only HTTP has a first line that ends in its version, whichever that is. HTTP reports what is
/// wrong with the line: as an inline command, it would make its headers commands, too. In a line
/// that is too long to be seen whole, a method and a path are enough: no key is that long.
fn http_request_line(line: &[u8]) -> Claim {
    if line.len() == FIRST_LINE_BYTES_MAX {
        let target =
            line.iter().position(|byte| !byte.is_ascii_uppercase()).map(|end| &line[end..]);
        let is_path = target.is_some_and(|target| {
            target.starts_with(b" /") && memchr::memchr(b' ', &target[1..]).is_none()
        });
        return if is_path { Claim::Certain } else { Claim::No };
    }
    let line = line.trim_ascii_end();
    let last = memchr::memrchr(b' ', line).map(|space| &line[space + 1..]);
    match last.and_then(|last| last.split_at_checked(b"HTTP/".len())) {
        Some((name, [b'0'..=b'9', ..])) if name.eq_ignore_ascii_case(b"HTTP/") => Claim::Certain,
        _ => Claim::No,
    }
}

/// A memcached command is memcached's own, unless it could be an inline command of Redis.
fn memcached_line(line: &[u8]) -> Claim {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let mut words = line.split(|&byte| byte == b' ').filter(|word| !word.is_empty());
    let Some(command) = words.next().and_then(memcached::find) else { return Claim::No };
    let arguments: Vec<&[u8]> = words.take(MEMCACHED_WORDS_MAX).collect();
    let is_number = |word: &&[u8]| word.iter().all(|byte| byte.is_ascii_digit() || *byte == b'-');
    let is_ours = match command.verb {
        Verb::Quit | Verb::Touch => false,
        // Redis takes one key.
        Verb::Get | Verb::Incr | Verb::Decr => arguments.len() > 1,
        Verb::Store(Mode::Set | Mode::Append) => {
            arguments.len() >= 4 && arguments[1..4].iter().all(is_number)
        }
        _ => true,
    };
    match http_request_line(line) {
        Claim::No if is_ours => Claim::Certain,
        Claim::No => Claim::Possible,
        _ => Claim::No,
    }
}

/// Tokyo Tyrant understands the beginnings of HTTP requests, and some memcached lines.
fn tyrant_line(line: &[u8]) -> Claim {
    match http_request_line(line) {
        Claim::No if tyrant::text::is_command(line) => memcached_line(line),
        claim => claim,
    }
}

/// Whether a client that may speak several protocols speaks HTTP, judged by its first line.
pub(crate) fn is_http(input: &[u8]) -> bool {
    first_line(skip_empty_lines(input)).is_some_and(|line| http_request_line(line) != Claim::No)
}

#[cfg(test)]
mod tests;
