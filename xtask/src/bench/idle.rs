//! The memory that a server has for a connection which does nothing: one that has set and got a
//! record, and waits.

use std::{
    io::{Read, Write},
    net::TcpStream,
    path::Path,
    time::Duration,
};

use tokaido_bench::{machine, statistics::Summary};

use super::{load::connect, peers::Peer};
use crate::{
    failure::{Failure, Outcome},
    markdown,
};

/// How the names of these rows begin.
pub(super) const NAME: &str = "memory of an idle connection";

const CONNECTIONS: usize = 2_000;

/// Samples of each server, each of a fresh one: what another has given back says nothing.
const ROUNDS: usize = 3;

/// How long they wait before the memory counts.
const REST: Duration = Duration::from_secs(2);

/// Longest reply to `requests`.
const REPLIES_LEN_MAX: usize = 4 << 10;

/// One kind of client, and a server that it talks to.
struct Kind {
    name: &'static str,
    peer: Peer,
    requests: &'static [u8],
    /// The last bytes of all replies, and of nothing before.
    replies_end: &'static [u8],
}

const KINDS: [Kind; 10] = [
    Kind {
        name: "Redis protocol",
        peer: Peer::TokaidoByRedis,
        requests: REDIS_REQUESTS,
        replies_end: b"value\r\n",
    },
    Kind {
        name: "Redis protocol",
        peer: Peer::Redis,
        requests: REDIS_REQUESTS,
        replies_end: b"value\r\n",
    },
    Kind {
        name: "memcached protocol",
        peer: Peer::TokaidoCache,
        requests: MEMCACHED_REQUESTS,
        replies_end: b"END\r\n",
    },
    Kind {
        name: "memcached protocol",
        peer: Peer::Memcached,
        requests: MEMCACHED_REQUESTS,
        replies_end: b"END\r\n",
    },
    Kind {
        name: "Kyoto Tycoon, binary",
        peer: Peer::TokaidoByKyoto,
        requests: b"\xb8\0\0\0\0\0\0\0\x01\0\0\0\0\0\x03\0\0\0\x05\x7f\xff\xff\xff\xff\xff\xff\xff\
                    keyvalue\xba\0\0\0\0\0\0\0\x01\0\0\0\0\0\x03key",
        replies_end: b"keyvalue",
    },
    Kind {
        name: "Kyoto Tycoon, HTTP",
        peer: Peer::TokaidoByKyoto,
        requests: b"POST /rpc/set HTTP/1.1\r\nhost: localhost\r\ncontent-type: \
                    text/tab-separated-values\r\ncontent-length: 20\r\n\r\nkey\tkey\nvalue\tvalue\n\
                    POST /rpc/get HTTP/1.1\r\nhost: localhost\r\ncontent-type: \
                    text/tab-separated-values\r\ncontent-length: 8\r\n\r\nkey\tkey\n",
        replies_end: b"value\tvalue\n",
    },
    Kind {
        name: "Tokyo Tyrant",
        peer: Peer::TokaidoByTyrant,
        requests: b"\xc8\x10\0\0\0\x03\0\0\0\x05keyvalue\xc8\x30\0\0\0\x03key",
        replies_end: b"value",
    },
    Kind {
        name: "HTTP",
        peer: Peer::Tokaido,
        requests: b"PUT /v1/db/main/key HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\n\r\n\
                    valueGET /v1/db/main/key HTTP/1.1\r\nhost: localhost\r\n\r\n",
        replies_end: b"value",
    },
    Kind {
        name: "HTTP, hello world",
        peer: Peer::Tokaido,
        requests: HELLO_REQUEST,
        replies_end: b"hello, world\n",
    },
    Kind {
        name: "HTTP, hello world",
        peer: Peer::Nginx,
        requests: HELLO_REQUEST,
        // nginx does not know the length before.
        replies_end: b"0\r\n\r\n",
    },
];

const REDIS_REQUESTS: &[u8] = b"*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$5\r\nvalue\r\n\
                                *2\r\n$3\r\nGET\r\n$3\r\nkey\r\n";

const MEMCACHED_REQUESTS: &[u8] = b"set key 0 0 5\r\nvalue\r\nget key\r\n";

const HELLO_REQUEST: &[u8] = b"GET /bench/hello HTTP/1.1\r\nhost: localhost\r\n\r\n";

/// Measures all of them and gives their table.
pub(super) fn run(tokaido: &Path) -> Outcome<String> {
    let mut rows = Vec::new();
    for kind in &KINDS {
        println!("bench: {NAME}, {}, {}", kind.name, kind.peer.name());
        let cell = if kind.peer.is_installed() {
            let samples: Outcome<Vec<f64>> = (0..ROUNDS).map(|_| sample(kind, tokaido)).collect();
            Summary::of(&samples?).map_or_else(
                || "no figure".to_owned(),
                |bytes| format!("{:.1} ({:.0} %)", bytes.median / 1024.0, bytes.spread() * 100.0),
            )
        } else {
            "not installed".to_owned()
        };
        rows.push(vec![kind.name.to_owned(), kind.peer.name().to_owned(), cell]);
    }
    Ok(markdown::table(&[NAME, "server", "KiB (spread)"], &rows))
}

/// Bytes for each connection.
fn sample(kind: &Kind, tokaido: &Path) -> Outcome<f64> {
    let server = kind.peer.start(tokaido)?;
    let memory = || {
        machine::memory(server.process())
            .ok_or_else(|| Failure::new("the system does not tell a server's memory"))
    };
    // The first one fills what all of them share.
    talk(kind, &connect(server.port())?)?;
    std::thread::sleep(REST);
    let before = memory()?;
    let mut idle = Vec::new();
    for _ in 0..CONNECTIONS {
        let stream = connect(server.port())?;
        talk(kind, &stream)?;
        idle.push(stream);
    }
    std::thread::sleep(REST);
    let after = memory()?;
    Ok(after.saturating_sub(before) as f64 / CONNECTIONS as f64)
}

/// Sends the requests and takes the replies.
fn talk(kind: &Kind, mut stream: &TcpStream) -> Outcome {
    stream.write_all(kind.requests).map_err(Failure::of("cannot send"))?;
    let mut replies = Vec::new();
    let mut part = [0; REPLIES_LEN_MAX];
    while !replies.ends_with(kind.replies_end) {
        let len = stream.read(&mut part).map_err(Failure::of("a reply has not come"))?;
        replies.extend_from_slice(&part[..len]);
        if len == 0 || replies.len() > REPLIES_LEN_MAX {
            let said = String::from_utf8_lossy(&replies).into_owned();
            return Err(Failure::new(format!("{} was answered with {said:?}", kind.name)));
        }
    }
    Ok(())
}
