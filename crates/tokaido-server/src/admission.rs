//! New connections: which protocol they speak, and how they are refused if there is no room.

use std::{io, rc::Rc, time::Duration};

use tokaido_store::DatabaseError;
use tokaido_wire::{kyoto::binary::MAGICS, tyrant::binary::MAGIC as TYRANT_MAGIC};
use tokio::io::AsyncReadExt;

use crate::{
    Mailbox,
    connection::{Connection, Phase},
    detect::{FIRST_LINE_BYTES_MAX, ProtocolName, ROWS, Verdict, detect, is_http},
    http::{self, Paths},
    kyoto::{self, Binary},
    memcached::{self, Memcached},
    placement::Placement,
    redis::{Redis, Session, show_address},
    stream,
    transport::Input,
    tyrant,
    worker::Worker,
};

const NO_ROOM: &str = "too many connections; close some, or raise limits.connections_max";

/// Serves a connection to its end. `allowed` are the protocols of its listener.
pub(crate) async fn serve(
    worker: &Rc<Worker>,
    connection: &Rc<Connection>,
    mut input: Input,
    allowed: &[ProtocolName],
) {
    let mut first = Vec::new();
    let peer = &connection.peer;
    match read_first_line(&mut input, allowed, &mut first).await {
        Ok(Some(Verdict::Serve(ProtocolName::Redis))) => {
            let placement = Placement::resp(worker);
            stream::serve(placement, connection, input, first, |mailbox| {
                redis(worker, connection, mailbox)
            })
            .await;
        }
        Ok(Some(Verdict::Serve(ProtocolName::Http))) => {
            http::serve(worker, connection, input, first, Paths::Own).await;
        }
        Ok(Some(Verdict::Serve(ProtocolName::Kyoto))) if is_binary(&first) => {
            let placement = Placement::kyoto(worker);
            let binary = Binary::new(&worker.service.shared);
            stream::serve(placement, connection, input, first, |_| binary).await;
        }
        Ok(Some(Verdict::Serve(ProtocolName::Kyoto))) => {
            http::serve(worker, connection, input, first, Paths::KyotoTycoon).await;
        }
        Ok(Some(Verdict::Serve(ProtocolName::Tyrant))) => {
            serve_tyrant(worker, connection, input, first).await;
        }
        Ok(Some(Verdict::Serve(ProtocolName::Memcached))) => match memcached(worker, connection) {
            Ok(memcached) => {
                let placement = Placement::memcached(worker);
                stream::serve(placement, connection, input, first, |_| memcached).await;
            }
            Err(error) => {
                say_last(connection, &memcached::refusal(&error.to_string(), &first)).await;
            }
        },
        Ok(Some(Verdict::Refuse(protocol))) => {
            tracing::debug!(%peer, protocol = protocol.name(), "the protocol is not allowed here");
            say_last(connection, &wrong_protocol(protocol, allowed, &first)).await;
        }
        Ok(Some(Verdict::Tls)) => {
            tracing::info!(%peer, "closed a connection that began with TLS, which is not spoken here");
        }
        Ok(None) if connection.expired().is_some() => {
            let limit_ms = worker.service.config.limits.first_line_ms;
            let reason = format!("no whole line came within {limit_ms} ms; closing");
            let message = refusal(allowed[0], "408 Request Timeout", &reason, &first);
            say_last(connection, &message).await;
        }
        // The client has disconnected.
        Ok(None) => {}
        Err(error) => tracing::debug!(%peer, %error, "a connection broke"),
    }
}

/// Whether a Kyoto Tycoon client speaks the binary protocol, and not HTTP.
fn is_binary(first: &[u8]) -> bool {
    first.first().is_some_and(|byte| MAGICS.contains(byte))
}

/// Serves a Tokyo Tyrant client, in one of its three protocols.
async fn serve_tyrant(
    worker: &Rc<Worker>,
    connection: &Rc<Connection>,
    input: Input,
    first: Vec<u8>,
) {
    let (placement, shared) = (Placement::tyrant(worker), &worker.service.shared);
    if first.first() == Some(&TYRANT_MAGIC) {
        let open = |mailbox| tyrant::Binary::new(shared, mailbox);
        stream::serve(placement, connection, input, first, open).await;
    } else if is_http(&first) {
        http::serve(worker, connection, input, first, Paths::TokyoTyrant).await;
    } else {
        let open = |mailbox| tyrant::Text::new(shared, mailbox);
        stream::serve(placement, connection, input, first, open).await;
    }
}

/// A new Redis session.
fn redis(worker: &Worker, connection: &Connection, mailbox: Mailbox) -> Redis {
    let peer = show_address(&connection.peer);
    let local = connection.local_address().as_ref().map(show_address).unwrap_or_default();
    let session = Session::new(&worker.service.shared, &peer, &local).reached_by(mailbox);
    Redis::new(session, &worker.service.config.limits)
}

/// A new session of the memcached protocol.
fn memcached(worker: &Worker, connection: &Connection) -> Result<Memcached, DatabaseError> {
    let peer = connection.peer.to_string();
    let local = connection.local_address().map(|address| address.to_string()).unwrap_or_default();
    let session = memcached::Session::new(&worker.service.shared, &peer, &local)?;
    Ok(Memcached::new(session, &worker.service.config.limits))
}

/// Tells a client, in its own protocol, that there is no room, and closes. If its first line,
/// which shows the protocol, takes longer than `time`, it is told in the first allowed protocol.
pub(crate) async fn refuse(
    connection: &Rc<Connection>,
    mut input: Input,
    allowed: &[ProtocolName],
    time: Duration,
) {
    let mut first = Vec::new();
    let read = tokio::time::timeout(time, read_first_line(&mut input, allowed, &mut first)).await;
    let protocol = match read {
        Ok(Ok(Some(Verdict::Serve(protocol) | Verdict::Refuse(protocol)))) => protocol,
        _ => allowed[0],
    };
    let message = refusal(protocol, "503 Service Unavailable", NO_ROOM, &first);
    say_last(connection, &message).await;
}

/// The reply to a client whose protocol is not allowed here.
fn wrong_protocol(protocol: ProtocolName, allowed: &[ProtocolName], first: &[u8]) -> Vec<u8> {
    let names: Vec<_> = allowed.iter().map(|protocol| protocol.name()).collect();
    let (names, name) = (names.join(" and "), protocol.name());
    let reason = format!("this address speaks {names}, not {name}; connect to one that does");
    refusal(protocol, "421 Misdirected Request", &reason, first)
}

/// The only reply on a connection that is not served, in its client's protocol. `reason` needs
/// no escaping in any protocol, and `first` is what has been received.
fn refusal(protocol: ProtocolName, http_status: &str, reason: &str, first: &[u8]) -> Vec<u8> {
    match protocol {
        ProtocolName::Redis => format!("-ERR {reason}\r\n").into(),
        ProtocolName::Http => http::raw_error(http_status, reason).into(),
        ProtocolName::Memcached => memcached::refusal(reason, first),
        ProtocolName::Kyoto if is_binary(first) => kyoto::refusal(),
        ProtocolName::Kyoto => http::raw_error(http_status, reason).into(),
        ProtocolName::Tyrant if first.first() == Some(&TYRANT_MAGIC) => tyrant::refusal(),
        ProtocolName::Tyrant if is_http(first) => http::raw_error(http_status, reason).into(),
        ProtocolName::Tyrant => format!("SERVER_ERROR {reason}\r\n").into(),
    }
}

/// Reads until the protocol is known; `None` at the end of input.
async fn read_first_line(
    input: &mut Input,
    allowed: &[ProtocolName],
    first: &mut Vec<u8>,
) -> io::Result<Option<Verdict<ProtocolName>>> {
    loop {
        if let Some(verdict) = detect(ROWS, allowed, first) {
            return Ok(Some(verdict));
        }
        // Lines are short; one that is longer than the limit is decided by then.
        first.reserve(4096.min(FIRST_LINE_BYTES_MAX));
        if input.read_buf(first).await? == 0 {
            return Ok(None);
        }
    }
}

/// Sends one short message, without waiting for room in the socket, and closes.
pub(crate) async fn say_last(connection: &Connection, message: &[u8]) {
    connection.enter(Phase::Reply);
    // A client that has left no room for this line sees only the end of the connection.
    let _ = connection.transport().try_write(message);
    connection.linger().await;
}
