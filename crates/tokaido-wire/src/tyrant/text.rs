//! Lines of memcached's text protocol as Tokyo Tyrant understands them. Flags, expiry times and versions
//! of records are ignored, keys have any length, and a word counts as the number that it begins with.

use crate::lenient::integer;

/// The words that a line may begin with.
const COMMANDS: [&[u8]; 14] = [
    b"set",
    b"add",
    b"replace",
    b"append",
    b"prepend",
    b"get",
    b"gets",
    b"delete",
    b"incr",
    b"decr",
    b"stats",
    b"flush_all",
    b"version",
    b"quit",
];

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request<'a> {
    /// `set`, `add`, `replace`, `append` or `prepend`.
    Store {
        /// Which of them.
        mode: Mode,
        /// The key.
        key: &'a [u8],
        /// The value.
        value: &'a [u8],
    },
    /// `get` or `gets`.
    Get(Words<'a>),
    /// `delete`.
    Delete {
        /// The key.
        key: &'a [u8],
    },
    /// `incr` or `decr`.
    Add {
        /// The key.
        key: &'a [u8],
        /// The amount to add to the stored number.
        by: i64,
    },
    /// `stats`.
    Stats,
    /// `flush_all`.
    FlushAll,
    /// `version`.
    Version,
    /// `quit`.
    Quit,
    /// A command with too few words: the client gets an error, and the connection is closed.
    TooFew,
    /// Not a command: the connection is closed without a reply.
    Unknown,
}

/// Which of the storage commands it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "they are named as their commands")]
pub enum Mode {
    Set,
    Add,
    Replace,
    Append,
    Prepend,
}

/// Whether a line begins with a command.
#[must_use]
pub fn is_command(line: &[u8]) -> bool {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    Words(line).next().is_some_and(|word| COMMANDS.contains(&word))
}

/// The words of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Words<'a>(&'a [u8]);

impl<'a> Iterator for Words<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let is_space = |byte: &u8| matches!(byte, b' ' | b'\t');
        let start = self.0.iter().position(|byte| !is_space(byte))?;
        let rest = &self.0[start..];
        let end = rest.iter().position(is_space).unwrap_or(rest.len());
        let (word, rest) = rest.split_at(end);
        self.0 = rest;
        Some(word)
    }
}

/// The outcome of decoding.
#[derive(Debug)]
pub enum Decoded<'a> {
    /// The input ends within a request.
    Incomplete,
    /// The input begins with a whole request.
    Complete {
        /// Its length in bytes: where the next one begins.
        consumed: usize,
        /// Whether it wants no reply.
        is_quiet: bool,
        /// The request.
        request: Request<'a>,
    },
}

/// The input is not the protocol, or exceeds the limit: the connection is closed without a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    /// A value is not followed by a line end.
    #[error("no line end is behind the value")]
    Unterminated,
    /// A request is longer than the limit.
    #[error("a request has at most {max} bytes here")]
    TooLong {
        /// The limit.
        max: usize,
    },
}

/// Decodes the requests of one connection. It copies nothing and allocates nothing.
#[derive(Debug)]
pub struct Decoder {
    request_len_max: usize,
    /// How much of the input contains no line end.
    searched: usize,
}

impl Decoder {
    /// Creates a decoder for requests of at most `request_len_max` bytes.
    #[must_use]
    pub fn new(request_len_max: usize) -> Self {
        Self { request_len_max, searched: 0 }
    }

    /// Decodes the request at the start of `input`, which must begin where the last one ended.
    ///
    /// # Errors
    /// [`TextError`], after which it is unclear where the next request begins.
    pub fn decode<'a>(&mut self, input: &'a [u8]) -> Result<Decoded<'a>, TextError> {
        let searched = std::mem::take(&mut self.searched);
        let found = memchr::memchr(b'\n', input.get(searched..).unwrap_or_default());
        let Some(end) = found.map(|place| searched + place) else {
            self.check_len(input.len() as u64)?;
            self.searched = input.len();
            return Ok(Decoded::Incomplete);
        };
        self.check_len(end as u64 + 1)?;
        // The line is parsed again when more of its value arrives.
        self.searched = end;
        let line = &input[..end];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let decoded = self.decode_line(line, end + 1, input)?;
        if let Decoded::Complete { .. } = decoded {
            self.searched = 0;
        }
        Ok(decoded)
    }

    fn decode_line<'a>(
        &self,
        line: &'a [u8],
        line_len: usize,
        input: &'a [u8],
    ) -> Result<Decoded<'a>, TextError> {
        let mut words = Words(line);
        let command = words.next().unwrap_or_default();
        let arguments = words.clone();
        let mut word = || words.next();
        let complete =
            |is_quiet, request| Ok(Decoded::Complete { consumed: line_len, is_quiet, request });
        let is_noreply = |word: Option<&[u8]>| word == Some(b"noreply");
        let mode = match command {
            b"set" => Mode::Set,
            b"add" => Mode::Add,
            b"replace" => Mode::Replace,
            b"append" => Mode::Append,
            b"prepend" => Mode::Prepend,
            b"get" | b"gets" => {
                let is_whole = arguments.clone().next().is_some();
                let request = if is_whole { Request::Get(arguments) } else { Request::TooFew };
                return complete(false, request);
            }
            b"delete" => {
                let Some(key) = word() else { return complete(false, Request::TooFew) };
                let is_quiet = arguments.skip(1).take(2).any(|word| is_noreply(Some(word)));
                return complete(is_quiet, Request::Delete { key });
            }
            b"incr" | b"decr" => {
                let (Some(key), Some(by)) = (word(), word()) else {
                    return complete(false, Request::TooFew);
                };
                let by = integer(by);
                let by = if command == b"incr" { by } else { by.saturating_neg() };
                return complete(is_noreply(word()), Request::Add { key, by });
            }
            b"flush_all" => {
                let is_quiet = arguments.take(2).any(|word| is_noreply(Some(word)));
                return complete(is_quiet, Request::FlushAll);
            }
            b"stats" => return complete(false, Request::Stats),
            b"version" => return complete(false, Request::Version),
            b"quit" => return complete(false, Request::Quit),
            _ => return complete(false, Request::Unknown),
        };
        let (Some(key), Some(_), Some(_), Some(len)) = (word(), word(), word(), word()) else {
            return complete(false, Request::TooFew);
        };
        let len = u64::try_from(integer(len)).unwrap_or(0);
        let whole = (line_len as u64 + 2).saturating_add(len);
        self.check_len(whole)?;
        // It is within the limit, which is a `usize`.
        let whole = whole as usize;
        let Some(block) = input.get(line_len..whole) else {
            // Only a line end may follow the value, however little of it has arrived.
            let end = input.get(whole - 2..).unwrap_or_default();
            return match b"\r\n".starts_with(end) {
                true => Ok(Decoded::Incomplete),
                false => Err(TextError::Unterminated),
            };
        };
        let value = block.strip_suffix(b"\r\n").ok_or(TextError::Unterminated)?;
        let request = Request::Store { mode, key, value };
        Ok(Decoded::Complete { consumed: whole, is_quiet: is_noreply(word()), request })
    }

    fn check_len(&self, len: u64) -> Result<(), TextError> {
        let max = self.request_len_max;
        if len > max as u64 { Err(TextError::TooLong { max }) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn complete(input: &[u8]) -> (usize, bool, Request<'_>) {
        match Decoder::new(1 << 16).decode(input) {
            Ok(Decoded::Complete { consumed, is_quiet, request }) => (consumed, is_quiet, request),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn requests_are_understood() {
        let store = |mode, key, value| Request::Store { mode, key, value };
        let cases: [(&[u8], bool, Request<'_>); 14] = [
            (b"set k 0 0 1\r\nv\r\n", false, store(Mode::Set, b"k", b"v")),
            (b"add k x y 2 noreply\nvv\r\n", true, store(Mode::Add, b"k", b"vv")),
            (b"replace\tk 0 0 0\r\n\r\n", false, store(Mode::Replace, b"k", b"")),
            (b"append k 0 0 -1\r\n\r\n", false, store(Mode::Append, b"k", b"")),
            (b" prepend k 0 0 3x\r\n\n\r\n\r\n", false, store(Mode::Prepend, b"k", b"\n\r\n")),
            (b"delete k 0 noreply\r\n", true, Request::Delete { key: b"k" }),
            (b"delete k noreply\r\n", true, Request::Delete { key: b"k" }),
            (b"incr k 5\r\n", false, Request::Add { key: b"k", by: 5 }),
            (b"decr k 5 noreply\r\n", true, Request::Add { key: b"k", by: -5 }),
            (b"flush_all 3 noreply\r\n", true, Request::FlushAll),
            (b"stats items\r\n", false, Request::Stats),
            (b"set k 0 0\r\n", false, Request::TooFew),
            (b"get\r\n", false, Request::TooFew),
            (b"\r\n", false, Request::Unknown),
        ];
        for (input, is_quiet, request) in cases {
            let whole = (input.len(), is_quiet, request);
            assert_eq!(complete(input), whole, "{:?}", input.escape_ascii().to_string());
        }
        let (_, _, request) = complete(b"gets a  b\tc \r\n");
        let Request::Get(keys) = request else { panic!("{request:?}") };
        assert_eq!(keys.collect::<Vec<_>>(), [b"a", b"b", b"c"]);
        assert_eq!(complete(b"mg k\r\n").2, Request::Unknown);
        assert!(!is_command(b"mg k") && !is_command(b"") && is_command(b" get\tk"));
        for command in COMMANDS {
            assert!(is_command(command));
            let line = [command, b"\n"].concat();
            assert_ne!(complete(&line).2, Request::Unknown, "{}", command.escape_ascii());
        }
    }

    #[test]
    fn what_cannot_be_is_refused_as_soon_as_it_shows() {
        let mut decoder = Decoder::new(64);
        let decode = |input: &[u8]| decoder.decode(input).map(drop);
        let mut decode = decode;
        assert_eq!(decode(b"set k 0 0 1\r\nvx"), Err(TextError::Unterminated));
        let too_long = Err(TextError::TooLong { max: 64 });
        assert_eq!(decode(b"set k 0 0 60\r\n"), too_long);
        assert_eq!(decode(b"set k 0 0 99999999999999999999\r\n"), too_long);
        assert_eq!(decode(&[b'k'; 65]), too_long);
    }
}
