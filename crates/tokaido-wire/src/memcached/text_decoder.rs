//! Decodes the bytes of a connection into requests of the text protocol.

use std::ops::RangeInclusive;

use super::{
    commands::{self, Command, Mode, Verb},
    error::{ProtocolError, RequestError},
    limits::{CREDENTIALS_LEN_MAX, KEY_LEN_MAX, LINE_LEN_MAX, Limits},
    meta::{self, MetaKey},
    number,
    request::{Decoded, Exptime, Request, Store, Words},
};

/// Maximum number of words of a line that are kept separately.
const WORDS_MAX: usize = 23;

/// Maximum number of spaces at the start of a long line.
const LEADING_SPACES_MAX: usize = 100;

/// Length of the line end after a value.
const LINE_END_LEN: usize = 2;

/// Decodes the requests of one connection. It copies only keys in base64.
#[derive(Debug)]
pub struct TextDecoder {
    limits: Limits,
    /// Number of bytes at the start of the input that contain no line end.
    scanned: usize,
    /// Bytes of a refused value that are still to come.
    skips: usize,
}

/// The outcome of decoding the credentials that a client has to send first.
#[derive(Debug, PartialEq, Eq)]
pub enum Credentials<'a> {
    /// The input ends within them.
    Incomplete,
    /// The credentials are complete.
    Given {
        /// Their length in bytes, with the line before them.
        consumed: usize,
        /// The user's name and the password. `None` if they do not have that form.
        words: Option<(&'a [u8], &'a [u8])>,
    },
    /// Their line end is missing.
    Unterminated {
        /// Their length in bytes, with the line before them.
        consumed: usize,
    },
    /// Something else was sent.
    Other {
        /// Its length in bytes.
        consumed: usize,
    },
}

/// A line, taken apart.
struct Line<'a> {
    text: &'a [u8],
    words: [&'a [u8]; WORDS_MAX],
    /// The number of words, of which only as many as fit are in `words`.
    count: usize,
    /// What follows the line end.
    rest: &'a [u8],
}

impl<'a> Line<'a> {
    fn new(text: &'a [u8], rest: &'a [u8]) -> Self {
        let (mut words, mut count) = ([&b""[..]; WORDS_MAX], 0);
        for word in Words(text) {
            if count == WORDS_MAX {
                count += 1;
                break;
            }
            words[count] = word;
            count += 1;
        }
        Self { text, words, count, rest }
    }

    /// The words after the first `n`.
    fn after(&self, n: usize) -> Words<'a> {
        let mut words = Words(self.text);
        for _ in 0..n {
            words.next();
        }
        words
    }

    fn is_quiet(&self) -> bool {
        let last = self.count.min(WORDS_MAX).wrapping_sub(1);
        self.words.get(last).is_some_and(|word| *word == b"noreply")
    }
}

/// A request, or what is missing from one.
#[allow(clippy::large_enum_variant, reason = "it lives on the stack, for one request")]
enum Step<'a> {
    /// The request, the length of what belongs to it after the line, and whether no reply is wanted.
    Done(Request<'a>, usize, bool),
    Incomplete,
}

impl<'a> Step<'a> {
    fn line(request: Request<'a>) -> Self {
        Self::Done(request, 0, false)
    }

    fn refused(error: RequestError, is_quiet: bool) -> Self {
        Self::Done(Request::refused(error), 0, is_quiet)
    }
}

impl TextDecoder {
    /// Creates a decoder for a new connection.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { limits, scanned: 0, skips: 0 }
    }

    /// Skips `len` bytes after a refused request; to be called once the request is answered.
    pub fn skip(&mut self, len: usize) {
        self.skips += len;
    }

    /// Decodes the request at the start of the input. Until it is complete, the caller passes the
    /// same bytes again, with more after them.
    ///
    /// # Errors
    /// If the connection has to be closed.
    pub fn decode<'a>(&mut self, input: &'a [u8]) -> Result<Decoded<'a>, ProtocolError> {
        if self.skips > 0 {
            let consumed = self.skips.min(input.len());
            self.skips -= consumed;
            return Ok(if consumed == 0 {
                Decoded::Incomplete
            } else {
                Decoded::Skipped { consumed }
            });
        }
        let keys_max = self.limits.keys_line_len_max;
        let Some(end) = self.line_end(input, keys_max)? else { return Ok(Decoded::Incomplete) };
        let line = Line::new(text_of(&input[..end]), &input[end + 1..]);
        let command = commands::find(line.words[0]);
        match self.read(&line, command)? {
            Step::Incomplete => {
                self.scanned = end;
                Ok(Decoded::Incomplete)
            }
            Step::Done(request, after, is_quiet) => {
                self.scanned = 0;
                Ok(Decoded::Complete { consumed: end + 1 + after, command, is_quiet, request })
            }
        }
    }

    /// Decodes what a client that has to authenticate sends first: a value, under any key, which
    /// consists of a user name and a password. A line of keys may be no longer than any other.
    ///
    /// # Errors
    /// If the connection has to be closed.
    pub fn decode_credentials<'a>(
        &mut self,
        input: &'a [u8],
    ) -> Result<Credentials<'a>, ProtocolError> {
        let Some(end) = self.line_end(input, 0)? else { return Ok(Credentials::Incomplete) };
        let line = Line::new(text_of(&input[..end]), &input[end + 1..]);
        let size = number::unsigned(line.words[4]).filter(|_| line.count >= 5);
        let (Some(size), b"set") = (size, line.words[0]) else {
            self.scanned = 0;
            return Ok(Credentials::Other { consumed: end + 1 });
        };
        let size = usize::try_from(size).ok().filter(|&size| size <= CREDENTIALS_LEN_MAX);
        let size = size.ok_or(ProtocolError::CredentialsLength)?;
        let Some(value) = line.rest.get(..size + LINE_END_LEN) else {
            self.scanned = end;
            return Ok(Credentials::Incomplete);
        };
        self.scanned = 0;
        let consumed = end + 1 + value.len();
        let Some(value) = value.strip_suffix(b"\r\n") else {
            return Ok(Credentials::Unterminated { consumed });
        };
        let mut words = Words(value);
        let words = words.next().zip(words.next());
        Ok(Credentials::Given { consumed, words })
    }

    /// Where the first line ends. A line of keys may have up to `keys_max` bytes.
    fn line_end(&mut self, input: &[u8], keys_max: usize) -> Result<Option<usize>, ProtocolError> {
        let end = memchr::memchr(b'\n', &input[self.scanned..]).map(|end| self.scanned + end);
        self.scanned = end.unwrap_or(input.len());
        if self.scanned < LINE_LEN_MAX {
            return Ok(end);
        }
        let max = if has_keys(input) { keys_max.max(LINE_LEN_MAX) } else { LINE_LEN_MAX };
        if self.scanned < max { Ok(end) } else { Err(ProtocolError::LineLength { max }) }
    }

    fn read<'a>(
        &self,
        line: &Line<'a>,
        command: Option<&Command>,
    ) -> Result<Step<'a>, ProtocolError> {
        let Some(command) = command else {
            let last = line.words[line.count.clamp(1, WORDS_MAX) - 1];
            if last.starts_with(b"HTTP/") {
                return Err(ProtocolError::Http);
            }
            return Ok(Step::refused(RequestError::Unknown, false));
        };
        if !word_counts(command.verb).contains(&line.count) {
            return Ok(Step::refused(RequestError::Unknown, false));
        }
        Ok(self.read_command(line, command.verb))
    }

    fn read_command<'a>(&self, line: &Line<'a>, verb: Verb) -> Step<'a> {
        match verb {
            Verb::Get | Verb::Gets | Verb::Gat | Verb::Gats => read_get(line, verb),
            Verb::Store(mode) => self.read_store(line, mode),
            Verb::Delete => read_delete(line),
            Verb::Incr | Verb::Decr | Verb::Touch => read_change(line, verb),
            Verb::FlushAll => read_flush(line),
            Verb::Verbosity => match number::unsigned_32(line.words[1]) {
                Some(level) => Step::Done(Request::Verbosity { level }, 0, line.is_quiet()),
                None => Step::refused(RequestError::Format, line.is_quiet()),
            },
            Verb::Stats => Step::line(Request::Stats { arguments: line.after(1) }),
            Verb::Version => Step::line(Request::Version),
            Verb::Quit => Step::line(Request::Quit),
            Verb::MetaSet => self.read_meta_set(line),
            Verb::MetaGet | Verb::MetaDelete | Verb::MetaArithmetic => read_meta(line, verb),
            Verb::MetaNoop => Step::line(Request::MetaNoop),
            Verb::MetaDebug => read_debug(line),
        }
    }

    fn read_store<'a>(&self, line: &Line<'a>, mode: Mode) -> Step<'a> {
        let is_quiet = line.is_quiet();
        let Some((store, len)) = store_of(line, mode) else {
            return Step::refused(RequestError::Format, is_quiet);
        };
        if len > self.limits.value_len_max {
            let forget = (mode == Mode::Set).then(|| MetaKey::plain(store.key));
            let (error, skip) = (RequestError::TooLarge, len + LINE_END_LEN);
            return Step::Done(Request::Refused { error, forget, skip }, 0, is_quiet);
        }
        match value_of(line, len) {
            None => Step::Incomplete,
            Some(Ok(value)) => {
                Step::Done(Request::Store(Store { value, ..store }), len + LINE_END_LEN, is_quiet)
            }
            Some(Err(error)) => Step::Done(Request::refused(error), len + LINE_END_LEN, is_quiet),
        }
    }

    fn read_meta_set<'a>(&self, line: &Line<'a>) -> Step<'a> {
        let refused = |error| Step::refused(error, false);
        if line.words[1].len() > KEY_LEN_MAX || line.count == 2 {
            return refused(RequestError::Format);
        }
        let len = number::signed_32(line.words[2]).and_then(value_len);
        let Some(len) = len else { return refused(RequestError::Format) };
        let skip = len + LINE_END_LEN;
        let refused =
            |error, forget| Step::Done(Request::Refused { error, forget, skip }, 0, false);
        let too_many = RequestError::TooManyOptions;
        let meta = match meta::read(line.words[1], line.after(3), line.count, too_many) {
            // As in memcached, which then takes the value for a command.
            Err(error) if error == too_many => return Step::refused(error, false),
            Err(error) => return refused(error, None),
            Ok(meta) => meta,
        };
        let mode = match (meta.flags.mode, meta.flags.cas) {
            (None | Some(b'S' | b'R'), Some(_)) => Mode::Cas,
            (None | Some(b'S'), None) => Mode::Set,
            (Some(b'R'), None) => Mode::Replace,
            (Some(b'E'), _) => Mode::Add,
            (Some(b'A'), _) => Mode::Append,
            (Some(b'P'), _) => Mode::Prepend,
            (Some(_), _) => return refused(RequestError::SetMode, None),
        };
        if let Err(error) = meta::check_opaque(meta.words) {
            return refused(error, None);
        }
        if len > self.limits.value_len_max {
            return refused(RequestError::TooLarge, Some(meta.key));
        }
        let store = Store {
            mode,
            key: meta.key.given(),
            flags: meta.flags.client_flags,
            exptime: meta.flags.ttl.unwrap_or(Exptime::NEVER),
            cas: meta.flags.cas.unwrap_or(0),
            value: b"",
        };
        match value_of(line, len) {
            None => Step::Incomplete,
            Some(Ok(value)) => {
                let is_quiet = meta.flags.is_quiet;
                Step::Done(Request::MetaSet(meta, Store { value, ..store }), skip, is_quiet)
            }
            Some(Err(error)) => Step::Done(Request::refused(error), skip, false),
        }
    }
}

/// Whether the line at the start of the input is a line of keys.
fn has_keys(input: &[u8]) -> bool {
    let spaces = input.iter().take(LEADING_SPACES_MAX).take_while(|&&byte| byte == b' ').count();
    [&b"get "[..], b"gets ", b"gat ", b"gats "].iter().any(|name| input[spaces..].starts_with(name))
}

/// How many words a command may have, its name included.
fn word_counts(verb: Verb) -> RangeInclusive<usize> {
    match verb {
        Verb::Store(Mode::Cas) => 6..=7,
        Verb::Store(_) => 5..=6,
        Verb::Incr | Verb::Decr | Verb::Touch => 3..=4,
        Verb::Delete => 2..=4,
        Verb::Verbosity => 2..=3,
        Verb::FlushAll => 1..=3,
        Verb::Stats | Verb::Version | Verb::Quit | Verb::MetaNoop | Verb::MetaDebug => {
            1..=usize::MAX
        }
        _ => 2..=usize::MAX,
    }
}

/// A line without its line end. It is a C string: a NUL ends it.
fn text_of(line: &[u8]) -> &[u8] {
    let text = match line {
        [text @ .., b'\r'] if !text.is_empty() => text,
        text => text,
    };
    memchr::memchr(0, text).map_or(text, |end| &text[..end])
}

/// The length of a value, if it is valid.
fn value_len(len: i32) -> Option<usize> {
    usize::try_from(len).ok().filter(|_| len <= i32::MAX - LINE_END_LEN as i32)
}

/// The value that follows a line, once it is complete.
fn value_of<'a>(line: &Line<'a>, len: usize) -> Option<Result<&'a [u8], RequestError>> {
    let value = line.rest.get(..len + LINE_END_LEN)?;
    Some(value.strip_suffix(b"\r\n").ok_or(RequestError::DataChunk))
}

/// What the line of a store command says, and the value's length.
fn store_of<'a>(line: &Line<'a>, mode: Mode) -> Option<(Store<'a>, usize)> {
    let [_, key, flags, exptime, len, cas, ..] = line.words;
    if key.len() > KEY_LEN_MAX {
        return None;
    }
    let flags = number::unsigned_32(flags)?;
    let exptime = Exptime(number::signed_32(exptime)?.into());
    let len = number::signed_32(len)?;
    let cas = if mode == Mode::Cas { number::unsigned(cas)? } else { 0 };
    Some((Store { mode, key, flags, exptime, cas, value: b"" }, value_len(len)?))
}

fn read_get<'a>(line: &Line<'a>, verb: Verb) -> Step<'a> {
    let touches = matches!(verb, Verb::Gat | Verb::Gats);
    let touch = if touches { number::signed_32(line.words[1]) } else { None };
    if touches && touch.is_none() {
        return Step::refused(RequestError::Exptime, false);
    }
    let keys = line.after(1 + usize::from(touches));
    if { keys }.any(|key| key.len() > KEY_LEN_MAX) {
        return Step::refused(RequestError::Format, false);
    }
    let with_cas = matches!(verb, Verb::Gets | Verb::Gats);
    Step::line(Request::Get { keys, with_cas, touch: touch.map(|at| Exptime(at.into())) })
}

/// An old form of the command has a time after the key, which must be 0.
fn read_delete<'a>(line: &Line<'a>) -> Step<'a> {
    let is_quiet = line.count > 2 && line.is_quiet();
    let is_valid = match line.count {
        2 => true,
        3 => is_quiet || line.words[2] == b"0",
        _ => is_quiet && line.words[2] == b"0",
    };
    let key = line.words[1];
    if !is_valid {
        Step::refused(RequestError::DeleteUsage, is_quiet)
    } else if key.len() > KEY_LEN_MAX {
        Step::refused(RequestError::Format, is_quiet)
    } else {
        Step::Done(Request::Delete { key }, 0, is_quiet)
    }
}

fn read_change<'a>(line: &Line<'a>, verb: Verb) -> Step<'a> {
    let [_, key, argument, ..] = line.words;
    let is_quiet = line.is_quiet();
    if key.len() > KEY_LEN_MAX {
        return Step::refused(RequestError::Format, is_quiet);
    }
    let request = if verb == Verb::Touch {
        let exptime = number::signed_32(argument).map(|at| Exptime(at.into()));
        exptime.map(|exptime| Request::Touch { key, exptime }).ok_or(RequestError::Exptime)
    } else {
        let is_down = verb == Verb::Decr;
        let by = number::unsigned(argument);
        by.map(|by| Request::Count { key, by, is_down }).ok_or(RequestError::Delta)
    };
    Step::Done(request.unwrap_or_else(Request::refused), 0, is_quiet)
}

fn read_flush<'a>(line: &Line<'a>) -> Step<'a> {
    let is_quiet = line.is_quiet();
    let has_delay = line.count != 1 + usize::from(is_quiet);
    let delay = if has_delay { number::signed_32(line.words[1]) } else { Some(0) };
    let request = match delay {
        Some(delay) => Request::FlushAll { delay: Exptime(delay.into()) },
        None => Request::refused(RequestError::Exptime),
    };
    Step::Done(request, 0, is_quiet)
}

fn read_meta<'a>(line: &Line<'a>, verb: Verb) -> Step<'a> {
    let too_many = match verb {
        Verb::MetaGet => RequestError::TooManyFlags,
        _ => RequestError::TooManyOptions,
    };
    let read = meta::read(line.words[1], line.after(2), line.count, too_many);
    let read = read.and_then(|meta| meta::check_opaque(meta.words).map(|()| meta));
    let meta = match read {
        Ok(meta) => meta,
        Err(error) => return Step::refused(told_of(error, verb), false),
    };
    let is_quiet = meta.flags.is_quiet;
    let has_mode = |modes: &[u8]| meta.flags.mode.is_none_or(|mode| modes.contains(&mode));
    let request = match verb {
        Verb::MetaGet => Request::MetaGet(meta),
        Verb::MetaDelete => Request::MetaDelete(meta),
        _ if has_mode(b"I+iD-d") => Request::MetaArithmetic(meta),
        _ => return Step::refused(RequestError::ArithmeticMode, false),
    };
    Step::Done(request, 0, is_quiet)
}

/// md and ma report all invalid flags with the same error.
fn told_of(error: RequestError, verb: Verb) -> RequestError {
    match error {
        RequestError::Format | RequestError::TooManyOptions | RequestError::OpaqueLength => error,
        _ if verb == Verb::MetaGet => error,
        _ => RequestError::InvalidOrDuplicateFlag,
    }
}

/// Of its flags only `b` counts, and only directly after the key.
fn read_debug<'a>(line: &Line<'a>) -> Step<'a> {
    let [_, key, flag, ..] = line.words;
    if line.count < 2 || key.len() > KEY_LEN_MAX {
        return Step::refused(RequestError::Format, false);
    }
    let words = Words(if line.count > 2 && flag == b"b" { b"b" } else { b"" });
    match meta::read(key, words, 2, RequestError::Format) {
        Ok(meta) => Step::line(Request::MetaDebug(meta)),
        Err(_) => Step::refused(RequestError::Format, false),
    }
}
