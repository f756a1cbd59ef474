//! From the bytes of a connection to requests.

use super::{
    error::ProtocolError,
    inline,
    length::{Length, read_length},
    limits::Limits,
    request::{Request, Span},
};

/// Room for arguments that a decoder keeps from one request to the next. What one huge request
/// needed is given back before the next.
const SPANS_KEPT_MAX: usize = 1024;

/// Room for an unquoted line that is kept, in bytes.
const UNQUOTED_KEPT_MAX: usize = 4096;

/// How far [`RequestDecoder::decode`] came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decoded {
    /// The input ends within a request.
    Incomplete,
    /// The input begins with a whole request. An empty line and an array of none are requests
    /// without arguments.
    Complete {
        /// The length of the request in bytes: where the next one begins.
        consumed: usize,
    },
}

/// Decodes the requests of one connection, and remembers how far it came in one that arrives in
/// pieces.
///
/// It copies nothing (except an inline request, whose quotes it has to remove) and, once it has
/// seen a few requests, allocates nothing.
#[derive(Debug)]
pub struct RequestDecoder {
    limits: Limits,
    state: State,
    /// The arguments so far: parts of the input or, in an inline request, of `unquoted`.
    spans: Vec<Span>,
    unquoted: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// Nothing of the request has been looked at.
    Start,
    /// There is no line end in the first `scanned` bytes.
    Inline { scanned: usize },
    /// `remaining` arguments are to come, the next at `position`.
    Multibulk { position: usize, remaining: usize },
    /// The arguments of the request are in `spans`.
    Complete { inline: bool },
    /// What follows in the stream has no meaning any more.
    Failed(ProtocolError),
}

impl RequestDecoder {
    /// A decoder for a new connection.
    #[must_use]
    pub fn new(mut limits: Limits) -> Self {
        limits.request_len_max = limits.request_len_max.min(u32::MAX as usize);
        limits.inline_len_max = limits.inline_len_max.min(limits.request_len_max);
        Self { limits, state: State::Start, spans: Vec::new(), unquoted: Vec::new() }
    }

    /// Tries to decode one request from the front of `input`.
    ///
    /// After [`Decoded::Incomplete`], call it again with the same bytes and more after them: it
    /// goes on where it was. After [`Decoded::Complete`], drop `consumed` bytes from the front
    /// before the next call.
    ///
    /// # Errors
    ///
    /// If the bytes are not the protocol or go beyond a limit. Every later call gives the same
    /// error: the connection has to be closed.
    #[inline]
    pub fn decode(&mut self, input: &[u8]) -> Result<Decoded, ProtocolError> {
        let result = match self.state {
            State::Multibulk { position, remaining } => {
                self.decode_arguments(input, position, remaining)
            }
            State::Inline { scanned } => self.decode_inline(input, scanned),
            State::Start | State::Complete { .. } => self.decode_start(input),
            State::Failed(error) => Err(error),
        };
        if let Err(error) = result {
            self.state = State::Failed(error);
        }
        result
    }

    /// The request that [`decode`](Self::decode) has just completed at the front of `input`,
    /// which has to be the slice it was given. Empty if there is none.
    #[inline]
    #[must_use]
    pub fn request<'a>(&'a self, input: &'a [u8]) -> Request<'a> {
        match self.state {
            State::Complete { inline: false } => Request::new(input, &self.spans),
            State::Complete { inline: true } => Request::new(&self.unquoted, &self.spans),
            _ => Request::new(&[], &[]),
        }
    }

    #[inline]
    fn decode_start(&mut self, input: &[u8]) -> Result<Decoded, ProtocolError> {
        self.clear();
        match input.first() {
            None => Ok(Decoded::Incomplete),
            Some(b'*') => self.decode_count(input),
            Some(_) => self.decode_inline(input, 0),
        }
    }

    #[inline]
    fn clear(&mut self) {
        self.state = State::Start;
        self.spans.clear();
        if self.spans.capacity() > SPANS_KEPT_MAX {
            self.spans.shrink_to(SPANS_KEPT_MAX);
        }
        if self.unquoted.capacity() > 0 {
            self.unquoted.clear();
            self.unquoted.shrink_to(UNQUOTED_KEPT_MAX);
        }
    }

    #[inline]
    fn complete(&mut self, inline: bool, consumed: usize) -> Result<Decoded, ProtocolError> {
        self.state = State::Complete { inline };
        Ok(Decoded::Complete { consumed })
    }

    /// `*<number of arguments>`. Nothing is remembered of it before it is whole, because it is
    /// too short to matter.
    #[inline]
    fn decode_count(&mut self, input: &[u8]) -> Result<Decoded, ProtocolError> {
        match read_length(input, 1) {
            Length::Incomplete => Ok(Decoded::Incomplete),
            Length::Value { len, next } if len <= self.limits.arguments_max => {
                self.decode_arguments(input, next, len)
            }
            Length::Negative { next } => self.complete(false, next),
            Length::Value { .. } | Length::Invalid => Err(ProtocolError::MultibulkLength),
        }
    }

    /// `$<length>` and the bytes, `remaining` times. An argument is taken only when it has come
    /// as a whole, so what is read again after more input is the few digits of one length.
    #[inline]
    fn decode_arguments(
        &mut self,
        input: &[u8],
        mut position: usize,
        mut remaining: usize,
    ) -> Result<Decoded, ProtocolError> {
        while remaining > 0 {
            let Some((start, end)) = self.find_bulk(input, position)? else {
                self.state = State::Multibulk { position, remaining };
                return Ok(Decoded::Incomplete);
            };
            self.spans.push(Span::new(start, end));
            position = end + 2;
            remaining -= 1;
        }
        self.complete(false, position)
    }

    /// Where the content of the bulk string at `position` is, if all of it is there.
    #[inline]
    fn find_bulk(
        &self,
        input: &[u8],
        position: usize,
    ) -> Result<Option<(usize, usize)>, ProtocolError> {
        match input.get(position) {
            None => return Ok(None),
            Some(b'$') => {}
            Some(&byte) => return Err(ProtocolError::ExpectedBulk(byte)),
        }
        let (len, start) = match read_length(input, position + 1) {
            Length::Incomplete => return Ok(None),
            Length::Value { len, next } if len <= self.limits.argument_len_max => (len, next),
            _ => return Err(ProtocolError::BulkLength),
        };
        let end = start.saturating_add(len);
        if end > self.limits.request_len_max.saturating_sub(2) {
            return Err(ProtocolError::TooBigRequest);
        }
        match input.get(end..) {
            Some([b'\r', b'\n', ..]) => Ok(Some((start, end))),
            None | Some([] | [b'\r']) => Ok(None),
            Some(_) => Err(ProtocolError::ExpectedLineEnd),
        }
    }

    /// A line, which ends with CRLF or with LF alone.
    fn decode_inline(&mut self, input: &[u8], scanned: usize) -> Result<Decoded, ProtocolError> {
        let window = &input[..input.len().min(self.limits.inline_len_max)];
        let unscanned = window.get(scanned..).unwrap_or_default();
        let Some(found) = memchr::memchr(b'\n', unscanned) else {
            if window.len() == self.limits.inline_len_max {
                return Err(ProtocolError::TooBigInline);
            }
            self.state = State::Inline { scanned: window.len() };
            return Ok(Decoded::Incomplete);
        };
        let line_end = scanned + found;
        // A carriage return before it is white space like any other.
        let line = &window[..line_end];
        inline::split(line, self.limits.arguments_max, &mut self.unquoted, &mut self.spans)?;
        if self.spans.iter().any(|span| span.len() > self.limits.argument_len_max) {
            return Err(ProtocolError::BulkLength);
        }
        self.complete(true, line_end + 1)
    }
}
