//! Reads records from text.

use std::io::{BufRead, Read};

use tokaido_cdb::{FILE_LEN_MAX, Record};

use super::{TextError, TextFormat, is_blank};

/// Reads records in one of the text formats. Memory grows with the actual data, not with announced
/// lengths.
pub(crate) struct TextReader<R> {
    input: R,
    format: TextFormat,
    /// Bytes read.
    position: u64,
    /// Records read.
    records: u64,
    key: Vec<u8>,
    value: Vec<u8>,
    is_at_end: bool,
}

const TOO_LONG: &str = "this is more than a cdb file can hold (4 GiB)";

impl<R: BufRead> TextReader<R> {
    /// Reads from `input`.
    pub(crate) fn new(input: R, format: TextFormat) -> Self {
        Self {
            input,
            format,
            position: 0,
            records: 0,
            key: Vec::new(),
            value: Vec::new(),
            is_at_end: false,
        }
    }

    /// Records read so far.
    pub(crate) fn records(&self) -> u64 {
        self.records
    }

    /// The next record, valid until the next call. Its value is empty if the format has none. After
    /// the last record, and after an error, there is none.
    ///
    /// # Errors
    /// [`TextError::Io`] and [`TextError::Syntax`].
    pub(crate) fn next_record(&mut self) -> Result<Option<Record<'_>>, TextError> {
        if self.is_at_end {
            return Ok(None);
        }
        // Remains set if what follows fails.
        self.is_at_end = true;
        self.key.clear();
        self.value.clear();
        let is_there = match self.format {
            TextFormat::Native | TextFormat::NativeKeys => self.native()?,
            TextFormat::Map => self.map_line()?,
            TextFormat::MapKeys => self.line()?,
        };
        if !is_there {
            return Ok(None);
        }
        self.is_at_end = false;
        self.records += 1;
        Ok(Some(Record { key: &self.key, value: &self.value }))
    }

    fn error(&self, what: &'static str) -> TextError {
        TextError::Syntax { record: self.records + 1, position: self.position, what }
    }

    /// Reads a record, or the end mark.
    fn native(&mut self) -> Result<bool, TextError> {
        const END: &str =
            "the empty line that ends the records is missing; was the text cut short?";
        match self.byte()? {
            Some(b'+') => {}
            Some(b'\n') => return self.nothing_more().map(|()| false),
            Some(_) => {
                self.position -= 1;
                return Err(self.error("a record begins with +"));
            }
            None => return Err(self.error(END)),
        }
        let has_value = self.format == TextFormat::Native;
        let key_len = self.number(if has_value { b',' } else { b':' })?;
        let value_len = if has_value { self.number(b':')? } else { 0 };
        if key_len + value_len > FILE_LEN_MAX {
            return Err(self.error(TOO_LONG));
        }
        let mut key = std::mem::take(&mut self.key);
        self.bytes(key_len, &mut key)?;
        self.key = key;
        if has_value {
            let arrow = "-> is missing after the key; is the key's length right?";
            self.expect(b'-', arrow)?;
            self.expect(b'>', arrow)?;
            let mut value = std::mem::take(&mut self.value);
            self.bytes(value_len, &mut value)?;
            self.value = value;
        }
        self.expect(b'\n', "the newline is missing after the record; are its lengths right?")?;
        Ok(true)
    }

    /// Checks that only newlines follow the end mark. The tool ignores what follows, and so would
    /// lose the second of two dumps in one file.
    fn nothing_more(&mut self) -> Result<(), TextError> {
        while let Some(byte) = self.byte()? {
            if byte != b'\n' {
                self.position -= 1;
                return Err(self.error("something follows the empty line that ends the records"));
            }
        }
        Ok(())
    }

    /// Reads decimal digits, and then `end`.
    fn number(&mut self, end: u8) -> Result<u64, TextError> {
        let mut number = None;
        loop {
            match self.byte()? {
                Some(digit @ b'0'..=b'9') => {
                    let so_far = number.unwrap_or(0) * 10 + u64::from(digit - b'0');
                    if so_far > FILE_LEN_MAX {
                        return Err(self.error(TOO_LONG));
                    }
                    number = Some(so_far);
                }
                Some(byte) if byte == end => {
                    return number.ok_or_else(|| self.error("a length is missing"));
                }
                None => return Err(self.error("the text ends within a record")),
                Some(_) => {
                    self.position -= 1;
                    return Err(self.error(match end {
                        b',' => "a length must be decimal digits and end with ,",
                        _ => "a length must be decimal digits and end with :",
                    }));
                }
            }
        }
    }

    fn byte(&mut self) -> Result<Option<u8>, TextError> {
        let mut byte = [0];
        loop {
            match self.input.read(&mut byte) {
                Ok(0) => return Ok(None),
                Ok(_) => {
                    self.position += 1;
                    return Ok(Some(byte[0]));
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn expect(&mut self, expected: u8, what: &'static str) -> Result<(), TextError> {
        match self.byte()? {
            Some(byte) if byte == expected => Ok(()),
            None => Err(self.error("the text ends within a record")),
            Some(_) => {
                self.position -= 1;
                Err(self.error(what))
            }
        }
    }

    fn bytes(&mut self, len: u64, into: &mut Vec<u8>) -> Result<(), TextError> {
        let read = self.input.by_ref().take(len).read_to_end(into)?;
        self.position += read as u64;
        if (read as u64) < len {
            return Err(self.error("the text ends within a record"));
        }
        Ok(())
    }

    /// Reads a line that has a key, skipping those that have none.
    fn map_line(&mut self) -> Result<bool, TextError> {
        while self.line()? {
            let blanks = self.key.iter().take_while(|byte| is_blank(**byte)).count();
            let line = &self.key[blanks..];
            if line.is_empty() || line.starts_with(b"#") {
                continue;
            }
            let key_len = line.iter().take_while(|byte| !is_blank(**byte)).count();
            let value = &line[key_len..];
            let gap = value.iter().take_while(|byte| is_blank(**byte)).count();
            self.value.extend_from_slice(&value[gap..]);
            self.key.truncate(blanks + key_len);
            self.key.drain(..blanks);
            return Ok(true);
        }
        Ok(false)
    }

    /// Reads a line into the key, without its newline; the last line need not have one.
    fn line(&mut self) -> Result<bool, TextError> {
        self.key.clear();
        let mut limited = self.input.by_ref().take(FILE_LEN_MAX);
        let read = limited.read_until(b'\n', &mut self.key)? as u64;
        self.position += read;
        if self.key.last() == Some(&b'\n') {
            self.key.pop();
        } else if read == FILE_LEN_MAX {
            return Err(self.error(TOO_LONG));
        }
        Ok(read > 0)
    }
}
