//! What an HTTP handler sees and gives.

use std::{net::SocketAddr, time::Duration};

/// A request, borrowed from the connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct HttpRequest<'r> {
    /// `GET`, `POST`, …
    pub method: &'r str,
    /// The path as sent, still percent-encoded, without the query.
    pub path: &'r str,
    /// What stands after `?`, still encoded; empty without one.
    pub query: &'r str,
    /// What the route's `:name` and `*name` matched, decoded.
    pub parameters: &'r [(&'r str, &'r str)],
    /// Names in lower case, in the order sent.
    pub headers: &'r [(&'r str, &'r [u8])],
    /// The whole body.
    pub body: &'r [u8],
    /// HTTP/1.1, and not 1.0.
    pub is_1_1: bool,
    /// The client's end of the connection, unless that is a UNIX socket.
    pub client: Option<SocketAddr>,
    /// The server's.
    pub server: Option<SocketAddr>,
    /// When the request came, in milliseconds since 1970.
    pub began_ms: f64,
    /// Whether the handler may wait: then it is to be resumed by
    /// [`resume_http`](crate::Runtime::resume_http).
    pub may_wait: bool,
    /// Path and query as sent.
    pub target: &'r str,
}

/// A handler that is not done.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    /// The number that it is resumed by.
    pub slot: u64,
    /// For how long it waits.
    pub time: Duration,
}

/// What the handler answered. Reused between requests.
#[derive(Clone, Debug, Default)]
pub struct HttpResponse {
    /// The status code.
    pub status: u16,
    /// In the order set. Always has a `content-type` unless the body is empty.
    pub headers: Vec<(String, Vec<u8>)>,
    /// The whole body.
    pub body: Vec<u8>,
    /// The handler counts on it that what it has written so far is on its way: should it fail, its client gets that
    /// and no other answer.
    pub is_sent: bool,
    /// The handler has said that nothing follows: should it fail from here on, its client gets what there is as a whole.
    pub is_complete: bool,
    /// The handler wants the connection closed, without an answer.
    pub is_dropped: bool,
    /// Set if the handler waits, and is not done.
    pub waiting: Option<Waiting>,
    /// Responses to requests that the handler has made within its own, outermost first.
    pub(crate) nested: Vec<HttpResponse>,
}

impl HttpResponse {
    /// Makes it ready for another request, and keeps its memory.
    pub fn clear(&mut self) {
        self.status = 0;
        self.headers.clear();
        self.body.clear();
        self.is_sent = false;
        self.is_complete = false;
        self.is_dropped = false;
        self.waiting = None;
        self.nested.clear();
    }
}
