//! Lines of any bytes, however long: lines over the limit are skipped, not kept.

use std::io::{self, BufRead};

use tokaido_store::limits;

/// Maximum length of a line. The longest record fits in every format that `dump` writes: escapes at
/// most double it in `pairs`, and JSON lines use base64 where JSON's escapes would be longer.
pub(crate) const LINE_LEN_MAX: usize = 2 * (limits::KEY_LEN_MAX + limits::VALUE_LEN_MAX) + 1024;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// How a line ended; CSV keeps the ending if the line continues within quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Newline,
    CarriageReturnNewline,
    EndOfFile,
}

impl Ending {
    pub(crate) fn as_bytes(self) -> &'static [u8] {
        match self {
            Self::Newline => b"\n",
            Self::CarriageReturnNewline => b"\r\n",
            Self::EndOfFile => b"",
        }
    }
}

/// The result of [`LineReader::read`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// The line is in the buffer.
    Whole(Ending),
    /// It exceeded the limit. The reader is at the next line.
    TooLong,
}

/// Reads lines and counts them.
pub(crate) struct LineReader<R> {
    input: R,
    len_max: usize,
    number: u64,
    bytes: u64,
}

impl<R: BufRead> LineReader<R> {
    pub(crate) fn new(input: R) -> Self {
        Self::with_len_max(input, LINE_LEN_MAX)
    }

    fn with_len_max(input: R, len_max: usize) -> Self {
        Self { input, len_max, number: 0, bytes: 0 }
    }

    /// The number of the last line read, from 1.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Bytes read so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The next bytes, without consuming them.
    pub(crate) fn peek(&mut self) -> io::Result<&[u8]> {
        self.input.fill_buf()
    }

    /// Reads `len` bytes unchanged, whatever lines they contain, and stores them in `bytes` if it
    /// is given. Returns whether there were that many.
    pub(crate) fn read_block(
        &mut self,
        len: u64,
        mut bytes: Option<&mut Vec<u8>>,
    ) -> io::Result<bool> {
        let mut left = len;
        while left > 0 {
            let available = match self.input.fill_buf() {
                Ok([]) => return Ok(false),
                Ok(available) => available,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let taken = available.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            let block = &available[..taken];
            self.number += memchr::memchr_iter(b'\n', block).count() as u64;
            if let Some(bytes) = &mut bytes {
                bytes.extend_from_slice(block);
            }
            self.input.consume(taken);
            self.bytes += taken as u64;
            left -= taken as u64;
        }
        Ok(true)
    }

    /// Reads the next line into `line`, without its ending; `None` at the end of the file. A byte
    /// order mark before the first line is removed.
    pub(crate) fn read(&mut self, line: &mut Vec<u8>) -> io::Result<Option<Line>> {
        line.clear();
        let mut read = 0;
        let mut too_long = false;
        let ended = loop {
            let available = match self.input.fill_buf() {
                Ok(available) => available,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if available.is_empty() {
                break false;
            }
            let newline = memchr::memchr(b'\n', available);
            let text = &available[..newline.unwrap_or(available.len())];
            too_long |= line.len() + text.len() > self.len_max;
            if too_long {
                line.clear();
            } else {
                line.extend_from_slice(text);
            }
            let taken = text.len() + usize::from(newline.is_some());
            read += taken;
            self.input.consume(taken);
            if newline.is_some() {
                break true;
            }
        };
        if read == 0 {
            return Ok(None);
        }
        self.number += 1;
        self.bytes += read as u64;
        if too_long {
            return Ok(Some(Line::TooLong));
        }
        if self.number == 1 && line.starts_with(BYTE_ORDER_MARK) {
            line.drain(..BYTE_ORDER_MARK.len());
        }
        Ok(Some(Line::Whole(take_ending(line, ended))))
    }
}

/// Removes the `\r` of a `\r\n`.
fn take_ending(line: &mut Vec<u8>, newline: bool) -> Ending {
    match newline {
        true if line.last() == Some(&b'\r') => {
            line.pop();
            Ending::CarriageReturnNewline
        }
        true => Ending::Newline,
        false => Ending::EndOfFile,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[u8], len_max: usize) -> Vec<Result<Vec<u8>, ()>> {
        // A buffer of 3 bytes, so that lines and marks are split everywhere.
        let input = io::BufReader::with_capacity(3, text);
        let mut reader = LineReader::with_len_max(input, len_max);
        let mut found = Vec::new();
        let mut line = Vec::new();
        while let Some(read) = reader.read(&mut line).unwrap() {
            found.push(if read == Line::TooLong { Err(()) } else { Ok(line.clone()) });
        }
        assert_eq!(reader.number(), found.len() as u64);
        assert_eq!(reader.bytes(), text.len() as u64);
        found
    }

    #[test]
    fn endings_and_marks_are_taken_off() {
        let ok = |text: &str| Ok(text.as_bytes().to_vec());
        assert_eq!(lines(b"", 9), []);
        assert_eq!(lines(b"\n", 9), [ok("")]);
        assert_eq!(lines(b"one\ntwo", 9), [ok("one"), ok("two")]);
        assert_eq!(lines(b"one\r\n\r\ntwo\r\n", 9), [ok("one"), ok(""), ok("two")]);
        assert_eq!(lines(b"\xef\xbb\xbfone\n\xef\xbb\xbf", 9), [ok("one"), ok("\u{feff}")]);
        // A lone `\r` is data: nothing says that it ends a line.
        assert_eq!(lines(b"a\rb\nc\r", 9), [ok("a\rb"), ok("c\r")]);
    }

    #[test]
    fn a_long_line_is_passed_over_and_the_next_one_read() {
        let ok = |text: &str| Ok(text.as_bytes().to_vec());
        assert_eq!(lines(b"0123456789\nab\n", 4), [Err(()), ok("ab")]);
        assert_eq!(lines(b"0123\n01234", 4), [ok("0123"), Err(())]);
    }
}
