//! Escapes, encodes and digests texts as mod_lua's functions do.

use md5::{Digest as _, Md5};
use tokaido_wire::base64;

use crate::{
    percent::{self, Escapes},
    sha1_hex,
};

/// What is done to a text; `lua/apache/texts.lua` refers to operations by their index here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Escape,
    Unescape,
    EscapeHtml,
    EscapePath,
    EscapePartialPath,
    EscapeLogItem,
    EncodeBase64,
    DecodeBase64,
    Md5,
    Sha1,
    UnescapePath,
}

impl Operation {
    /// In the order in which Lua numbers them.
    pub(crate) const ALL: [Self; 11] = [
        Self::Escape,
        Self::Unescape,
        Self::EscapeHtml,
        Self::EscapePath,
        Self::EscapePartialPath,
        Self::EscapeLogItem,
        Self::EncodeBase64,
        Self::DecodeBase64,
        Self::Md5,
        Self::Sha1,
        Self::UnescapePath,
    ];
}

/// Applies an operation to a text; `None` if that is impossible.
pub(crate) fn transform(operation: Operation, text: &[u8]) -> Option<Vec<u8>> {
    Some(match operation {
        Operation::Escape => escape(text),
        Operation::Unescape => return unescape(text, true),
        Operation::UnescapePath => return unescape(text, false),
        Operation::EscapeHtml => escape_html(text),
        Operation::EscapePath => escape_path(text, false),
        Operation::EscapePartialPath => escape_path(text, true),
        Operation::EscapeLogItem => escape_log_item(text),
        Operation::EncodeBase64 => base64::encode(text).into_bytes(),
        Operation::DecodeBase64 => decode_base64(text),
        Operation::Md5 => hex(&Md5::digest(text)),
        Operation::Sha1 => sha1_hex(text).into_bytes(),
    })
}

fn hex(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().flat_map(|byte| format!("{byte:02x}").into_bytes()).collect()
}

fn push_percent(out: &mut Vec<u8>, byte: u8) {
    out.extend_from_slice(format!("%{byte:02x}").as_bytes());
}

/// As in submitted forms: spaces become `+`.
fn escape(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for &byte in text {
        match byte {
            b' ' => out.push(b'+'),
            b'*' | b'-' | b'.' | b'_' => out.push(byte),
            _ if byte.is_ascii_alphanumeric() => out.push(byte),
            _ => push_percent(&mut out, byte),
        }
    }
    out
}

/// The inverse. `None` for an invalid escape or an escaped zero byte.
fn unescape(text: &[u8], has_plus: bool) -> Option<Vec<u8>> {
    let (decoded, Escapes::Whole) = percent::unescape(text, has_plus) else { return None };
    let zeros = |text: &[u8]| text.iter().filter(|&&byte| byte == 0).count();
    (zeros(&decoded) == zeros(text)).then(|| decoded.into_owned())
}

fn escape_html(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for &byte in text {
        match byte {
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            b'&' => out.extend_from_slice(b"&amp;"),
            b'"' => out.extend_from_slice(b"&quot;"),
            _ => out.push(byte),
        }
    }
    out
}

/// As a path in a URL. Unless it is part of a path, its beginning must not look like a scheme.
fn escape_path(text: &[u8], is_part: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 2);
    let colon = text.iter().position(|&byte| byte == b':');
    let slash = text.iter().position(|&byte| byte == b'/');
    if !is_part && colon.is_some_and(|colon| slash.is_none_or(|slash| colon < slash)) {
        out.extend_from_slice(b"./");
    }
    for &byte in text {
        if byte.is_ascii_alphanumeric() || b"!$&'()*+,-./:;=@_~".contains(&byte) {
            out.push(byte);
        } else {
            push_percent(&mut out, byte);
        }
    }
    out
}

/// As an item of a log line.
fn escape_log_item(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for &byte in text {
        let letter = match byte {
            0x08 => b'b',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            0x0b => b'v',
            b'\\' | b'"' => byte,
            0x20..=0x7e => {
                out.push(byte);
                continue;
            }
            _ => {
                out.extend_from_slice(format!("\\x{byte:02x}").as_bytes());
                continue;
            }
        };
        out.extend_from_slice(&[b'\\', letter]);
    }
    out
}

/// Decodes up to the first character that is not base64, as far as that makes whole bytes.
fn decode_base64(text: &[u8]) -> Vec<u8> {
    let is_digit = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let digits = text.iter().take_while(|byte| is_digit(byte)).count();
    let whole = digits - digits % 4;
    let mut decoded = base64::decode(&text[..whole]).unwrap_or_default();
    let rest = &text[whole..digits];
    // The last bits of a short group may be anything; a strict decoder would refuse them.
    let group: Vec<u8> = rest.iter().copied().chain([b'A'; 4]).take(4).collect();
    if rest.len() > 1 {
        let bytes = base64::decode(&group).unwrap_or_default();
        decoded.extend_from_slice(&bytes[..rest.len() - 1]);
    }
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(operation: Operation, text: &str) -> Option<String> {
        let made = transform(operation, text.as_bytes())?;
        Some(String::from_utf8(made).unwrap())
    }

    /// What Apache gives for each.
    #[test]
    fn texts_become_what_apache_makes_of_them() {
        for (operation, text, expected) in [
            (Operation::Escape, "a b&c=d/é?~*", "a+b%26c%3dd%2f%c3%a9%3f%7e*"),
            (Operation::Unescape, "a+b%41", "a bA"),
            (Operation::Unescape, "%1fa", "\u{1f}a"),
            (Operation::EscapeHtml, "<a href=\"x\">&'", "&lt;a href=&quot;x&quot;&gt;&amp;'"),
            (Operation::EscapePath, "a b:c/d?", "./a%20b:c/d%3f"),
            (Operation::EscapePath, "/a b:c;x=1~", "/a%20b:c;x=1~"),
            (Operation::EscapePartialPath, "a:b", "a:b"),
            (Operation::EscapeLogItem, "a\"b\n\u{1}\\é", "a\\\"b\\n\\x01\\\\\\xc3\\xa9"),
            (Operation::EncodeBase64, "hello\0x", "aGVsbG8AeA=="),
            (Operation::DecodeBase64, "aGVsbG8", "hello"),
            (Operation::DecodeBase64, "aGVsbG8=xx", "hello"),
            (Operation::DecodeBase64, "aGVsbG9", "hello"),
            (Operation::DecodeBase64, "aGV sbG8=", "he"),
            (Operation::DecodeBase64, "a", ""),
            (Operation::DecodeBase64, "!!!", ""),
            (Operation::Md5, "hello", "5d41402abc4b2a76b9719d911017c592"),
            (Operation::Sha1, "hello", "aaf4c61ddcc5e8a2dabede0f3b482cd9aea9434d"),
        ] {
            assert_eq!(made(operation, text).as_deref(), Some(expected), "{operation:?} {text}");
        }
        for broken in ["a%2", "%zz", "%00", "%"] {
            assert_eq!(made(Operation::Unescape, broken), None, "{broken}");
        }
    }
}
