//! Reads the numbers and texts of a payload.

use std::borrow::Cow;

use super::{PayloadError, lzf};

/// A length, or in its place the encoding of a text.
enum Length {
    Plain(u64),
    Encoded(u8),
}

/// The encodings of integers and of compressed text.
const INT_8: u8 = 0;
const INT_16: u8 = 1;
const INT_32: u8 = 2;
const COMPRESSED: u8 = 3;

/// Reads a payload from its start.
pub(super) struct Reader<'p> {
    rest: &'p [u8],
    /// Maximum length of a decompressed text.
    bytes_max: usize,
}

impl<'p> Reader<'p> {
    pub(super) fn new(payload: &'p [u8], bytes_max: usize) -> Self {
        Self { rest: payload, bytes_max }
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    pub(super) fn take(&mut self, len: usize) -> Result<&'p [u8], PayloadError> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(PayloadError::Format)?;
        self.rest = rest;
        Ok(taken)
    }

    pub(super) fn array<const LEN: usize>(&mut self) -> Result<[u8; LEN], PayloadError> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(PayloadError::Format)?;
        self.rest = rest;
        Ok(*taken)
    }

    pub(super) fn byte(&mut self) -> Result<u8, PayloadError> {
        self.array().map(u8::from_le_bytes)
    }

    fn any_length(&mut self) -> Result<Length, PayloadError> {
        let first = self.byte()?;
        Ok(match (first >> 6, first) {
            (0, _) => Length::Plain(u64::from(first)),
            (1, _) => Length::Plain(u64::from(first & 0x3f) << 8 | u64::from(self.byte()?)),
            (2, 0x80) => Length::Plain(u64::from(u32::from_be_bytes(self.array()?))),
            (2, 0x81) => Length::Plain(u64::from_be_bytes(self.array()?)),
            (3, _) => Length::Encoded(first & 0x3f),
            _ => return Err(PayloadError::Format),
        })
    }

    /// A number that is encoded as a length.
    pub(super) fn number(&mut self) -> Result<u64, PayloadError> {
        match self.any_length()? {
            Length::Plain(number) => Ok(number),
            Length::Encoded(_) => Err(PayloadError::Format),
        }
    }

    /// A number of items, or a length in bytes. Each item takes at least a byte.
    pub(super) fn count(&mut self) -> Result<usize, PayloadError> {
        let count = usize::try_from(self.number()?).ok();
        count.filter(|&count| count <= self.rest.len()).ok_or(PayloadError::Format)
    }

    pub(super) fn text(&mut self) -> Result<Cow<'p, [u8]>, PayloadError> {
        let number = |number: i64| Ok(Cow::Owned(number.to_string().into_bytes()));
        match self.any_length()? {
            Length::Plain(len) => {
                let len = usize::try_from(len).map_err(|_| PayloadError::Format)?;
                self.take(len).map(Cow::Borrowed)
            }
            Length::Encoded(INT_8) => number(i64::from(i8::from_le_bytes(self.array()?))),
            Length::Encoded(INT_16) => number(i64::from(i16::from_le_bytes(self.array()?))),
            Length::Encoded(INT_32) => number(i64::from(i32::from_le_bytes(self.array()?))),
            Length::Encoded(COMPRESSED) => {
                let compressed_len = self.count()?;
                let len = usize::try_from(self.number()?).map_err(|_| PayloadError::Format)?;
                let compressed = self.take(compressed_len)?;
                if len > self.bytes_max {
                    return Err(PayloadError::TooLarge);
                }
                lzf::decompress(compressed, len).map(Cow::Owned).ok_or(PayloadError::Format)
            }
            Length::Encoded(_) => Err(PayloadError::Format),
        }
    }

    /// A score as old versions wrote it: digits after their length, or a length that stands for it.
    pub(super) fn score_in_digits(&mut self) -> Result<f64, PayloadError> {
        match self.byte()? {
            253 => Ok(f64::NAN),
            254 => Ok(f64::INFINITY),
            255 => Ok(f64::NEG_INFINITY),
            len => score_of(self.take(usize::from(len))?),
        }
    }

    pub(super) fn score(&mut self) -> Result<f64, PayloadError> {
        self.array().map(f64::from_le_bytes)
    }
}

/// The number that the digits represent.
pub(super) fn score_of(digits: &[u8]) -> Result<f64, PayloadError> {
    let digits = str::from_utf8(digits).map_err(|_| PayloadError::Format)?;
    digits.trim().parse().map_err(|_| PayloadError::Format)
}
