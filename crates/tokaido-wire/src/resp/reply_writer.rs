//! A server's replies, in the protocol version that the client asked for.

use super::double::format_double;

pub(super) const CRLF: &[u8] = b"\r\n";

/// Maximum length of a type byte, a 64-bit number and CRLF together.
const HEADER_LEN_MAX: usize = 1 + 20 + 2;

/// A version of the protocol. A connection begins with version 2; `HELLO` may change it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// Has strings, errors, integers, arrays and null.
    Resp2,
    /// Also has maps, sets, doubles, booleans, big numbers, verbatim strings and pushes.
    Resp3,
}

/// Appends replies to a vector of bytes. Types that version 2 lacks are written as its nearest
/// equivalent, as in Redis.
///
/// An aggregate is its length followed by that many replies (a map: twice as many).
///
/// It may have a limit. A reply that would exceed it is not written, nor is anything after that,
/// until output is removed with [`truncate`](Self::truncate).
#[derive(Debug)]
pub struct ReplyWriter<'o> {
    out: &'o mut Vec<u8>,
    start: usize,
    version: Version,
    /// Maximum length of `out`.
    out_len_max: usize,
    is_over_limit: bool,
}

impl<'o> ReplyWriter<'o> {
    /// Creates a writer that appends to `out`.
    #[must_use]
    pub fn new(out: &'o mut Vec<u8>, version: Version) -> Self {
        let start = out.len();
        Self { out, start, version, out_len_max: usize::MAX, is_over_limit: false }
    }

    /// Limits further output to `bytes_max` bytes.
    pub fn limit(&mut self, bytes_max: usize) {
        self.out_len_max = self.out.len().saturating_add(bytes_max);
    }

    /// Whether something was omitted because of the limit.
    #[must_use]
    pub fn is_over_limit(&self) -> bool {
        self.is_over_limit
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

    /// The number of bytes written so far (without what was in the vector before).
    #[must_use]
    pub fn len(&self) -> usize {
        self.out.len() - self.start
    }

    /// Whether nothing has been written so far.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes what was written since [`len`](Self::len) was `len`, so that a half-written reply
    /// can be replaced by an error. Does nothing if less was written.
    pub fn truncate(&mut self, len: usize) {
        self.out.truncate(self.start.saturating_add(len));
        self.is_over_limit = false;
    }

    /// Moves what was written since [`len`](Self::len) was `last` to where it was `first`. It
    /// serves for the head of an aggregate whose length was not known earlier.
    pub fn move_before(&mut self, first: usize, last: usize) {
        let end = self.len();
        if let Some(written) = self.out.get_mut(self.start.saturating_add(first)..) {
            written.rotate_right(end.saturating_sub(last).min(written.len()));
        }
    }

    /// A status. Line ends in it are replaced by spaces.
    pub fn simple(&mut self, text: &str) {
        self.line(b'+', text.as_bytes());
    }

    /// `OK`.
    #[inline]
    pub fn ok(&mut self) {
        self.text(b"+OK\r\n");
    }

    /// An error: a code in capitals and a message, such as `ERR unknown command`. Line ends in it
    /// are replaced by spaces.
    pub fn error(&mut self, text: &str) {
        self.line(b'-', text.as_bytes());
    }

    /// An integer.
    #[inline]
    pub fn integer(&mut self, value: i64) {
        if self.has_room(0) {
            let mut digits = itoa::Buffer::new();
            write_header(self.out, b':', digits.format(value));
        }
    }

    /// A byte string.
    #[inline]
    pub fn bulk(&mut self, bytes: &[u8]) {
        if !self.has_room(bytes.len()) {
            return;
        }
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

    /// Null in place of a string.
    #[inline]
    pub fn null(&mut self) {
        self.text(match self.version {
            Version::Resp2 => b"$-1\r\n",
            Version::Resp3 => b"_\r\n",
        });
    }

    /// Null in place of an array: version 2 distinguishes the two.
    pub fn null_array(&mut self) {
        self.text(match self.version {
            Version::Resp2 => b"*-1\r\n",
            Version::Resp3 => b"_\r\n",
        });
    }

    /// The head of an array; `len` replies follow.
    #[inline]
    pub fn array(&mut self, len: usize) {
        self.head(b'*', len);
    }

    /// The head of a map; `len` times two replies follow, key and value. Version 2: a flat array.
    pub fn map(&mut self, len: usize) {
        match self.version {
            Version::Resp2 => self.head(b'*', len.saturating_mul(2)),
            Version::Resp3 => self.head(b'%', len),
        }
    }

    /// The head of an array of `len` pairs, each of which has a head of its own. Version 2: a flat array.
    pub fn pairs(&mut self, len: usize) {
        match self.version {
            Version::Resp2 => self.head(b'*', len.saturating_mul(2)),
            Version::Resp3 => self.head(b'*', len),
        }
    }

    /// The head of a pair; two replies follow. Version 2: nothing.
    pub fn pair(&mut self) {
        if self.version == Version::Resp3 {
            self.head(b'*', 2);
        }
    }

    /// The head of a map; `len` pairs follow. Version 2: an array of pairs, each with a head of its
    /// own.
    pub fn map_of_pairs(&mut self, len: usize) {
        self.head(self.resp3_or(b'%', b'*'), len);
    }

    /// The head of a pair of such a map; key and value follow. Version 3: nothing.
    pub fn map_pair(&mut self) {
        if self.version == Version::Resp2 {
            self.head(b'*', 2);
        }
    }

    /// The head of a set; `len` replies follow. Version 2: an array.
    pub fn set(&mut self, len: usize) {
        self.head(self.resp3_or(b'~', b'*'), len);
    }

    /// The head of a push, an out-of-band message; `len` replies follow. Version 2: an array.
    pub fn push(&mut self, len: usize) {
        self.head(self.resp3_or(b'>', b'*'), len);
    }

    /// A floating-point number, in the shortest form that reads back the same. Version 2: a byte
    /// string.
    pub fn double(&mut self, value: f64) {
        self.line_or_bulk(b',', format_double(value).as_bytes());
    }

    /// A floating-point number, already formatted by the caller. Version 2: a byte string.
    pub fn double_text(&mut self, text: &str) {
        self.line_or_bulk(b',', text.as_bytes());
    }

    /// True or false. Version 2: the integer 1 or 0.
    pub fn boolean(&mut self, value: bool) {
        self.text(match (self.version, value) {
            (Version::Resp2, true) => b":1\r\n",
            (Version::Resp2, false) => b":0\r\n",
            (Version::Resp3, true) => b"#t\r\n",
            (Version::Resp3, false) => b"#f\r\n",
        });
    }

    /// An integer of any size, in decimal digits. Version 2: a byte string.
    pub fn big_number(&mut self, digits: &str) {
        self.line_or_bulk(b'(', digits.as_bytes());
    }

    /// A text for humans with its format, three bytes such as `txt` or `mkd`. Version 2: a byte
    /// string without the format.
    pub fn verbatim(&mut self, format: &str, text: &str) {
        debug_assert_eq!(format.len(), 3, "the protocol has three bytes for the format");
        match self.version {
            Version::Resp2 => self.bulk(text.as_bytes()),
            Version::Resp3 => {
                if !self.has_room(text.len()) {
                    return;
                }
                write_length(self.out, b'=', format.len() + 1 + text.len());
                self.out.extend_from_slice(format.as_bytes());
                self.out.push(b':');
                self.out.extend_from_slice(text.as_bytes());
                self.out.extend_from_slice(CRLF);
            }
        }
    }

    /// Whether there is room for a text of `len` bytes, with its head.
    #[inline]
    fn has_room(&mut self, len: usize) -> bool {
        let end = self.out.len().saturating_add(len).saturating_add(HEADER_LEN_MAX + CRLF.len());
        self.is_over_limit |= end > self.out_len_max;
        !self.is_over_limit
    }

    #[inline]
    fn text(&mut self, text: &[u8]) {
        if self.has_room(0) {
            self.out.extend_from_slice(text);
        }
    }

    #[inline]
    fn head(&mut self, kind: u8, len: usize) {
        if self.has_room(0) {
            write_length(self.out, kind, len);
        }
    }

    fn resp3_or(&self, resp3: u8, resp2: u8) -> u8 {
        match self.version {
            Version::Resp2 => resp2,
            Version::Resp3 => resp3,
        }
    }

    fn line_or_bulk(&mut self, kind: u8, text: &[u8]) {
        match self.version {
            Version::Resp2 => self.bulk(text),
            Version::Resp3 => self.line(kind, text),
        }
    }

    /// Replaces line ends: otherwise whoever supplied the text could forge replies.
    fn line(&mut self, kind: u8, text: &[u8]) {
        if !self.has_room(text.len()) {
            return;
        }
        self.out.push(kind);
        let start = self.out.len();
        self.out.extend_from_slice(text);
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

#[cfg(test)]
mod tests {
    use super::*;

    type Write = fn(&mut ReplyWriter<'_>);

    /// Every reply in both versions, as a table for the golden file.
    #[test]
    fn replies_in_both_versions() {
        let replies: &[(&str, Write)] = &[
            ("ok", |w| w.ok()),
            ("simple", |w| w.simple("PONG")),
            ("simple with a line end", |w| w.simple("a\r\nb")),
            ("error", |w| w.error("ERR unknown command")),
            ("error with a line end", |w| w.error("ERR a\r\n+OK\nb")),
            ("integer 0", |w| w.integer(0)),
            ("integer least", |w| w.integer(i64::MIN)),
            ("integer most", |w| w.integer(i64::MAX)),
            ("bulk", |w| w.bulk(b"value")),
            ("bulk empty", |w| w.bulk(b"")),
            ("bulk binary", |w| w.bulk(b"\r\n\0\xff")),
            ("bulk of 10", |w| w.bulk(b"0123456789")),
            ("bulk or null: some", |w| w.bulk_or_null(Some(b"v"))),
            ("bulk or null: none", |w| w.bulk_or_null(None)),
            ("null", |w| w.null()),
            ("null array", |w| w.null_array()),
            ("array of 0", |w| w.array(0)),
            ("array of 12", |w| w.array(12)),
            ("map of 2", |w| w.map(2)),
            ("pairs: 3", |w| w.pairs(3)),
            ("pair", |w| w.pair()),
            ("set of 3", |w| w.set(3)),
            ("push of 4", |w| w.push(4)),
            ("double 3", |w| w.double(3.0)),
            ("double 0.1", |w| w.double(0.1)),
            ("double -0", |w| w.double(-0.0)),
            ("double 1e300", |w| w.double(1e300)),
            ("double inf", |w| w.double(f64::INFINITY)),
            ("double -inf", |w| w.double(f64::NEG_INFINITY)),
            ("double nan", |w| w.double(f64::NAN)),
            ("boolean true", |w| w.boolean(true)),
            ("boolean false", |w| w.boolean(false)),
            ("big number", |w| w.big_number("-12345678901234567890")),
            ("big number with a line end", |w| w.big_number("1\r\n2")),
            ("verbatim", |w| w.verbatim("txt", "a\nb")),
        ];
        let mut table = String::new();
        for (name, write) in replies {
            let [resp2, resp3] = [Version::Resp2, Version::Resp3].map(|version| {
                let mut out = Vec::new();
                write(&mut ReplyWriter::new(&mut out, version));
                out.escape_ascii().to_string()
            });
            table.push_str(&format!("{name:28}{resp2:34}{resp3}\n"));
        }
        insta::assert_snapshot!(table);
    }

    #[test]
    fn a_half_written_reply_can_be_replaced() {
        let mut out = b"+earlier\r\n".to_vec();
        let mut replies = ReplyWriter::new(&mut out, Version::Resp3);
        assert!(replies.is_empty());
        replies.ok();
        let before = replies.len();
        replies.array(2);
        replies.bulk(b"one");
        replies.truncate(before);
        replies.error("ERR no two");
        replies.truncate(1000);
        assert_eq!(out, b"+earlier\r\n+OK\r\n-ERR no two\r\n");
    }

    /// Writes one reply of every form.
    const WRITES: &[Write] = &[
        |w| w.simple("some text"),
        |w| w.ok(),
        |w| w.error("ERR no"),
        |w| w.integer(1),
        |w| w.bulk(b"some text"),
        |w| w.null(),
        |w| w.null_array(),
        |w| w.array(1),
        |w| w.map(1),
        |w| w.pairs(1),
        |w| w.pair(),
        |w| w.set(1),
        |w| w.push(1),
        |w| w.double(1.5),
        |w| w.boolean(true),
        |w| w.big_number("1"),
        |w| w.verbatim("txt", "some text"),
    ];

    #[test]
    fn nothing_is_written_beyond_the_limit() {
        for (form, write) in WRITES.iter().enumerate() {
            let mut out = b"+earlier\r\n".to_vec();
            let mut replies = ReplyWriter::new(&mut out, Version::Resp3);
            replies.limit(100);
            while !replies.is_over_limit() {
                write(&mut replies);
            }
            let len = replies.len();
            assert!(len <= 100, "{form}: {len}");
            WRITES.iter().for_each(|write| write(&mut replies));
            assert_eq!(replies.len(), len, "{form}");
            replies.truncate(0);
            replies.ok();
            assert_eq!(out, b"+earlier\r\n+OK\r\n");
        }
    }

    #[test]
    fn a_head_can_follow_what_it_announces() {
        let mut out = b"+earlier\r\n".to_vec();
        let mut replies = ReplyWriter::new(&mut out, Version::Resp3);
        replies.ok();
        let first = replies.len();
        replies.integer(1);
        replies.integer(2);
        let last = replies.len();
        replies.array(2);
        replies.move_before(first, last);
        assert_eq!(out, b"+earlier\r\n+OK\r\n*2\r\n:1\r\n:2\r\n");
    }

    #[test]
    fn the_version_can_change_between_replies() {
        let mut out = Vec::new();
        let mut replies = ReplyWriter::new(&mut out, Version::Resp2);
        replies.null();
        replies.set_version(Version::Resp3);
        assert_eq!(replies.version(), Version::Resp3);
        replies.null();
        assert_eq!(out, b"$-1\r\n_\r\n");
    }
}
