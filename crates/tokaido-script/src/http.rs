//! What an HTTP handler sees and gives.

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
}

impl HttpResponse {
    /// Makes it ready for another request, and keeps its memory.
    pub fn clear(&mut self) {
        self.status = 0;
        self.headers.clear();
        self.body.clear();
    }
}
