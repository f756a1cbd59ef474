//! Follows the requests of a connection from one to the next.

use super::{
    error::FramingError,
    head::{Body, Head, is_of_value},
};

/// Maximum number of digits of a chunk's size, enough for 64 bits.
const SIZE_DIGITS_MAX: usize = 16;

/// Limits on the size of a head.
#[derive(Clone, Copy, Debug)]
pub struct HeadLimits {
    /// Maximum number of bytes of a request line with its headers.
    pub len_max: usize,
    /// Maximum number of headers.
    pub headers_max: usize,
}

/// How many of the received bytes may be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fit {
    /// Number of bytes that belong to valid requests.
    pub len: usize,
    /// What is wrong with the request that begins there. [`FramingError::Chunk`] is found in a
    /// body, whose head has been read; all others are found in a head that has not.
    pub error: Option<FramingError>,
    /// The client has said that no request follows these bytes: anything after them is ignored.
    pub is_end: bool,
}

/// Where a connection is within its sequence of requests. It buffers only an incomplete line.
#[derive(Debug)]
pub struct Framing {
    state: State,
    /// The incomplete line received so far.
    line: Vec<u8>,
    /// Bytes of the lines since the request, its trailers or the size of its chunk began.
    lines_len: usize,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// Before a request line, which empty lines may precede.
    Start,
    /// Within the headers.
    Head(Head),
    /// Within a body, with `left` bytes to come.
    Bytes {
        left: u64,
        is_last: bool,
    },
    /// Before the size of a chunk.
    Size {
        is_last: bool,
    },
    /// Within a chunk, with `left` bytes to come.
    Chunk {
        left: u64,
        is_last: bool,
    },
    /// Before the line end of a chunk.
    ChunkEnd {
        is_last: bool,
    },
    /// Within the trailers.
    Trailers {
        is_last: bool,
    },
    /// The client has said that no request follows.
    Done,
    Failed(FramingError),
}

impl Default for Framing {
    fn default() -> Self {
        Self { state: State::Start, line: Vec::new(), lines_len: 0 }
    }
}

impl Framing {
    /// Examines the next bytes of the connection.
    ///
    /// After the first error, it returns the same error for any input.
    pub fn look(&mut self, bytes: &[u8], limits: HeadLimits) -> Fit {
        let (mut at, mut request_start) = (0, 0);
        while at < bytes.len() {
            if matches!(self.state, State::Done) {
                break;
            }
            let rest = &bytes[at..];
            if let Some(len) = self.skip(rest) {
                at += len;
                continue;
            }
            if matches!(self.state, State::Start) && self.lines_len == 0 {
                request_start = at;
            }
            match self.take_line(rest, limits) {
                Ok(len) => at += len,
                Err(error) => {
                    self.state = State::Failed(error);
                    self.line = Vec::new();
                    let is_in_body = error == FramingError::Chunk;
                    let len = if is_in_body { at } else { request_start };
                    return Fit { len, error: Some(error), is_end: false };
                }
            }
        }
        Fit { len: at, error: None, is_end: matches!(self.state, State::Done) }
    }

    /// Whether the last byte examined ended a request, or no byte has been examined yet.
    #[must_use]
    pub fn is_between_requests(&self) -> bool {
        matches!(self.state, State::Start) && self.lines_len == 0
    }

    /// Skips bytes of a body and returns how many.
    fn skip(&mut self, bytes: &[u8]) -> Option<usize> {
        let (State::Bytes { left, is_last } | State::Chunk { left, is_last }) = self.state else {
            return None;
        };
        let len = usize::try_from(left).map_or(bytes.len(), |left| left.min(bytes.len()));
        let left = left - len as u64;
        self.state = match self.state {
            State::Chunk { .. } if left == 0 => State::ChunkEnd { is_last },
            State::Chunk { .. } => State::Chunk { left, is_last },
            _ if left == 0 => after(is_last),
            _ => State::Bytes { left, is_last },
        };
        Some(len)
    }

    /// Takes a line, or as much of it as has arrived, and returns its number of bytes.
    fn take_line(&mut self, bytes: &[u8], limits: HeadLimits) -> Result<usize, FramingError> {
        let found = memchr::memchr(b'\n', bytes);
        let len = found.map_or(bytes.len(), |line_end| line_end + 1);
        self.lines_len += len;
        if self.lines_len > limits.len_max {
            return Err(match self.state {
                State::Start | State::Head(_) => FramingError::HeadTooLong(limits.len_max),
                State::Failed(error) => error,
                _ => FramingError::Chunk,
            });
        }
        let Some(line_end) = found else {
            self.line.extend_from_slice(bytes);
            return Ok(len);
        };
        if self.line.is_empty() {
            self.end_line(&bytes[..line_end], limits)?;
        } else {
            let mut line = std::mem::take(&mut self.line);
            line.extend_from_slice(&bytes[..line_end]);
            self.end_line(&line, limits)?;
            line.clear();
            self.line = line;
        }
        Ok(len)
    }

    /// Processes a complete line. RFC 9112 lets a bare line feed end a line of a head, but not one
    /// of a body.
    fn end_line(&mut self, line: &[u8], limits: HeadLimits) -> Result<(), FramingError> {
        let is_of_body = matches!(
            self.state,
            State::Size { .. } | State::ChunkEnd { .. } | State::Trailers { .. }
        );
        let line = match line.strip_suffix(b"\r") {
            None if is_of_body => return Err(FramingError::Chunk),
            stripped => stripped.unwrap_or(line),
        };
        let next = match &mut self.state {
            State::Start if line.is_empty() => return Ok(()),
            State::Start => State::Head(Head::of_request_line(line)?),
            State::Head(head) if !line.is_empty() => return head.add(line, limits.headers_max),
            State::Head(head) => {
                let is_last = head.is_last();
                match head.body()? {
                    Body::Bytes(0) => after(is_last),
                    Body::Bytes(left) => State::Bytes { left, is_last },
                    Body::Chunks => State::Size { is_last },
                }
            }
            State::Size { is_last } => match size(line)? {
                0 => State::Trailers { is_last: *is_last },
                left => State::Chunk { left, is_last: *is_last },
            },
            State::ChunkEnd { is_last } if line.is_empty() => State::Size { is_last: *is_last },
            State::ChunkEnd { .. } => return Err(FramingError::Chunk),
            State::Trailers { .. } if !line.is_empty() => return Ok(()),
            State::Trailers { is_last } => after(*is_last),
            State::Failed(error) => return Err(*error),
            State::Bytes { .. } | State::Chunk { .. } | State::Done => return Ok(()),
        };
        if !matches!(next, State::Head(_)) {
            self.lines_len = 0;
        }
        self.state = next;
        Ok(())
    }
}

fn after(is_last: bool) -> State {
    if is_last { State::Done } else { State::Start }
}

/// The size at the start of the line before a chunk. Of the chunk extensions only the kind of their
/// bytes is checked here; the rest is left to the parser.
fn size(line: &[u8]) -> Result<u64, FramingError> {
    let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let is_size = digits <= SIZE_DIGITS_MAX && line.iter().all(|&byte| is_of_value(byte));
    let text = std::str::from_utf8(&line[..digits]).ok().filter(|_| is_size);
    text.and_then(|text| u64::from_str_radix(text, 16).ok()).ok_or(FramingError::Chunk)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HEAD_LEN_MAX: usize = 120;
    const LIMITS: HeadLimits = HeadLimits { len_max: HEAD_LEN_MAX, headers_max: 3 };

    #[track_caller]
    fn check(bytes: &str, len: usize, error: Option<FramingError>) {
        let whole = Framing::default().look(bytes.as_bytes(), LIMITS);
        assert_eq!((whole.len, whole.error), (len, error), "{bytes:?}");
        // Splitting the input anywhere must not change the result, except that part of a bad head
        // may have been let through before the error arrived.
        for cut in 0..bytes.len() {
            let (first, second) = bytes.as_bytes().split_at(cut);
            let mut framing = Framing::default();
            let mut fit = framing.look(first, LIMITS);
            if fit.error.is_none() {
                let rest = framing.look(second, LIMITS);
                fit = Fit { len: fit.len + rest.len, ..rest };
            }
            assert_eq!((fit.error, fit.is_end), (error, whole.is_end), "{bytes:?} cut at {cut}");
            assert!(fit.len == len || (fit.len == cut && cut > len), "{bytes:?} cut at {cut}");
        }
    }

    #[test]
    fn requests_follow_each_other() {
        for whole in [
            "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /b HTTP/1.1\r\n\r\n",
            "\r\n\nPUT / HTTP/1.1\r\ncontent-length: 3\r\n\r\n\r\n\nGET / HTTP/1.1\n\n",
            "PUT / HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n\r\n3;a=b\r\n\0\n#\r\n00\r\nt: x\r\n\r\nGET /",
            "OPTIONS * HTTP/1.1\r\n\r\nGET HTTP://a/?b HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET",
        ] {
            check(whole, whole.len(), None);
        }
    }

    #[test]
    fn what_is_before_a_bad_request_is_fit() {
        let good = "PUT / HTTP/1.1\r\ncontent-length: 3\r\n\r\nabc";
        for (bad, error) in [
            ("GET /#a HTTP/1.1\r\n", FramingError::Target),
            ("GET / HTTP/2.0\r\n", FramingError::Version),
            ("GET / HTTP/1.1\r\na : b\r\n", FramingError::Header),
            ("CONNECT a:1 HTTP/1.1\r\n", FramingError::Connect),
            ("GET /\r\n", FramingError::RequestLine),
            ("GET / HTTP/1.1\r\nconnection: close, \u{80}\r\n", FramingError::Connection),
            ("GET / HTTP/1.1\r\ntransfer-encoding: \u{80}\r\n", FramingError::TransferEncoding),
        ] {
            check(&format!("{good}{bad}"), good.len(), Some(error));
        }
    }

    #[test]
    fn nothing_follows_the_last_request() {
        for last in [
            "GET / HTTP/1.1\r\nConnection: a, Close\r\n\r\n",
            "GET / HTTP/1.0\r\n\r\n",
            "PUT / HTTP/1.0\r\nconnection: x\r\ncontent-length: 1\r\n\r\na",
            "PUT / HTTP/1.1\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        ] {
            check(last, last.len(), None);
            check(&format!("{last}GET / HTTP/1.1\r\n\r\n"), last.len(), None);
            assert!(Framing::default().look(last.as_bytes(), LIMITS).is_end, "{last:?}");
        }
    }

    #[test]
    fn a_head_has_no_more_headers_than_the_limit() {
        let head = |count| format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(count));
        check(&head(3), head(3).len(), None);
        check(&head(4), 0, Some(FramingError::TooManyHeaders(3)));
    }

    #[test]
    fn a_head_is_no_longer_than_the_limit_and_is_refused_before_it_ends() {
        let head = |len| format!("GET / HTTP/1.1\r\na: {}\r\n\r\n", "b".repeat(len - 23));
        check(&head(HEAD_LEN_MAX), HEAD_LEN_MAX, None);
        let too_long = Some(FramingError::HeadTooLong(HEAD_LEN_MAX));
        check(&head(HEAD_LEN_MAX + 1), 0, too_long);
        check(&"\r\n".repeat(61), 0, too_long);
        let mut framing = Framing::default();
        for _ in 0..1000 {
            framing.look(&[b'a'; 100], LIMITS);
            assert!(framing.line.capacity() <= 4 * HEAD_LEN_MAX);
        }
    }

    #[test]
    fn a_body_is_fit_up_to_the_chunk_that_is_none() {
        let head = "PUT / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n";
        for broken in ["x\r\n", "\r\n", "-1\r\n", "10000000000000000\r\n", "00000000000000001\r\n"]
        {
            check(&format!("{head}{broken}"), head.len(), Some(FramingError::Chunk));
        }
        let head = "PUT / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n1\r\na";
        check(&format!("{head}b\r\n"), head.len(), Some(FramingError::Chunk));
        let head = "PUT / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n";
        for (fit, broken) in
            [("", "1\n"), ("1\r\na", "\n"), ("", "0\n"), ("0\r\n", "\n"), ("0\r\n", "a: b\n")]
        {
            let head = format!("{head}{fit}");
            check(&format!("{head}{broken}\r\n"), head.len(), Some(FramingError::Chunk));
        }
    }

    /// Bytes that resemble requests more often than random ones would.
    fn near_http() -> impl Strategy<Value = Vec<u8>> {
        let lines = [
            "GET / HTTP/1.1\r\n",
            "PUT /a HTTP/1.0\r\n",
            "GET /# HTTP/1.1\n",
            "a: b\r\n",
            "\r\n",
            "\n",
            "content-length: 3\r\n",
            "transfer-encoding: chunked\r\n",
            "3\r\n",
            "0\r\n",
            "abc",
            "connection: close\r\n",
            " ",
            ":",
            "\r",
            "\0",
        ];
        let parts = prop::collection::vec(prop::sample::select(lines.to_vec()), 0..16);
        parts.prop_map(|parts| parts.concat().into_bytes())
    }

    proptest! {
        #[test]
        fn what_is_wrong_is_found_however_the_bytes_come(
            bytes in near_http(),
            pieces in prop::collection::vec(1_usize..20, 1..8),
        ) {
            let whole = Framing::default().look(&bytes, LIMITS);
            prop_assert!(whole.len <= bytes.len());
            let (mut framing, mut rest, mut len) = (Framing::default(), &bytes[..], 0);
            for &piece in pieces.iter().cycle() {
                let (next, behind) = rest.split_at(piece.min(rest.len()));
                let fit = framing.look(next, LIMITS);
                len += fit.len;
                rest = behind;
                if fit.error.is_some() || rest.is_empty() {
                    prop_assert_eq!(fit.error, whole.error);
                    break;
                }
            }
            // The part of a head that arrived before the error was let through.
            prop_assert!(len >= whole.len);
        }
    }
}
