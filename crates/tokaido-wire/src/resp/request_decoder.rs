//! Decodes the bytes of a connection into requests.

use super::{
    error::ProtocolError,
    inline,
    length::{Length, read_length},
    limits::Limits,
    request::{Request, Span},
};

/// Capacity for arguments that a decoder keeps between requests. What a huge request needed beyond
/// that is freed before the next.
const SPANS_KEPT_MAX: usize = 1024;

/// Capacity for an unquoted line that is kept, in bytes.
const UNQUOTED_KEPT_MAX: usize = 4096;

/// The outcome of [`RequestDecoder::decode`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decoded {
    /// The input ends within a request.
    Incomplete,
    /// The input begins with a whole request. An empty line and an empty array are requests without
    /// arguments.
    Complete {
        /// The length of the request in bytes: where the next one begins.
        consumed: usize,
    },
}

/// Decodes the requests of one connection. It remembers its position in a request that arrives in
/// pieces.
///
/// It copies nothing (except inline requests, to remove their quotes) and, after a few requests,
/// allocates nothing.
#[derive(Debug)]
pub struct RequestDecoder {
    limits: Limits,
    state: State,
    /// The arguments so far: parts of the input or, for an inline request, of `unquoted`.
    spans: Vec<Span>,
    unquoted: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// Nothing of the request has been examined.
    Start,
    /// There is no line end in the first `scanned` bytes.
    Inline { scanned: usize },
    /// `remaining` arguments are missing, and the next begins at `position`.
    Multibulk { position: usize, remaining: usize },
    /// The arguments of the request are in `spans`.
    Complete { inline: bool },
    /// The rest of the stream has no meaning.
    Failed(ProtocolError),
}

impl RequestDecoder {
    /// Creates a decoder for a new connection.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        let limits = within_u32(limits);
        Self { limits, state: State::Start, spans: Vec::new(), unquoted: Vec::new() }
    }

    /// Changes the limits from the next request on, for instance once a client has authenticated.
    /// To be called between requests.
    pub fn limit(&mut self, limits: Limits) {
        self.limits = within_u32(limits);
    }

    /// Tries to decode one request from the front of `input`.
    ///
    /// After [`Decoded::Incomplete`], call it again with the same bytes and more after them: it
    /// resumes where it stopped. After [`Decoded::Complete`], drop `consumed` bytes from the front
    /// before the next call.
    ///
    /// # Errors
    ///
    /// If the bytes are not the protocol or exceed a limit. Every later call returns the same
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

    /// The request that [`decode`](Self::decode) has just completed at the front of `input`, which
    /// must be the same slice. Empty if there is none.
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

    /// `*<number of arguments>`. It is so short that no position within it is remembered.
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

    /// `$<length>` and the bytes, `remaining` times. An argument is taken only once it is complete,
    /// so only the few digits of one length are read again after more input.
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

    /// The position of the content of the bulk string at `position`, if it is complete.
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

    /// A line that ends with CRLF or with LF alone.
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

/// Positions in a request are 32-bit numbers.
fn within_u32(limits: Limits) -> Limits {
    let request_len_max = limits.request_len_max.min(u32::MAX as usize);
    let inline_len_max = limits.inline_len_max.min(request_len_max);
    Limits { request_len_max, inline_len_max, ..limits }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Limits =
        Limits { arguments_max: 4, argument_len_max: 8, inline_len_max: 16, request_len_max: 48 };

    /// All requests of a stream that arrives at once, and how it ends: the bytes that are left, or
    /// the error.
    fn decode(
        limits: Limits,
        mut input: &[u8],
    ) -> (Vec<Vec<Vec<u8>>>, Result<usize, ProtocolError>) {
        let mut decoder = RequestDecoder::new(limits);
        let mut requests = Vec::new();
        loop {
            match decoder.decode(input) {
                Ok(Decoded::Complete { consumed }) => {
                    requests.push(decoder.request(input).iter().map(<[u8]>::to_vec).collect());
                    input = &input[consumed..];
                }
                Ok(Decoded::Incomplete) => return (requests, Ok(input.len())),
                Err(error) => return (requests, Err(error)),
            }
        }
    }

    #[track_caller]
    fn check(input: &str, expected: &[&[&str]], rest: usize) {
        let (requests, end) = decode(Limits::default(), input.as_bytes());
        assert_eq!(end, Ok(rest));
        let texts: Vec<Vec<String>> = requests
            .iter()
            .map(|request| request.iter().map(|a| a.escape_ascii().to_string()).collect())
            .collect();
        assert_eq!(texts, expected);
    }

    #[track_caller]
    fn check_error(limits: Limits, input: &str, expected: &str) {
        let (_, end) = decode(limits, input.as_bytes());
        assert_eq!(end.expect_err(input).to_string(), expected, "{input:?}");
    }

    #[test]
    fn decodes_a_pipeline_and_keeps_what_is_incomplete() {
        check(
            "*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$0\r\n\r\n*1\r\n$4\r\nPI",
            &[&["GET", "key"], &["SET", "k", ""]],
            10,
        );
    }

    #[test]
    fn a_bulk_string_may_hold_anything() {
        check("*1\r\n$7\r\n\r\n$3\r\n\0\r\n", &[&[r"\r\n$3\r\n\x00"]], 0);
    }

    #[test]
    fn inline_and_multibulk_may_be_mixed() {
        check(
            "PING\r\nSET key \"a b\"\n*1\r\n$4\r\nPING\r\n  \r\n\nGET",
            &[&["PING"], &["SET", "key", "a b"], &["PING"], &[], &[]],
            3,
        );
    }

    #[test]
    fn an_array_of_none_is_an_empty_request() {
        check("*0\r\n*-1\r\n*1\r\n$0\r\n\r\n", &[&[], &[], &[""]], 0);
    }

    #[test]
    fn says_what_is_wrong_in_the_words_of_redis() {
        let limits = Limits::default();
        for (input, expected) in [
            ("*x\r\n", "invalid multibulk length"),
            ("*1048577\r\n", "invalid multibulk length"),
            ("*1\r\n:1\r\n", "expected '$', got ':'"),
            ("*1\r\n\x01", r"expected '$', got '\x01'"),
            ("*1\r\n$-1\r\n", "invalid bulk length"),
            ("*1\r\n$67174401\r\n", "invalid bulk length"),
            ("*1\r\n$3\r\nabcd\r\n", "expected CRLF after bulk string"),
            ("*1\r\n$3\r\nabc\rd", "expected CRLF after bulk string"),
            ("GET 'a\r\n", "unbalanced quotes in request"),
        ] {
            check_error(limits, input, expected);
        }
        check_error(limits, &"x".repeat(limits.inline_len_max), "too big inline request");
    }

    #[test]
    fn each_limit_admits_its_number_and_no_more() {
        for fitting in [
            "*4\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n",
            "*1\r\n$8\r\n12345678\r\n",
            "12345678 12345\r\n",
            "1 2 3 4\n",
            "*3\r\n$8\r\n12345678\r\n$8\r\n12345678\r\n$8\r\n12345678\r\n",
        ] {
            let limits = Limits { request_len_max: fitting.len().max(16), ..SMALL };
            assert_eq!(decode(limits, fitting.as_bytes()).1, Ok(0), "{fitting:?}");
        }
        check_error(SMALL, "*5\r\n", "invalid multibulk length");
        check_error(SMALL, "*1\r\n$9\r\n", "invalid bulk length");
        check_error(SMALL, "12345678 1234567\r\n", "too big inline request");
        check_error(SMALL, "123456789\r\n", "invalid bulk length");
        check_error(SMALL, "1 2 3 4 5\n", "too big inline request");
        let long = "*4\r\n$8\r\n12345678\r\n$8\r\n12345678\r\n$8\r\n12345678\r\n$1\r\n";
        check_error(SMALL, long, "too big request");
    }

    #[test]
    fn other_limits_hold_from_the_next_request_on() {
        let mut decoder = RequestDecoder::new(SMALL);
        let input = b"*1\r\n$9\r\n123456789\r\n";
        assert_eq!(decoder.decode(b"PING\r\n"), Ok(Decoded::Complete { consumed: 6 }));
        decoder.limit(Limits::default());
        assert_eq!(decoder.decode(input), Ok(Decoded::Complete { consumed: input.len() }));
        decoder.limit(SMALL);
        assert_eq!(decoder.decode(input), Err(ProtocolError::BulkLength));
    }

    #[test]
    fn an_error_is_final() {
        let mut decoder = RequestDecoder::new(Limits::default());
        assert_eq!(decoder.decode(b"*x\r\n"), Err(ProtocolError::MultibulkLength));
        assert_eq!(decoder.decode(b"PING\r\n"), Err(ProtocolError::MultibulkLength));
        assert!(decoder.request(b"PING\r\n").is_empty());
    }

    #[test]
    fn an_incomplete_request_is_empty() {
        let mut decoder = RequestDecoder::new(Limits::default());
        let input = b"*2\r\n$3\r\nGET\r\n";
        assert_eq!(decoder.decode(input), Ok(Decoded::Incomplete));
        assert!(decoder.request(input).is_empty());
    }

    #[test]
    fn what_has_come_is_not_read_again() {
        let mut decoder = RequestDecoder::new(Limits::default());
        let mut input = b"*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$5\r\nva".to_vec();
        assert_eq!(decoder.decode(&input), Ok(Decoded::Incomplete));
        // If these bytes were read again, this would be an error.
        input[0] = b'!';
        input[4] = b'!';
        input.extend_from_slice(b"lue\r\n");
        assert_eq!(decoder.decode(&input), Ok(Decoded::Complete { consumed: input.len() }));

        let mut input = b"ECHO one".to_vec();
        assert_eq!(decoder.decode(&input), Ok(Decoded::Incomplete));
        input[4] = b'\n';
        input.extend_from_slice(b"\r\n");
        assert_eq!(decoder.decode(&input), Ok(Decoded::Complete { consumed: 10 }));
    }

    #[test]
    fn room_for_a_huge_request_is_given_back() {
        let count = 100_000;
        let mut input = format!("*{count}\r\n").into_bytes();
        input.extend(b"$0\r\n\r\n".repeat(count));
        let mut decoder = RequestDecoder::new(Limits::default());
        assert_eq!(decoder.decode(&input), Ok(Decoded::Complete { consumed: input.len() }));
        assert_eq!(decoder.request(&input).len(), count);
        assert_eq!(decoder.decode(b""), Ok(Decoded::Incomplete));
        assert!(decoder.spans.capacity() <= SPANS_KEPT_MAX);

        let line = format!("ECHO {}\r\n", "x".repeat(60_000));
        assert_eq!(decoder.decode(line.as_bytes()), Ok(Decoded::Complete { consumed: line.len() }));
        assert_eq!(decoder.decode(b""), Ok(Decoded::Incomplete));
        assert!(decoder.unquoted.capacity() <= UNQUOTED_KEPT_MAX);
    }
}
