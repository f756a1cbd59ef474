//! Ports for servers that are started to be measured or tested.

use std::{
    hash::{BuildHasher, RandomState},
    io,
    net::{Ipv4Addr, TcpListener},
    ops::Range,
};

/// Ports that Linux does not assign to outgoing connections. A port that it does could be taken
/// before the server has it, and a client that probes it could connect to itself.
const PORTS: Range<u16> = 10_000..32_768;

/// Maximum number of attempts.
const TRIES: u64 = 1000;

/// A port of the loopback interface that was free a moment ago.
///
/// # Errors
/// If none was found.
pub fn free() -> io::Result<u16> {
    let chance = RandomState::new();
    let mut ports = (0..TRIES).map(|attempt| {
        PORTS.start + (chance.hash_one(attempt) % u64::from(PORTS.end - PORTS.start)) as u16
    });
    let is_free = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
    ports.find(is_free).ok_or_else(|| {
        io::Error::new(io::ErrorKind::AddrInUse, format!("no free port in {TRIES} of {PORTS:?}"))
    })
}
