//! A new connection: which protocol it speaks, and what it is told when there is no room for it.

use std::{io, rc::Rc, time::Duration};

use tokio::{io::AsyncReadExt, net::tcp::OwnedReadHalf};

use crate::{
    detect::{FIRST_LINE_BYTES_MAX, Protocol, detect},
    http,
    link::{Link, Phase},
    resp_connection,
    worker::Worker,
};

const REFUSAL: &str = "too many connections; close some, or raise limits.connections_max";

/// Serves a connection to its end.
pub(crate) async fn serve(worker: &Rc<Worker>, link: &Rc<Link>, mut input: OwnedReadHalf) {
    let mut first = Vec::new();
    match read_first_line(&mut input, &mut first).await {
        Ok(Some(Protocol::Resp)) => resp_connection::serve(worker, link, input, first).await,
        Ok(Some(Protocol::Http)) => http::serve(worker, link, input, first).await,
        Ok(None) if link.expired().is_some() => {
            let limit_ms = worker.service.config.limits.first_line_ms;
            let message = format!("-ERR no whole line came within {limit_ms} ms; closing\r\n");
            say_last(link, message.as_bytes()).await;
        }
        // The client went away again.
        Ok(None) => {}
        Err(error) => tracing::debug!(peer = %link.peer, %error, "a connection broke"),
    }
}

/// Tells a client that there is no room, in its own protocol. `time` is how long it may take for
/// its first line, which tells that; then it is closed unheard.
pub(crate) async fn refuse(link: &Rc<Link>, mut input: OwnedReadHalf, time: Duration) {
    let mut first = Vec::new();
    let read = tokio::time::timeout(time, read_first_line(&mut input, &mut first)).await;
    let message = match read {
        Ok(Ok(Some(Protocol::Http))) => http::raw_error("503 Service Unavailable", REFUSAL),
        _ => format!("-ERR {REFUSAL}\r\n"),
    };
    say_last(link, message.as_bytes()).await;
}

/// Reads until the protocol is known; `None` at the end of input.
async fn read_first_line(
    input: &mut OwnedReadHalf,
    first: &mut Vec<u8>,
) -> io::Result<Option<Protocol>> {
    loop {
        if let Some(protocol) = detect(first) {
            return Ok(Some(protocol));
        }
        // Lines are short; what is longer than the limit is decided by then.
        first.reserve(4096.min(FIRST_LINE_BYTES_MAX));
        if input.read_buf(first).await? == 0 {
            return Ok(None);
        }
    }
}

/// Sends one short message, without waiting for room in the socket, and closes.
pub(crate) async fn say_last(link: &Link, message: &[u8]) {
    link.enter(Phase::Reply);
    // A client that has left no room for this line gets to see the end of the connection alone.
    let _ = link.stream().try_write(message);
    link.linger().await;
}
