//! Replies of a server, in the version of the protocol that the client asked for.

pub(super) const CRLF: &[u8] = b"\r\n";

/// The most that a type byte, a number of 64 bits and CRLF take.
const HEADER_LEN_MAX: usize = 1 + 20 + 2;

/// A version of the protocol. A connection begins with version 2 and may change by `HELLO`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// Knows strings, errors, integers, arrays and null.
    Resp2,
    /// Also knows maps, sets, doubles, booleans, big numbers, verbatim strings and pushes.
    Resp3,
}

/// Appends replies to a vector of bytes. What version 2 does not know is written as the nearest
/// that it knows, in the way Redis does.
///
/// An aggregate is its length followed by so many replies (a map: twice as many).
#[derive(Debug)]
pub struct ReplyWriter<'o> {
    out: &'o mut Vec<u8>,
    start: usize,
    version: Version,
}

impl<'o> ReplyWriter<'o> {
    /// A writer that appends to `out`.
    #[must_use]
    pub fn new(out: &'o mut Vec<u8>, version: Version) -> Self {
        let start = out.len();
        Self { out, start, version }
    }

    /// The version in which replies are written.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    /// Changes the version for the replies that follow.
    pub fn set_version(&mut self, version: Version) {
        self.version = version;
    }

    /// How many bytes this writer has written (not what was in the vector before).
    #[must_use]
    pub fn len(&self) -> usize {
        self.out.len() - self.start
    }

    /// Whether this writer has written nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes back what was written since [`len`](Self::len) was `len`, so that a half-written
    /// reply can be replaced by an error. Does nothing if less was written.
    pub fn truncate(&mut self, len: usize) {
        self.out.truncate(self.start.saturating_add(len));
    }

    /// A status. Line ends in it are replaced by spaces.
    pub fn simple(&mut self, text: &str) {
        self.line(b'+', text);
    }

    /// `OK`.
    #[inline]
    pub fn ok(&mut self) {
        self.out.extend_from_slice(b"+OK\r\n");
    }

    /// An error: a code in capitals and a message, such as `ERR unknown command`. Line ends in it
    /// are replaced by spaces.
    pub fn error(&mut self, text: &str) {
        self.line(b'-', text);
    }

    /// An integer.
    #[inline]
    pub fn integer(&mut self, value: i64) {
        let mut digits = itoa::Buffer::new();
        write_header(self.out, b':', digits.format(value));
    }

    /// A byte string.
    #[inline]
    pub fn bulk(&mut self, bytes: &[u8]) {
        self.out.reserve(HEADER_LEN_MAX + bytes.len() + CRLF.len());
        write_length(self.out, b'$', bytes.len());
        self.out.extend_from_slice(bytes);
        self.out.extend_from_slice(CRLF);
    }

    /// A byte string, or null for `None`.
    #[inline]
    pub fn bulk_or_null(&mut self, bytes: Option<&[u8]>) {
        match bytes {
            Some(bytes) => self.bulk(bytes),
            None => self.null(),
        }
    }

    /// Null where a string could stand.
    #[inline]
    pub fn null(&mut self) {
        self.out.extend_from_slice(match self.version {
            Version::Resp2 => b"$-1\r\n",
            Version::Resp3 => b"_\r\n",
        });
    }

    /// Null where an array could stand: version 2 tells the two apart.
    pub fn null_array(&mut self) {
        self.out.extend_from_slice(match self.version {
            Version::Resp2 => b"*-1\r\n",
            Version::Resp3 => b"_\r\n",
        });
    }

    /// The head of an array; `len` replies follow.
    #[inline]
    pub fn array(&mut self, len: usize) {
        write_length(self.out, b'*', len);
    }

    /// The head of a map; `len` times two replies follow, key and value. Version 2: a flat array.
    pub fn map(&mut self, len: usize) {
        match self.version {
            Version::Resp2 => write_length(self.out, b'*', len.saturating_mul(2)),
            Version::Resp3 => write_length(self.out, b'%', len),
        }
    }

    /// The head of a set; `len` replies follow. Version 2: an array.
    pub fn set(&mut self, len: usize) {
        write_length(self.out, self.resp3_or(b'~', b'*'), len);
    }

    /// The head of a push, which comes without having been asked for; `len` replies follow.
    /// Version 2: an array.
    pub fn push(&mut self, len: usize) {
        write_length(self.out, self.resp3_or(b'>', b'*'), len);
    }

    /// A floating-point number, in the shortest form that reads back the same. Version 2: a byte
    /// string.
    pub fn double(&mut self, value: f64) {
        let mut digits = ryu::Buffer::new();
        let text = if value.is_nan() {
            "nan"
        } else if value.is_infinite() {
            if value > 0.0 { "inf" } else { "-inf" }
        } else {
            let text = digits.format_finite(value);
            text.strip_suffix(".0").unwrap_or(text)
        };
        self.line_or_bulk(b',', text);
    }

    /// True or false. Version 2: the integer 1 or 0.
    pub fn boolean(&mut self, value: bool) {
        self.out.extend_from_slice(match (self.version, value) {
            (Version::Resp2, true) => b":1\r\n",
            (Version::Resp2, false) => b":0\r\n",
            (Version::Resp3, true) => b"#t\r\n",
            (Version::Resp3, false) => b"#f\r\n",
        });
    }

    /// An integer of any size, in decimal digits. Version 2: a byte string.
    pub fn big_number(&mut self, digits: &str) {
        self.line_or_bulk(b'(', digits);
    }

    /// A text for humans with its format, three bytes such as `txt` or `mkd`. Version 2: a byte
    /// string without the format.
    pub fn verbatim(&mut self, format: &str, text: &str) {
        debug_assert_eq!(format.len(), 3, "the protocol has three bytes for the format");
        match self.version {
            Version::Resp2 => self.bulk(text.as_bytes()),
            Version::Resp3 => {
                write_length(self.out, b'=', format.len() + 1 + text.len());
                self.out.extend_from_slice(format.as_bytes());
                self.out.push(b':');
                self.out.extend_from_slice(text.as_bytes());
                self.out.extend_from_slice(CRLF);
            }
        }
    }

    fn resp3_or(&self, resp3: u8, resp2: u8) -> u8 {
        match self.version {
            Version::Resp2 => resp2,
            Version::Resp3 => resp3,
        }
    }

    fn line_or_bulk(&mut self, kind: u8, text: &str) {
        match self.version {
            Version::Resp2 => self.bulk(text.as_bytes()),
            Version::Resp3 => self.line(kind, text),
        }
    }

    /// A line end within the text would let whoever chose the text write replies of their own.
    fn line(&mut self, kind: u8, text: &str) {
        self.out.push(kind);
        let start = self.out.len();
        self.out.extend_from_slice(text.as_bytes());
        for byte in &mut self.out[start..] {
            if matches!(byte, b'\r' | b'\n') {
                *byte = b' ';
            }
        }
        self.out.extend_from_slice(CRLF);
    }
}

/// A type byte, a length and CRLF.
#[inline]
pub(super) fn write_length(out: &mut Vec<u8>, kind: u8, len: usize) {
    if len < 10 {
        // Most lengths of small requests and replies are one digit.
        out.extend_from_slice(&[kind, b'0' + len as u8, b'\r', b'\n']);
    } else {
        let mut digits = itoa::Buffer::new();
        write_header(out, kind, digits.format(len));
    }
}

#[inline]
fn write_header(out: &mut Vec<u8>, kind: u8, digits: &str) {
    out.reserve(HEADER_LEN_MAX);
    out.push(kind);
    out.extend_from_slice(digits.as_bytes());
    out.extend_from_slice(CRLF);
}
