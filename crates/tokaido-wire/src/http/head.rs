//! The lines of a request's head, and what they say about its body.

use super::error::FramingError;

/// Maximum number of bytes of a target: the most that the parser accepts.
pub(super) const TARGET_LEN_MAX: usize = (1 << 16) - 2;

/// The bytes allowed in a target.
const OF_TARGET: [bool; 256] = {
    let (mut table, mut byte) = ([false; 256], 0);
    while byte < table.len() {
        let is_mark = matches!(byte as u8, b'#' | b'<' | b'>' | b'`' | 0x7f);
        table[byte] = byte as u8 > b' ' && !is_mark;
        byte += 1;
    }
    table
};

/// The bytes allowed in a token, such as a header's name.
const OF_TOKEN: [bool; 256] = {
    let (mut table, mut byte) = ([false; 256], 0);
    while byte < table.len() {
        table[byte] = (byte as u8).is_ascii_alphanumeric();
        byte += 1;
    }
    let (others, mut place) = (b"!#$%&'*+-.^_`|~", 0);
    while place < others.len() {
        table[others[place] as usize] = true;
        place += 1;
    }
    table
};

/// What the lines of one head have said so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    is_http_1_0: bool,
    headers: usize,
    length: Option<u64>,
    codings: Codings,
    has_close: bool,
    has_keep_alive: bool,
}

/// What the `Transfer-Encoding` headers have named, all lines together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Codings {
    is_given: bool,
    is_chunked: bool,
    has_others: bool,
}

/// What follows a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Body {
    Bytes(u64),
    Chunks,
}

impl Head {
    /// Reads a request line, without its line end.
    pub(super) fn of_request_line(line: &[u8]) -> Result<Self, FramingError> {
        let mut parts = line.split(|&byte| byte == b' ');
        let (method, version) = (parts.next(), parts.next_back());
        let (Some(method), Some(version)) = (method, version) else {
            return Err(FramingError::RequestLine);
        };
        let is_http_1_0 = match version {
            b"HTTP/1.1" => false,
            b"HTTP/1.0" => true,
            _ if is_other_version(version) => return Err(FramingError::Version),
            _ => return Err(FramingError::RequestLine),
        };
        if !is_token(method) {
            return Err(FramingError::RequestLine);
        }
        if method == b"CONNECT" {
            return Err(FramingError::Connect);
        }
        match (parts.next(), parts.next()) {
            (Some(target), None) if target.len() > TARGET_LEN_MAX => {
                return Err(FramingError::TargetTooLong);
            }
            (Some(target), None) if is_target(method, target) => {}
            _ => return Err(FramingError::Target),
        }
        let codings = Codings::default();
        Ok(Self {
            is_http_1_0,
            headers: 0,
            length: None,
            codings,
            has_close: false,
            has_keep_alive: false,
        })
    }

    /// Reads a header, without its line end. At most `headers_max` are allowed.
    pub(super) fn add(&mut self, line: &[u8], headers_max: usize) -> Result<(), FramingError> {
        self.headers += 1;
        if self.headers > headers_max {
            return Err(FramingError::TooManyHeaders(headers_max));
        }
        let colon = memchr::memchr(b':', line).ok_or(FramingError::Header)?;
        let (name, value) = (&line[..colon], trimmed(&line[colon + 1..]));
        // A token contains no spaces, so this also refuses a space before the colon, and one before
        // the name, which would fold the line.
        if !is_token(name) || !value.iter().all(|&byte| is_of_value(byte)) {
            return Err(FramingError::Header);
        }
        if name.eq_ignore_ascii_case(b"content-length") {
            let length = digits(value).ok_or(FramingError::ContentLength)?;
            if self.length.replace(length).is_some() {
                return Err(FramingError::ContentLength);
            }
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            self.codings.add(value)?;
        } else if name.eq_ignore_ascii_case(b"connection") {
            // A parser that does not understand a list may overlook the `close` in it.
            if !elements(value).all(is_token) {
                return Err(FramingError::Connection);
            }
            let has = |option: &[u8]| elements(value).any(|e| e.eq_ignore_ascii_case(option));
            self.has_close |= has(b"close");
            self.has_keep_alive |= has(b"keep-alive");
        }
        Ok(())
    }

    /// What follows the complete head.
    pub(super) fn body(&self) -> Result<Body, FramingError> {
        let Codings { is_given, is_chunked, has_others } = self.codings;
        match self.length {
            Some(_) if is_given => Err(FramingError::TwoLengths),
            length if !is_given => Ok(Body::Bytes(length.unwrap_or(0))),
            _ if !is_chunked || self.is_http_1_0 => Err(FramingError::TransferEncoding),
            _ if has_others => Err(FramingError::TransferCoding),
            _ => Ok(Body::Chunks),
        }
    }

    /// Whether the client wants the connection closed after this request.
    pub(super) fn is_last(&self) -> bool {
        self.has_close || (self.is_http_1_0 && !self.has_keep_alive)
    }
}

impl Codings {
    fn add(&mut self, value: &[u8]) -> Result<(), FramingError> {
        self.is_given = true;
        for coding in elements(value) {
            if self.is_chunked || !coding.is_ascii() {
                return Err(FramingError::TransferEncoding);
            }
            match coding.eq_ignore_ascii_case(b"chunked") {
                true => self.is_chunked = true,
                false => self.has_others = true,
            }
        }
        Ok(())
    }
}

/// Whether `text` is `HTTP/` and a number, so that it is another version and not something else.
fn is_other_version(text: &[u8]) -> bool {
    let number = text.strip_prefix(b"HTTP/").unwrap_or_default();
    let (first, last) = (number.first(), number.last());
    let is_digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_digit);
    is_digit(first) && is_digit(last) && number.iter().all(|b| b.is_ascii_digit() || *b == b'.')
}

/// Whether it is a path, a whole URL or, for OPTIONS, the server.
fn is_target(method: &[u8], target: &[u8]) -> bool {
    // A URL has a host.
    let is_url = |scheme: &[u8]| {
        target.split_at_checked(scheme.len()).is_some_and(|(start, rest)| {
            start.eq_ignore_ascii_case(scheme) && !matches!(rest.first(), None | Some(b'/' | b'?'))
        })
    };
    let is_form = target.starts_with(b"/")
        || (target == b"*" && method == b"OPTIONS")
        || is_url(b"http://")
        || is_url(b"https://");
    if !is_form || !target.iter().all(|&byte| OF_TARGET[usize::from(byte)]) {
        return false;
    }
    let query = memchr::memchr(b'?', target).map_or(&b""[..], |mark| &target[mark..]);
    (target.is_ascii() || std::str::from_utf8(target).is_ok()) && !query.contains(&b'"')
}

/// Trims spaces and tabs only: a carriage return is neither.
fn trimmed(text: &[u8]) -> &[u8] {
    let is_text = |byte: &u8| !matches!(byte, b' ' | b'\t');
    match (text.iter().position(is_text), text.iter().rposition(is_text)) {
        (Some(first), Some(last)) => &text[first..=last],
        _ => b"",
    }
}

/// The non-empty elements of a list, trimmed.
fn elements(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&byte| byte == b',').map(trimmed).filter(|e| !e.is_empty())
}

fn is_token(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(|&byte| OF_TOKEN[usize::from(byte)])
}

/// Whether a value may have the byte: text of any encoding, but of control characters only the tab.
pub(super) fn is_of_value(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7f)
}

/// A number that consists of digits only: no sign, no list. No body is longer than a file can be.
fn digits(text: &[u8]) -> Option<u64> {
    if !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number: u64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    i64::try_from(number).is_ok().then_some(number)
}
