//! The parts that a JSON text consists of, as lua-cjson tells them apart.

use crate::redis::number::parse_prefix;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Token<'t> {
    ObjectBegin,
    ObjectEnd,
    ArrayBegin,
    ArrayEnd,
    /// A string that has no escapes.
    String(&'t [u8]),
    /// A string that is now in the buffer, without its escapes.
    Unescaped,
    Number(f64),
    Boolean(bool),
    Null,
    Colon,
    Comma,
    End,
    Error(&'static str),
}

impl Token<'_> {
    /// Its name in messages.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::ObjectBegin => "T_OBJ_BEGIN",
            Self::ObjectEnd => "T_OBJ_END",
            Self::ArrayBegin => "T_ARR_BEGIN",
            Self::ArrayEnd => "T_ARR_END",
            Self::String(_) | Self::Unescaped => "T_STRING",
            Self::Number(_) => "T_NUMBER",
            Self::Boolean(_) => "T_BOOLEAN",
            Self::Null => "T_NULL",
            Self::Colon => "T_COLON",
            Self::Comma => "T_COMMA",
            Self::End => "T_END",
            Self::Error(why) => why,
        }
    }
}

/// Takes a text apart. It owns nothing, since a raise would not drop it.
pub(super) struct Tokens<'t> {
    /// Ends in a zero. An earlier one ends the text, too.
    text: &'t [u8],
    pub(super) at: usize,
    /// Where the last token begins, or where it went wrong.
    pub(super) token_at: usize,
    /// Whether hexadecimal numbers, NaN and infinity are accepted.
    invalid_numbers: bool,
    /// The last string that had escapes.
    pub(super) buffer: &'t mut Vec<u8>,
}

impl<'t> Tokens<'t> {
    /// The tokens of a text that ends in a zero.
    pub(super) fn of(text: &'t [u8], invalid_numbers: bool, buffer: &'t mut Vec<u8>) -> Self {
        debug_assert_eq!(text.last(), Some(&0));
        Self { text, at: 0, token_at: 0, invalid_numbers, buffer }
    }

    fn byte(&self, offset: usize) -> u8 {
        self.text.get(self.at + offset).copied().unwrap_or(0)
    }

    fn rest(&self) -> &'t [u8] {
        self.text.get(self.at..).unwrap_or(b"\0")
    }

    pub(super) fn next(&mut self) -> Token<'t> {
        while matches!(self.byte(0), b' ' | b'\t' | b'\n' | b'\r') {
            self.at += 1;
        }
        self.token_at = self.at;
        let single = match self.byte(0) {
            0 => return Token::End,
            b'{' => Token::ObjectBegin,
            b'}' => Token::ObjectEnd,
            b'[' => Token::ArrayBegin,
            b']' => Token::ArrayEnd,
            b':' => Token::Colon,
            b',' => Token::Comma,
            b'"' => return self.string(),
            byte => return self.word(byte),
        };
        self.at += 1;
        single
    }

    /// A number, or one of JSON's words.
    fn word(&mut self, first: u8) -> Token<'t> {
        let is_number = first == b'-' || first.is_ascii_digit();
        if is_number && !self.invalid_numbers && self.is_invalid_number() {
            return Token::Error("invalid number");
        }
        if is_number {
            return self.number();
        }
        for (word, token) in [
            (&b"true"[..], Token::Boolean(true)),
            (b"false", Token::Boolean(false)),
            (b"null", Token::Null),
        ] {
            if self.rest().starts_with(word) {
                self.at += word.len();
                return token;
            }
        }
        let may_be = matches!(first, b'+' | b'N' | b'n' | b'I' | b'i');
        if may_be && self.invalid_numbers && self.is_invalid_number() {
            return self.number();
        }
        Token::Error("invalid token")
    }

    /// Whether a number begins here that C accepts and JSON does not.
    fn is_invalid_number(&self) -> bool {
        let signed = usize::from(self.byte(0) == b'-');
        let word = |word: &[u8]| {
            let rest = self.rest().get(signed..signed + word.len());
            rest.is_some_and(|rest| rest.eq_ignore_ascii_case(word))
        };
        match (self.byte(0), self.byte(signed)) {
            (b'+', _) => true,
            (_, b'0') => matches!(self.byte(signed + 1), b'x' | b'X' | b'0'..=b'9'),
            (_, b'1'..=b'9') => false,
            _ => word(b"inf") || word(b"nan"),
        }
    }

    fn number(&mut self) -> Token<'t> {
        let (number, len) = small_integer(self.rest()).unwrap_or_else(|| parse_prefix(self.rest()));
        if len == 0 {
            return Token::Error("invalid number");
        }
        self.at += len;
        Token::Number(number)
    }

    fn failed(&mut self, why: &'static str) -> Token<'t> {
        self.token_at = self.at;
        Token::Error(why)
    }

    fn string(&mut self) -> Token<'t> {
        self.at += 1;
        let text = self.rest();
        let len = plain_len(text);
        if text.get(len) == Some(&b'"') {
            self.at += len + 1;
            return Token::String(&text[..len]);
        }
        self.buffer.clear();
        loop {
            let text = self.rest();
            let len = plain_len(text);
            self.buffer.extend_from_slice(&text[..len]);
            self.at += len;
            match self.byte(0) {
                b'"' => break,
                b'\\' => {}
                _ => return self.failed("unexpected end of string"),
            }
            let single = match self.byte(1) {
                byte @ (b'"' | b'\\' | b'/') => byte,
                b'b' => 0x08,
                b'f' => 0x0c,
                b'n' => b'\n',
                b'r' => b'\r',
                b't' => b'\t',
                b'u' => {
                    let Some((code, len)) = self.unicode_escape() else {
                        return self.failed("invalid unicode escape code");
                    };
                    self.buffer.extend_from_slice(code.encode_utf8(&mut [0; 4]).as_bytes());
                    self.at += len;
                    continue;
                }
                _ => return self.failed("invalid escape code"),
            };
            self.buffer.push(single);
            self.at += 2;
        }
        self.at += 1;
        Token::Unescaped
    }

    /// The character of an escape, or of a surrogate pair of two, and their length.
    fn unicode_escape(&self) -> Option<(char, usize)> {
        let high = self.hexadecimal(2)?;
        if high & 0xf800 != 0xd800 {
            return Some((char::from_u32(high)?, 6));
        }
        let is_pair = high & 0x400 == 0 && self.byte(6) == b'\\' && self.byte(7) == b'u';
        let low = is_pair.then(|| self.hexadecimal(8)).flatten()?;
        let code = 0x10000 + ((high & 0x3ff) << 10 | low & 0x3ff);
        (low & 0xfc00 == 0xdc00).then_some((char::from_u32(code)?, 12))
    }

    fn hexadecimal(&self, offset: usize) -> Option<u32> {
        let digit = |place| char::from(self.byte(offset + place)).to_digit(16);
        (0..4).try_fold(0, |code, place| Some(code << 4 | digit(place)?))
    }
}

/// How many bytes of a string come before its end, its next escape or the end of the text.
fn plain_len(text: &[u8]) -> usize {
    text.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0)).unwrap_or(text.len())
}

/// The integer that a text begins with, if it has so few digits that it is exact, and its length.
fn small_integer(text: &[u8]) -> Option<(f64, usize)> {
    const DIGITS_MAX: usize = 15;
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let len = digits.iter().take(DIGITS_MAX + 1).take_while(|byte| byte.is_ascii_digit()).count();
    let is_whole = !matches!(digits.get(len), Some(b'.' | b'e' | b'E' | b'x' | b'X'));
    if !(1..=DIGITS_MAX).contains(&len) || !is_whole {
        return None;
    }
    let number = digits[..len].iter().fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0'));
    let sign = if digits.len() < text.len() { -1.0 } else { 1.0 };
    Some((sign * number as f64, len + text.len() - digits.len()))
}
