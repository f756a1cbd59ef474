//! What an HTTP handler sees and gives.

use std::{net::SocketAddr, time::Duration};

use crate::{Fault, Limits};

/// Maximum length of a response's headers, names and values together, in bytes.
const HEADERS_LEN_MAX: usize = 64 << 10;

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
    /// Whether a part of the answer can be sent while the handler waits.
    pub may_stream: bool,
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

/// How far a response has got that is sent while its handler goes on; whoever sends it keeps this up to date.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// Status and headers were taken, to be sent.
    pub has_begun: bool,
    /// The length of what was taken of the body.
    pub taken_len: u64,
    /// The length of what was taken and has not left yet.
    pub unsent_len: usize,
    /// Something that was taken has not left yet, be it the head alone.
    pub has_unsent: bool,
    /// Nothing can be sent any more: the client has gone.
    pub is_gone: bool,
    /// The client has all that it gets: what is written from here on is dropped.
    pub is_whole: bool,
}

/// What the handler answered. Reused between requests.
#[derive(Clone, Debug, Default)]
pub struct HttpResponse {
    /// The status code.
    pub status: u16,
    /// In the order set. Always has a `content-type` unless the body is empty.
    pub headers: Vec<(String, Vec<u8>)>,
    /// The whole body, or what is left of it once the beginning was taken.
    pub body: Vec<u8>,
    /// The handler counts on it that what it has written so far is on its way: should it fail, its client gets that
    /// and no other answer.
    pub is_sent: bool,
    /// The handler has said that nothing follows: should it fail from here on, its client gets what there is as a whole.
    pub is_complete: bool,
    /// The handler has failed, and this is what its client is told of that, as a whole.
    pub tells_failure: bool,
    /// The handler wants the connection closed, without an answer.
    pub is_dropped: bool,
    /// The handler wants sent now what there is. Whoever sends it while the handler waits takes this back.
    pub is_flushed: bool,
    /// The handler waits until all of that has left, or the client has gone.
    pub awaits_sent: bool,
    /// What was sent while the handler waited.
    pub progress: Progress,
    /// Set if the handler waits, and is not done.
    pub waiting: Option<Waiting>,
    /// Responses to requests that the handler has made within its own.
    pub(crate) nested: Nested,
}

/// Responses within a response, each at a place of its own for as long as its request goes on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Nested {
    places: Vec<Option<HttpResponse>>,
    /// The place of the one that is written, counted from 1; 0 is the response around them.
    current: usize,
    /// The length of their bodies.
    len: usize,
}

/// Maximum number of responses within a response.
const NESTED_MAX: usize = 1000;

impl Nested {
    /// Makes room for one more; gives its place, or nothing if there are too many.
    pub(crate) fn begin(&mut self) -> Option<usize> {
        let free = self.places.iter().position(Option::is_none).unwrap_or(self.places.len());
        if free == NESTED_MAX {
            return None;
        }
        if free == self.places.len() {
            self.places.push(None);
        }
        self.places[free] = Some(HttpResponse::default());
        Some(free + 1)
    }

    /// From here on that one is written, or with 0 the response around them.
    pub(crate) fn select(&mut self, place: usize) {
        self.current = place;
    }

    /// The one that is written, unless that is the response around them.
    pub(crate) fn current(&mut self) -> Option<&mut HttpResponse> {
        self.places.get_mut(self.current.checked_sub(1)?)?.as_mut()
    }

    pub(crate) fn is_current(&self) -> bool {
        self.current > 0
    }

    /// Takes the one at a place out, whose place is free then.
    pub(crate) fn end(&mut self, place: usize) -> Option<HttpResponse> {
        let response = self.places.get_mut(place.checked_sub(1)?)?.take();
        self.len -= response.as_ref().map_or(0, |response| response.body.len());
        response
    }

    /// Whether so many bytes more make no more than `len_max` in all; if so, they are counted.
    pub(crate) fn make_room(&mut self, len: usize, len_max: usize) -> bool {
        let fits = self.len + len <= len_max;
        self.len += if fits { len } else { 0 };
        fits
    }

    /// The one that is written forgets its body.
    pub(crate) fn forget_body(&mut self) {
        let len = self.current().map_or(0, |response| std::mem::take(&mut response.body).len());
        self.len -= len;
    }

    fn clear(&mut self) {
        self.places.clear();
        self.current = 0;
        self.len = 0;
    }
}

impl HttpResponse {
    /// Takes what there is of the body, to be sent while the handler goes on.
    pub fn take_body(&mut self) -> Vec<u8> {
        let body = std::mem::take(&mut self.body);
        self.progress.taken_len += body.len() as u64;
        body
    }

    /// The same, with the head.
    #[must_use]
    pub fn take_beginning(&mut self) -> Self {
        let body = self.take_body();
        Self { status: self.status, headers: self.headers.clone(), body, ..Self::default() }
    }

    /// Makes it ready for another request, and keeps its memory.
    pub fn clear(&mut self) {
        self.status = 0;
        self.headers.clear();
        self.body.clear();
        self.is_sent = false;
        self.is_complete = false;
        self.tells_failure = false;
        self.is_dropped = false;
        self.is_flushed = false;
        self.awaits_sent = false;
        self.progress = Progress::default();
        self.waiting = None;
        self.nested.clear();
    }

    /// Sets a header, or adds one more of the same name.
    ///
    /// # Errors
    /// If it has no valid name or value, or if it is one too many.
    pub fn set_header(
        &mut self,
        name: &[u8],
        value: &[u8],
        is_more: bool,
        limits: &Limits,
    ) -> Result<(), Fault> {
        let name = header_name(name)?;
        if value.iter().any(|&b| b < b' ' && b != b'\t' || b == 0x7f) {
            return Err(Fault::Refused(format!(
                "the value of the header {name} has a control character"
            )));
        }
        if !is_more {
            self.headers.retain(|(other, _)| *other != name);
        }
        let headers_max = limits.response_headers_max;
        if self.headers.len() >= headers_max {
            return Err(Fault::Refused(format!("a response has at most {headers_max} headers")));
        }
        let len_before: usize =
            self.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
        if len_before + name.len() + value.len() > HEADERS_LEN_MAX {
            return Err(Fault::Refused(format!(
                "the headers of a response have at most {HEADERS_LEN_MAX} bytes"
            )));
        }
        self.headers.push((name, value.to_vec()));
        Ok(())
    }

    /// A header that was set.
    ///
    /// # Errors
    /// If no header can have that name.
    pub fn header(&self, name: &[u8]) -> Result<Option<&[u8]>, Fault> {
        let name = header_name(name)?;
        let found = self.headers.iter().find(|(other, _)| *other == name);
        Ok(found.map(|(_, value)| value.as_slice()))
    }

    /// Appends to the body, one piece behind the other.
    ///
    /// # Errors
    /// If it becomes too long.
    pub fn append(&mut self, pieces: &[&[u8]], limits: &Limits) -> Result<(), Fault> {
        let (len_max, progress) = (limits.response_len_max, self.progress);
        if progress.is_gone || progress.is_whole {
            return Ok(());
        }
        let len: usize = pieces.iter().map(|piece| piece.len()).sum();
        if progress.unsent_len + self.body.len() + len > len_max {
            return Err(Fault::Refused(match progress.has_begun {
                false => format!("a response has at most {len_max} bytes; send it in pages"),
                true => format!(
                    "more than {len_max} bytes of a response would wait to be sent; let the client take them \
                     first, by ngx.flush(true)"
                ),
            }));
        }
        pieces.iter().for_each(|piece| self.body.extend_from_slice(piece));
        Ok(())
    }

    /// Gives it that content type, if it has a body and none was set.
    pub fn set_type(&mut self, content_type: &str) {
        let is_typed = self.headers.iter().any(|(name, _)| name == "content-type");
        if !self.body.is_empty() && !is_typed {
            self.headers.push(("content-type".to_owned(), content_type.as_bytes().to_vec()));
        }
    }
}

/// The name of a header, in lower case.
pub(crate) fn header_name(name: &[u8]) -> Result<String, Fault> {
    let token = |&b: &u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    if name.is_empty() || !name.iter().all(token) {
        return Err(Fault::Refused(format!(
            "{:?} is no name of a header",
            String::from_utf8_lossy(name)
        )));
    }
    Ok(String::from_utf8_lossy(name).to_ascii_lowercase())
}
