//! `cjson.decode`: JSON as lua-cjson reads it, with its messages and its leniency about numbers.

use std::ffi::CString;

use super::{codecs::Tally, number::parse_prefix};
use crate::{Value, convert};

/// What `cjson.decode_…` has set.
pub(super) struct Options {
    pub(super) depth_max: usize,
    /// Whether hexadecimal numbers, NaN and infinity are accepted.
    pub(super) invalid_numbers: bool,
}

#[derive(Debug, PartialEq)]
enum Token {
    ObjectBegin,
    ObjectEnd,
    ArrayBegin,
    ArrayEnd,
    String(Vec<u8>),
    Number(f64),
    Boolean(bool),
    Null,
    Colon,
    Comma,
    End,
    Error(&'static str),
}

impl Token {
    fn name(&self) -> &'static str {
        match self {
            Self::ObjectBegin => "T_OBJ_BEGIN",
            Self::ObjectEnd => "T_OBJ_END",
            Self::ArrayBegin => "T_ARR_BEGIN",
            Self::ArrayEnd => "T_ARR_END",
            Self::String(_) => "T_STRING",
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

struct Parser<'o> {
    /// The text up to its first zero byte, which ends it.
    text: CString,
    at: usize,
    /// Where the last token begins.
    token_at: usize,
    depth: usize,
    options: &'o Options,
    tally: Tally,
}

/// Reads one value.
pub(super) fn decode(text: &[u8], options: &Options) -> Result<Value, String> {
    if text.len() >= 2 && (text[0] == 0 || text[1] == 0) {
        return Err("JSON parser does not support UTF-16 or UTF-32".to_owned());
    }
    let end = text.iter().position(|&byte| byte == 0).unwrap_or(text.len());
    let text = CString::new(&text[..end]).unwrap_or_default();
    let tally = Tally::default();
    let mut parser = Parser { text, at: 0, token_at: 0, depth: 0, options, tally };
    let token = parser.next();
    let value = parser.value(token)?;
    match parser.next() {
        Token::End => Ok(value),
        other => Err(parser.unexpected("the end", &other)),
    }
}

impl Parser<'_> {
    fn byte(&self, offset: usize) -> u8 {
        self.text.as_bytes().get(self.at + offset).copied().unwrap_or(0)
    }

    fn rest(&self) -> &[u8] {
        self.text.as_bytes().get(self.at..).unwrap_or_default()
    }

    fn unexpected(&self, expected: &str, found: &Token) -> String {
        let place = self.token_at + 1;
        format!("Expected {expected} but found {} at character {place}", found.name())
    }

    fn next(&mut self) -> Token {
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
    fn word(&mut self, first: u8) -> Token {
        let is_number = first == b'-' || first.is_ascii_digit();
        if is_number && !self.options.invalid_numbers && self.is_invalid_number() {
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
        if may_be && self.options.invalid_numbers && self.is_invalid_number() {
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
            _ => word(b"inf") || word(b"nan"),
        }
    }

    fn number(&mut self) -> Token {
        let tail = self.text.as_bytes_with_nul().get(self.at..).unwrap_or(b"\0");
        let tail = std::ffi::CStr::from_bytes_with_nul(tail).unwrap_or(c"");
        match parse_prefix(tail) {
            (_, 0) => Token::Error("invalid number"),
            (number, len) => {
                self.at += len;
                Token::Number(number)
            }
        }
    }

    fn failed(&mut self, why: &'static str) -> Token {
        self.token_at = self.at;
        Token::Error(why)
    }

    fn string(&mut self) -> Token {
        self.at += 1;
        let mut text = Vec::new();
        loop {
            let byte = match self.byte(0) {
                b'"' => break,
                0 => return self.failed("unexpected end of string"),
                b'\\' => match self.byte(1) {
                    b'u' => {
                        let Some((code, len)) = self.unicode_escape() else {
                            return self.failed("invalid unicode escape code");
                        };
                        let mut utf8 = [0; 4];
                        text.extend_from_slice(code.encode_utf8(&mut utf8).as_bytes());
                        self.at += len;
                        continue;
                    }
                    escape => {
                        self.at += 1;
                        match escape {
                            b'"' | b'\\' | b'/' => escape,
                            b'b' => 0x08,
                            b'f' => 0x0c,
                            b'n' => b'\n',
                            b'r' => b'\r',
                            b't' => b'\t',
                            _ => {
                                self.at -= 1;
                                return self.failed("invalid escape code");
                            }
                        }
                    }
                },
                byte => byte,
            };
            text.push(byte);
            self.at += 1;
        }
        self.at += 1;
        Token::String(text)
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

    fn value(&mut self, token: Token) -> Result<Value, String> {
        self.tally.count(1)?;
        match token {
            Token::String(text) => Ok(Value::String(text)),
            Token::Number(number) => Ok(convert::number(number)),
            Token::Boolean(boolean) => Ok(Value::Boolean(boolean)),
            Token::Null => Ok(Value::Nil),
            Token::ObjectBegin | Token::ArrayBegin => {
                self.depth += 1;
                if self.depth > self.options.depth_max {
                    let depth = self.depth;
                    let at = self.at;
                    return Err(format!(
                        "Found too many nested data structures ({depth}) at character {at}"
                    ));
                }
                let inner = match token {
                    Token::ArrayBegin => self.array()?,
                    _ => self.object()?,
                };
                self.depth -= 1;
                Ok(inner)
            }
            other => Err(self.unexpected("value", &other)),
        }
    }

    fn array(&mut self) -> Result<Value, String> {
        let mut items = Vec::new();
        let mut token = self.next();
        if token == Token::ArrayEnd {
            return Ok(Value::Array(items));
        }
        loop {
            items.push(self.value(token)?);
            match self.next() {
                Token::ArrayEnd => return Ok(Value::Array(items)),
                Token::Comma => token = self.next(),
                other => return Err(self.unexpected("comma or array end", &other)),
            }
        }
    }

    fn object(&mut self) -> Result<Value, String> {
        let mut entries = Vec::new();
        let mut token = self.next();
        if token == Token::ObjectEnd {
            return Ok(Value::Map(entries));
        }
        loop {
            let key = match token {
                Token::String(key) => Value::String(key),
                other => return Err(self.unexpected("object key string", &other)),
            };
            match self.next() {
                Token::Colon => {}
                other => return Err(self.unexpected("colon", &other)),
            }
            let token_of_value = self.next();
            entries.push((key, self.value(token_of_value)?));
            match self.next() {
                Token::ObjectEnd => return Ok(Value::Map(entries)),
                Token::Comma => token = self.next(),
                other => return Err(self.unexpected("comma or object end", &other)),
            }
        }
    }
}
