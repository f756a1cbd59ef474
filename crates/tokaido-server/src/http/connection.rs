//! One HTTP connection. hyper is only there while requests arrive and are answered, not while the
//! connection is at rest: its buffers and its room for a response take some 18 KB.

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    rc::Rc,
};

use hyper::{
    Request, Response, StatusCode,
    body::Incoming,
    header,
    server::conn::http1::{self, Parts},
    service::{HttpService, service_fn},
};

use super::{
    body::Unanswered,
    dispatch,
    exchange::{Exchange, Paths},
    socket::Socket,
    streamed::{Outgoing, Taking},
};
use crate::{
    admission::say_last,
    connection::{Connection, Phase},
    placement::Placement,
    transport::Input,
    worker::Worker,
};

/// hyper's default for the maximum number of headers. If it is set explicitly, hyper allocates
/// memory for them with each request; otherwise they are on the stack.
const HYPER_HEADERS_MAX: usize = 100;

/// Maximum number of idle connections of a worker that keep hyper until they are at rest. All
/// others drop it after each request.
const READY_MAX: usize = 128;

/// Serves a connection to its end. `first` is what has been read of it already.
pub(crate) async fn serve(
    worker: &Rc<Worker>,
    connection: &Rc<Connection>,
    input: Input,
    first: Vec<u8>,
    paths: Paths,
) {
    let limits = &worker.service.config.limits;
    let exchange =
        &Rc::new(Exchange::new(limits, &worker.service.shared.users().newcomer(), paths));
    let mut socket = Socket::new(connection.clone(), exchange.clone(), input, first);
    let served = loop {
        let service = service_fn(|request| respond_to(worker, connection, exchange, request));
        match serve_until_rest(worker, connection, exchange, socket, service).await {
            Ok(Some(idle)) => socket = idle,
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        }
        if socket.has_more() {
            tokio::task::yield_now().await;
        } else {
            // Reading will show what is wrong with the socket.
            let _ = connection.transport().readable().await;
        }
    };
    if let Some(last) = last_error(connection, exchange, limits.request_ms) {
        Placement::http(worker).count_error();
        say_last(connection, last.as_bytes()).await;
    } else if let Err(error) = served {
        tracing::debug!(peer = %connection.peer, %error, "a connection broke");
        connection.linger().await;
    }
    // It counts as a connection for as long as a handler goes on after its answer.
    exchange.until_no_handler().await;
}

async fn respond_to(
    worker: &Rc<Worker>,
    connection: &Rc<Connection>,
    exchange: &Rc<Exchange>,
    request: Request<Incoming>,
) -> Result<Response<Outgoing>, Unanswered> {
    exchange.begin();
    connection.enter(Phase::Working);
    exchange.until_no_handler().await;
    connection.enter(Phase::Request);
    let mut response = dispatch::answer(worker, connection, exchange, request).await;
    connection.enter(Phase::Idle);
    exchange.end();
    if let Some(unanswered) = response.extensions_mut().remove::<Unanswered>() {
        // hyper sent the answers to earlier requests before it read this one.
        return Err(unanswered);
    }
    if response.status().is_client_error() || response.status().is_server_error() {
        Placement::http(worker).count_error();
    }
    if connection.is_stopping() {
        let close = header::HeaderValue::from_static("close");
        response.headers_mut().insert(header::CONNECTION, close);
    }
    Ok(match Taking::of(exchange, connection) {
        None => response.map(Outgoing::Reply),
        // The reply is empty: if there is a body, the stream delivers it.
        Some(taking) => response.map(|_| Outgoing::Streamed(taking)),
    })
}

/// An idle connection that is ready for its next request, one of at most [`READY_MAX`].
struct Ready<'w>(&'w Worker);

impl<'w> Ready<'w> {
    fn new(worker: &'w Worker) -> Option<Self> {
        let others = worker.ready_http.get();
        (others < READY_MAX).then(|| {
            worker.ready_http.set(others + 1);
            Self(worker)
        })
    }
}

impl Drop for Ready<'_> {
    fn drop(&mut self) {
        self.0.ready_http.update(|ready| ready - 1);
    }
}

/// Lets hyper answer requests until the connection is at rest, or is idle without a place among
/// those that are ready, and then returns the socket; `None` if the connection has ended.
async fn serve_until_rest<S>(
    worker: &Worker,
    connection: &Connection,
    exchange: &Exchange,
    socket: Socket,
    service: S,
) -> hyper::Result<Option<Socket>>
where
    S: HttpService<Incoming, ResBody = Outgoing, Error = Unanswered>,
{
    // With half_close, hyper answers what it has read when the input ends, whether because the
    // client has closed its side or because this server stops. (Its pipeline_flush is not used: it
    // would hold back a response while only part of the next request has arrived.)
    let limits = &worker.service.config.limits;
    let mut builder = http1::Builder::new();
    builder.half_close(true).max_buf_size(limits.http_head_bytes_max);
    if limits.http_headers_max != HYPER_HEADERS_MAX {
        builder.max_headers(limits.http_headers_max);
    }
    // Boxed, so that connections that are idle, or speak another protocol, reserve no room for it.
    let mut http = Box::new(builder.serve_connection(socket, service));
    let (mut is_ending, mut ready) = (false, None);
    let is_at_rest = poll_fn(|cx| {
        let mut http = Pin::new(&mut *http);
        let polled = http.as_mut().poll(cx).map_ok(|()| false);
        if polled.is_ready() || is_ending {
            return polled;
        }
        if !exchange.is_idle() {
            ready = None;
            return polled;
        }
        if ready.is_none() {
            ready = Ready::new(worker);
        }
        if ready.is_some() && connection.poll_rest(cx).is_pending() {
            return polled;
        }
        // hyper ends at once if it waits for a request, too. If not, it is left to end by itself, so
        // that nothing it has read can be taken for the beginning of a request.
        http.as_mut().graceful_shutdown();
        is_ending = true;
        http.poll(cx).map_ok(|()| true)
    });
    if !is_at_rest.await? {
        return Ok(None);
    }
    let Parts { io: mut socket, read_buf, .. } = http.into_parts();
    socket.give_back(&read_buf);
    Ok(Some(socket))
}

/// What is wrong with the last request, if hyper has not seen it whole.
fn last_error(connection: &Connection, exchange: &Exchange, request_ms: u64) -> Option<String> {
    if let Some(error) = exchange.refused() {
        let status = StatusCode::from_u16(error.status()).unwrap_or(StatusCode::BAD_REQUEST);
        return Some(raw_error(&status.to_string(), &error.to_string()));
    }
    let is_late = connection.expired() == Some(Phase::Request) && !exchange.has_told_of_timeout();
    is_late.then(|| raw_error("408 Request Timeout", &too_late(request_ms)))
}

/// The message to a client whose request took longer than allowed.
pub(super) fn too_late(request_ms: u64) -> String {
    format!("the request did not come whole within {request_ms} ms")
}

/// A whole response for a connection that hyper does not serve, or serves no longer. `message`
/// needs no escaping in JSON.
pub(crate) fn raw_error(status: &str, message: &str) -> String {
    let body = format!("{{\"error\":{{\"message\":\"{message}\"}}}}\n");
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n{body}",
        body.len()
    )
}
