//! An HTTP request and response, as a handler sees them.

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
    /// The part after `?`, still encoded; empty if there is none.
    pub query: &'r str,
    /// The route's `:name` and `*name` matches, decoded.
    pub parameters: &'r [(&'r str, &'r str)],
    /// Names in lower case, in the order sent.
    pub headers: &'r [(&'r str, &'r [u8])],
    /// The whole body.
    pub body: &'r [u8],
    /// HTTP/1.1, not 1.0.
    pub is_1_1: bool,
    /// The client's end of the connection, unless that is a UNIX socket.
    pub client: Option<SocketAddr>,
    /// The server's.
    pub server: Option<SocketAddr>,
    /// When the request came, in milliseconds since 1970.
    pub began_ms: f64,
    /// Whether the handler may wait; it is then resumed by
    /// [`resume_http`](crate::Runtime::resume_http).
    pub may_wait: bool,
    /// Whether a part of the response can be sent while the handler waits.
    pub may_stream: bool,
    /// Path and query as sent.
    pub target: &'r str,
}

/// A handler that has not finished.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    /// The number that it is resumed by.
    pub slot: u64,
    /// How long it waits.
    pub time: Duration,
}

/// How much of a response has been sent while its handler goes on; kept up to date by the sender.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// Status and headers were taken for sending.
    pub has_begun: bool,
    /// How many bytes of the body were taken.
    pub taken_len: u64,
    /// How many bytes were taken but not sent yet.
    pub unsent_len: usize,
    /// Something that was taken is not sent yet, possibly only the head.
    pub has_unsent: bool,
    /// Nothing can be sent any more: the client is gone.
    pub is_gone: bool,
    /// The client has the complete response; whatever is written from here on is dropped.
    pub is_whole: bool,
}

/// A handler's response. Reused between requests.
#[derive(Clone, Debug, Default)]
pub struct HttpResponse {
    /// The status code.
    pub status: u16,
    /// In the order set. Always has a `content-type` unless the body is empty.
    pub headers: Vec<(String, Vec<u8>)>,
    /// The whole body, or the rest of it once its beginning was taken.
    pub body: Vec<u8>,
    /// The handler relies on what it has written so far being sent. If it fails, its client gets that and no
    /// other response.
    pub is_sent: bool,
    /// The handler has said that nothing follows. If it fails after that, its client gets what there is, as complete.
    pub is_complete: bool,
    /// The handler has failed, and this is the complete response that reports the failure.
    pub tells_failure: bool,
    /// The handler wants the connection closed without a response.
    pub is_dropped: bool,
    /// The handler wants what there is sent now. The sender resets this while the handler waits.
    pub is_flushed: bool,
    /// The handler waits until all of that is sent, or the client is gone.
    pub awaits_sent: bool,
    /// What was sent while the handler waited.
    pub progress: Progress,
    /// Set if the handler waits and has not finished.
    pub waiting: Option<Waiting>,
    /// Responses to subrequests of the handler.
    pub(crate) nested: Nested,
}

/// Responses within a response, each in a place of its own for as long as its request goes on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Nested {
    places: Vec<Option<HttpResponse>>,
    /// The place of the one being written, counted from 1; 0 is the outer response.
    current: usize,
    /// The total length of their bodies.
    len: usize,
}

/// Maximum number of responses within a response.
const NESTED_MAX: usize = 1000;

impl Nested {
    /// Makes room for one more. Gives its place, or nothing if there are too many.
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

    /// Selects the response that is written from here on; 0 is the outer one.
    pub(crate) fn select(&mut self, place: usize) {
        self.current = place;
    }

    /// The response being written, unless that is the outer one.
    pub(crate) fn current(&mut self) -> Option<&mut HttpResponse> {
        self.places.get_mut(self.current.checked_sub(1)?)?.as_mut()
    }

    pub(crate) fn is_current(&self) -> bool {
        self.current > 0
    }

    /// Takes out the response at a place, and frees the place.
    pub(crate) fn end(&mut self, place: usize) -> Option<HttpResponse> {
        let response = self.places.get_mut(place.checked_sub(1)?)?.take();
        self.len -= response.as_ref().map_or(0, |response| response.body.len());
        response
    }

    /// Whether that many more bytes stay within `len_max` in all; if so, they are counted.
    pub(crate) fn make_room(&mut self, len: usize, len_max: usize) -> bool {
        let fits = self.len + len <= len_max;
        self.len += if fits { len } else { 0 };
        fits
    }

    /// Drops the body of the response being written.
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
    /// Takes the body so far, to be sent while the handler goes on.
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

    /// Clears it for another request, and keeps its memory.
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

    /// Sets a header, or adds another of the same name.
    ///
    /// # Errors
    /// If the name or the value is invalid, or if there are too many headers.
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
        // What is refused changes nothing.
        let kept = || self.headers.iter().filter(|(other, _)| is_more || *other != name);
        let headers_max = limits.response_headers_max;
        if kept().count() >= headers_max {
            return Err(Fault::Refused(format!("a response has at most {headers_max} headers")));
        }
        let len_before: usize = kept().map(|(name, value)| name.len() + value.len()).sum();
        if len_before + name.len() + value.len() > HEADERS_LEN_MAX {
            return Err(Fault::Refused(format!(
                "the headers of a response have at most {HEADERS_LEN_MAX} bytes"
            )));
        }
        self.headers.retain(|(other, _)| is_more || *other != name);
        self.headers.push((name, value.to_vec()));
        Ok(())
    }

    /// The value of a header that was set.
    ///
    /// # Errors
    /// If that is not a valid header name.
    pub fn header(&self, name: &[u8]) -> Result<Option<&[u8]>, Fault> {
        let name = header_name(name)?;
        let found = self.headers.iter().find(|(other, _)| *other == name);
        Ok(found.map(|(_, value)| value.as_slice()))
    }

    /// Appends pieces to the body, in order.
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

    /// Sets the content type, if there is a body and no type was set.
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
