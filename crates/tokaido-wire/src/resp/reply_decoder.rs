//! Decodes the bytes of a server into replies.

use super::{
    error::ProtocolError,
    length::{Length, read_length},
    limits::{REPLY_DEPTH_MAX, REPLY_ELEMENTS_MAX, REPLY_LEN_MAX, REPLY_LINE_LEN_MAX},
    reply::Reply,
};

/// Maximum number of elements for which room is reserved before they arrive.
const ELEMENTS_RESERVED_MAX: usize = 16;

/// Decodes the replies of one connection. It remembers its position in a reply that arrives in
/// pieces.
#[derive(Debug, Default)]
pub struct ReplyDecoder {
    /// Where the next element begins.
    position: usize,
    /// How many bytes of the line that begins there are known to contain no line end.
    scanned: usize,
    /// Number of elements of the reply announced so far.
    elements: usize,
    /// The open aggregates, the outermost first. They are kept here and not on the call stack, so
    /// that nesting needs no recursion and decoding can resume within a reply.
    open: Vec<Aggregate>,
    failed: Option<ProtocolError>,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Array,
    Map,
    Set,
    Push,
    /// Attributes of the reply that follows. They are read and dropped.
    Attribute,
}

/// An aggregate that still lacks `remaining` elements.
#[derive(Debug)]
struct Aggregate {
    kind: Kind,
    remaining: usize,
    elements: Vec<Reply>,
}

impl Aggregate {
    /// The reply made of all elements; an attribute makes none.
    fn finish(self) -> Option<Reply> {
        match self.kind {
            Kind::Array => Some(Reply::Array(self.elements)),
            Kind::Set => Some(Reply::Set(self.elements)),
            Kind::Push => Some(Reply::Push(self.elements)),
            Kind::Map => {
                let mut pairs = Vec::with_capacity(self.elements.len() / 2);
                let mut elements = self.elements.into_iter();
                while let (Some(key), Some(value)) = (elements.next(), elements.next()) {
                    pairs.push((key, value));
                }
                Some(Reply::Map(pairs))
            }
            Kind::Attribute => None,
        }
    }
}

/// What is found at a position, and where the next element begins.
enum Element {
    Whole(Reply),
    Open(Aggregate),
}

type Found<T> = Result<Option<(T, usize)>, ProtocolError>;

impl ReplyDecoder {
    /// A decoder for a new connection.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Tries to decode one reply from the front of `input`. Returns it with its length in bytes.
    ///
    /// After `None`, call it again with the same bytes and more after them: it resumes where it
    /// stopped. After a reply, drop its bytes from the front before the next call.
    ///
    /// # Errors
    ///
    /// If the bytes are not the protocol or exceed a limit. Every later call returns the same
    /// error: the connection has to be closed.
    pub fn decode(&mut self, input: &[u8]) -> Result<Option<(Reply, usize)>, ProtocolError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let result = self.decode_next(input);
        if let Err(error) = result {
            *self = Self { failed: Some(error), ..Self::default() };
        }
        result
    }

    fn decode_next(&mut self, input: &[u8]) -> Result<Option<(Reply, usize)>, ProtocolError> {
        while let Some((element, next)) = self.read_element(input)? {
            if next > REPLY_LEN_MAX {
                return Err(ProtocolError::TooBigReply);
            }
            (self.position, self.scanned) = (next, 0);
            let finished = match element {
                Element::Whole(reply) => self.close_finished(reply),
                Element::Open(aggregate) => self.open_aggregate(aggregate)?,
            };
            if let Some(reply) = finished {
                (self.position, self.elements) = (0, 0);
                return Ok(Some((reply, next)));
            }
        }
        Ok(None)
    }

    /// Opens an aggregate. One without elements is complete at once, and may complete the reply.
    fn open_aggregate(&mut self, aggregate: Aggregate) -> Result<Option<Reply>, ProtocolError> {
        // `remaining` was checked against the limit, so the sum cannot overflow.
        self.elements += aggregate.remaining;
        if self.elements > REPLY_ELEMENTS_MAX {
            return Err(ProtocolError::TooBigReply);
        }
        if aggregate.remaining == 0 {
            return Ok(aggregate.finish().and_then(|reply| self.close_finished(reply)));
        }
        if self.open.len() >= REPLY_DEPTH_MAX {
            return Err(ProtocolError::TooDeepReply);
        }
        self.open.push(aggregate);
        Ok(None)
    }

    /// Adds an element to its aggregate, and closes the aggregates that it completes. Returns the
    /// reply if it is complete.
    fn close_finished(&mut self, mut element: Reply) -> Option<Reply> {
        while let Some(mut aggregate) = self.open.pop() {
            aggregate.elements.push(element);
            aggregate.remaining -= 1;
            if aggregate.remaining > 0 {
                self.open.push(aggregate);
                return None;
            }
            element = aggregate.finish()?;
        }
        Some(element)
    }

    fn read_element(&mut self, input: &[u8]) -> Found<Element> {
        let Some(&kind) = input.get(self.position) else { return Ok(None) };
        let found = match kind {
            b'$' | b'!' | b'=' => self.read_string(input, kind)?,
            b'*' => return self.read_aggregate(input, Kind::Array, 1),
            b'%' => return self.read_aggregate(input, Kind::Map, 2),
            b'~' => return self.read_aggregate(input, Kind::Set, 1),
            b'>' => return self.read_aggregate(input, Kind::Push, 1),
            b'|' => return self.read_aggregate(input, Kind::Attribute, 2),
            b'+' | b'-' | b':' | b'_' | b',' | b'#' | b'(' => match self.read_line(input)? {
                Some((line, next)) => Some((parse_line(kind, line)?, next)),
                None => None,
            },
            _ => return Err(ProtocolError::ReplyType(kind)),
        };
        Ok(found.map(|(reply, next)| (Element::Whole(reply), next)))
    }

    fn read_aggregate(&self, input: &[u8], kind: Kind, per_entry: usize) -> Found<Element> {
        match read_length(input, self.position + 1) {
            Length::Incomplete => Ok(None),
            Length::Value { len, next } if len <= REPLY_ELEMENTS_MAX => {
                let remaining = len * per_entry;
                let elements = Vec::with_capacity(remaining.min(ELEMENTS_RESERVED_MAX));
                Ok(Some((Element::Open(Aggregate { kind, remaining, elements }), next)))
            }
            Length::Negative { next } if matches!(kind, Kind::Array) => {
                Ok(Some((Element::Whole(Reply::Null), next)))
            }
            _ => Err(ProtocolError::MultibulkLength),
        }
    }

    /// A string whose length is declared: bulk, error or verbatim.
    fn read_string(&self, input: &[u8], kind: u8) -> Found<Reply> {
        let (len, start) = match read_length(input, self.position + 1) {
            Length::Incomplete => return Ok(None),
            Length::Value { len, next } if len <= REPLY_LEN_MAX => (len, next),
            Length::Negative { next } if kind == b'$' => return Ok(Some((Reply::Null, next))),
            _ => return Err(ProtocolError::BulkLength),
        };
        let end = start + len;
        if end > REPLY_LEN_MAX {
            return Err(ProtocolError::TooBigReply);
        }
        match input.get(end..) {
            Some([b'\r', b'\n', ..]) => {}
            None | Some([] | [b'\r']) => return Ok(None),
            Some(_) => return Err(ProtocolError::ExpectedLineEnd),
        }
        let bytes = &input[start..end];
        let reply = match kind {
            b'$' => Reply::Bulk(bytes.to_vec()),
            b'!' => Reply::Error(text_of(bytes)),
            _ => match bytes.split_at_checked(3) {
                Some((format, [b':', text @ ..])) if format.is_ascii() => {
                    Reply::Verbatim { format: text_of(format), text: text_of(text) }
                }
                _ => return Err(ProtocolError::ReplyValue(kind)),
            },
        };
        Ok(Some((reply, end + 2)))
    }

    /// The line after the type byte.
    fn read_line<'i>(&mut self, input: &'i [u8]) -> Found<&'i [u8]> {
        let start = self.position + 1;
        let rest = &input[start..];
        let window = &rest[..rest.len().min(REPLY_LINE_LEN_MAX + 1)];
        let unscanned = window.get(self.scanned..).unwrap_or_default();
        let Some(found) = memchr::memchr2(b'\r', b'\n', unscanned) else {
            self.scanned = window.len();
            let too_long = window.len() > REPLY_LINE_LEN_MAX;
            return if too_long { Err(ProtocolError::ReplyLine) } else { Ok(None) };
        };
        let len = self.scanned + found;
        match &rest[len..] {
            [b'\r', b'\n', ..] => Ok(Some((&rest[..len], start + len + 2))),
            [b'\r'] => {
                self.scanned = len;
                Ok(None)
            }
            _ => Err(ProtocolError::ReplyLine),
        }
    }
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn parse_line(kind: u8, line: &[u8]) -> Result<Reply, ProtocolError> {
    let invalid = ProtocolError::ReplyValue(kind);
    Ok(match (kind, line) {
        (b'+', _) => Reply::Simple(text_of(line)),
        (b'-', _) => Reply::Error(text_of(line)),
        (b'_', b"") => Reply::Null,
        (b'#', b"t") => Reply::Boolean(true),
        (b'#', b"f") => Reply::Boolean(false),
        (b':', _) => Reply::Integer(parse(line).ok_or(invalid)?),
        (b',', _) => Reply::Double(parse(line).ok_or(invalid)?),
        (b'(', _) if is_integer(line) => Reply::BigNumber(text_of(line)),
        _ => return Err(invalid),
    })
}

fn parse<T: std::str::FromStr>(line: &[u8]) -> Option<T> {
    std::str::from_utf8(line).ok()?.parse().ok()
}

fn is_integer(line: &[u8]) -> bool {
    let digits = match line {
        [b'+' | b'-', digits @ ..] => digits,
        digits => digits,
    };
    !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(input: &str, expected: Reply) {
        let found = ReplyDecoder::new().decode(input.as_bytes());
        assert_eq!(found, Ok(Some((expected, input.len()))), "{input:?}");
    }

    #[track_caller]
    fn check_error(input: &[u8], expected: ProtocolError) {
        let mut decoder = ReplyDecoder::new();
        assert_eq!(decoder.decode(input), Err(expected));
        assert_eq!(decoder.decode(b"+OK\r\n"), Err(expected), "an error is final");
    }

    fn bulk(text: &str) -> Reply {
        Reply::Bulk(text.into())
    }

    #[test]
    fn decodes_every_type() {
        check("+OK\r\n", Reply::Simple("OK".into()));
        check("-ERR no\r\n", Reply::Error("ERR no".into()));
        check("!6\r\nERR\r\nx\r\n", Reply::Error("ERR\r\nx".into()));
        check(":-9223372036854775808\r\n", Reply::Integer(i64::MIN));
        check("$4\r\na\r\nb\r\n", bulk("a\r\nb"));
        check("$0\r\n\r\n", bulk(""));
        for null in ["$-1\r\n", "*-1\r\n", "_\r\n"] {
            check(null, Reply::Null);
        }
        check("*2\r\n:1\r\n*0\r\n", Reply::Array(vec![Reply::Integer(1), Reply::Array(vec![])]));
        check("%1\r\n$1\r\nk\r\n_\r\n", Reply::Map(vec![(bulk("k"), Reply::Null)]));
        check("~1\r\n#t\r\n", Reply::Set(vec![Reply::Boolean(true)]));
        check(">1\r\n#f\r\n", Reply::Push(vec![Reply::Boolean(false)]));
        check(",-1.5e3\r\n", Reply::Double(-1500.0));
        check(",inf\r\n", Reply::Double(f64::INFINITY));
        check("(-12345678901234567890\r\n", Reply::BigNumber("-12345678901234567890".into()));
        let verbatim = Reply::Verbatim { format: "txt".into(), text: "a:b".into() };
        check("=7\r\ntxt:a:b\r\n", verbatim);
    }

    #[test]
    fn attributes_are_dropped() {
        check("|1\r\n+ttl\r\n:3600\r\n|0\r\n+OK\r\n", Reply::Simple("OK".into()));
        let expected = Reply::Array(vec![Reply::Integer(1), Reply::Integer(2)]);
        check("*2\r\n:1\r\n|1\r\n+k\r\n*1\r\n_\r\n:2\r\n", expected);
    }

    #[test]
    fn goes_on_where_it_was() {
        let mut decoder = ReplyDecoder::new();
        let mut input = b"*2\r\n+one\r\n+tw".to_vec();
        assert_eq!(decoder.decode(&input), Ok(None));
        // If these bytes were read again, this would be an error.
        input[0] = b'?';
        input[4] = b'?';
        input.extend_from_slice(b"o\r\n:5\r\n");
        let expected = Reply::Array(vec![Reply::Simple("one".into()), Reply::Simple("two".into())]);
        assert_eq!(decoder.decode(&input), Ok(Some((expected, 16))));
        assert_eq!(decoder.decode(&input[16..]), Ok(Some((Reply::Integer(5), 4))));
        assert_eq!(decoder.elements, 0, "the limit is for one reply, not for the connection");
    }

    #[test]
    fn refuses_what_is_not_the_protocol() {
        check_error(b"?1\r\n", ProtocolError::ReplyType(b'?'));
        check_error(b"+a\nb\r\n", ProtocolError::ReplyLine);
        check_error(b"+a\rb\r\n", ProtocolError::ReplyLine);
        check_error(b"$1\r\nab\r\n", ProtocolError::ExpectedLineEnd);
        check_error(b"!-1\r\n", ProtocolError::BulkLength);
        check_error(b"$?\r\n", ProtocolError::BulkLength);
        check_error(b"%-1\r\n", ProtocolError::MultibulkLength);
        for (kind, text) in [
            (b':', ":\r\n"),
            (b':', ":9223372036854775808\r\n"),
            (b'#', "#x\r\n"),
            (b'_', "_x\r\n"),
            (b',', ",1,5\r\n"),
            (b'(', "(-\r\n"),
            (b'(', "(1.5\r\n"),
            (b'=', "=3\r\ntxt\r\n"),
            (b'=', "=4\r\ntxt-\r\n"),
        ] {
            check_error(text.as_bytes(), ProtocolError::ReplyValue(kind));
        }
    }

    #[test]
    fn every_size_has_a_limit() {
        let deepest = format!("{}:1\r\n", "*1\r\n".repeat(REPLY_DEPTH_MAX));
        assert!(matches!(ReplyDecoder::new().decode(deepest.as_bytes()), Ok(Some(_))));
        let deeper = "*1\r\n".repeat(REPLY_DEPTH_MAX + 1);
        check_error(deeper.as_bytes(), ProtocolError::TooDeepReply);

        let longest = format!("+{}\r\n", "x".repeat(REPLY_LINE_LEN_MAX));
        assert!(matches!(ReplyDecoder::new().decode(longest.as_bytes()), Ok(Some(_))));
        let longer = format!("+{}", "x".repeat(REPLY_LINE_LEN_MAX + 1));
        check_error(longer.as_bytes(), ProtocolError::ReplyLine);

        let most = format!("*{}\r\n", REPLY_ELEMENTS_MAX + 1);
        check_error(most.as_bytes(), ProtocolError::MultibulkLength);
        let in_total = format!("*{REPLY_ELEMENTS_MAX}\r\n*1\r\n");
        check_error(in_total.as_bytes(), ProtocolError::TooBigReply);
        let as_pairs = format!("%{}\r\n", REPLY_ELEMENTS_MAX / 2 + 1);
        check_error(as_pairs.as_bytes(), ProtocolError::TooBigReply);

        let bulk = format!("${}\r\n", REPLY_LEN_MAX + 1);
        check_error(bulk.as_bytes(), ProtocolError::BulkLength);
        let with_its_header = format!("${REPLY_LEN_MAX}\r\n");
        check_error(with_its_header.as_bytes(), ProtocolError::TooBigReply);
    }
}
