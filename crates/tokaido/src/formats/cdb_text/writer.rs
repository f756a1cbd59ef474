//! Writes records as text.

use std::io::{self, Write};

use tokaido_cdb::shown_key;

use super::{TextError, TextFormat, is_blank};

/// Writes records in one of the text formats. A record that the format cannot hold is refused, so
/// that everything written reads back unchanged.
pub(crate) struct TextWriter<W> {
    out: W,
    format: TextFormat,
    records: u64,
}

impl<W: Write> TextWriter<W> {
    /// Writes to `out`, which should be buffered.
    pub(crate) fn new(out: W, format: TextFormat) -> Self {
        Self { out, format, records: 0 }
    }

    /// Writes a record. The formats with keys only omit the value.
    ///
    /// # Errors
    /// [`TextError::Io`] and [`TextError::Unwritable`], after which the writer can go on without
    /// this record.
    pub(crate) fn write(&mut self, key: &[u8], value: &[u8]) -> Result<(), TextError> {
        if let Some(what) = self.unwritable(key, value) {
            let record = self.records + 1;
            return Err(TextError::Unwritable { record, key: shown_key(key), what });
        }
        let out = &mut self.out;
        match self.format {
            TextFormat::Native => {
                write!(out, "+{},{}:", key.len(), value.len())?;
                write_all(out, &[key, b"->", value])?;
            }
            TextFormat::NativeKeys => {
                write!(out, "+{}:", key.len())?;
                write_all(out, &[key])?;
            }
            TextFormat::Map => write_all(out, &[key, b" ", value])?,
            TextFormat::MapKeys => write_all(out, &[key])?,
        }
        self.records += 1;
        Ok(())
    }

    /// Writes the end mark, if the format has one, and returns the flushed stream.
    ///
    /// # Errors
    /// Any error of the stream.
    pub(crate) fn finish(mut self) -> io::Result<W> {
        if let TextFormat::Native | TextFormat::NativeKeys = self.format {
            self.out.write_all(b"\n")?;
        }
        self.out.flush()?;
        Ok(self.out)
    }

    fn unwritable(&self, key: &[u8], value: &[u8]) -> Option<&'static str> {
        let is_map = self.format == TextFormat::Map;
        if !is_map && self.format != TextFormat::MapKeys {
            return None;
        }
        if key.contains(&b'\n') {
            return Some("a key with a newline does not fit on a line");
        }
        if !is_map {
            return None;
        }
        if key.is_empty() {
            return Some("the map format has no empty keys");
        }
        if key.starts_with(b"#") {
            return Some("a key that begins with # would be a comment");
        }
        if key.iter().any(|&byte| is_blank(byte)) {
            return Some("a key with a space or a tab would end there");
        }
        if value.contains(&b'\n') {
            return Some("a value with a newline does not fit on a line");
        }
        if value.first().is_some_and(|&byte| is_blank(byte)) {
            return Some("spaces and tabs at the beginning of a value would be lost");
        }
        None
    }
}

fn write_all(out: &mut impl Write, parts: &[&[u8]]) -> io::Result<()> {
    parts.iter().try_for_each(|part| out.write_all(part))?;
    out.write_all(b"\n")
}
