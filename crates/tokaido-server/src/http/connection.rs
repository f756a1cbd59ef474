//! One HTTP connection.

use std::{convert::Infallible, rc::Rc};

use hyper::{Request, body::Incoming, header, server::conn::http1, service::service_fn};
use tokio::net::tcp::OwnedReadHalf;

use super::{dispatch, socket::Socket};
use crate::{
    connection::say_last,
    link::{Link, Phase},
    metrics,
    worker::Worker,
};

/// Most headers that hyper takes unless told otherwise. Told so, it allocates memory for them with
/// each request; untold, they are on the stack.
const HYPER_HEADERS_MAX: usize = 100;

/// Serves a connection to its end. `first` is what was read of it already.
pub(crate) async fn serve(
    worker: &Rc<Worker>,
    link: &Rc<Link>,
    input: OwnedReadHalf,
    first: Vec<u8>,
) {
    let socket = Socket::new(link.clone(), input, first);
    let service = service_fn(|request: Request<Incoming>| async move {
        link.enter(Phase::Request);
        let mut response = dispatch::answer(worker, link, request).await;
        link.enter(Phase::Idle);
        if response.status().is_client_error() || response.status().is_server_error() {
            metrics::add(&worker.counters.http.errors, 1);
        }
        if link.is_stopping() {
            response
                .headers_mut()
                .insert(header::CONNECTION, header::HeaderValue::from_static("close"));
        }
        Ok::<_, Infallible>(response)
    });
    // With half_close, hyper answers what it has read when the input ends, be it that the client
    // has closed its side or that this server stops. (Its pipeline_flush is not used: it would hold
    // a response back for as long as part of the next request has come.)
    let mut builder = http1::Builder::new();
    let limits = &worker.service.config.limits;
    builder.half_close(true).max_buf_size(limits.http_head_bytes_max);
    if limits.http_headers_max != HYPER_HEADERS_MAX {
        builder.max_headers(limits.http_headers_max);
    }
    let served = builder.serve_connection(socket, service).await;
    if link.expired() == Some(Phase::Request) {
        metrics::add(&worker.counters.http.errors, 1);
        let limit_ms = worker.service.config.limits.request_ms;
        let message = format!("the request did not come whole within {limit_ms} ms");
        say_last(link, raw_error("408 Request Timeout", &message).as_bytes()).await;
    } else if let Err(error) = served {
        tracing::debug!(peer = %link.peer, %error, "a connection broke");
        link.linger().await;
    }
}

/// A whole response for a connection that hyper does not serve, or no longer. `message` needs no
/// escaping in JSON.
pub(crate) fn raw_error(status: &str, message: &str) -> String {
    let body = format!("{{\"error\":{{\"message\":\"{message}\"}}}}\n");
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n{body}",
        body.len()
    )
}
