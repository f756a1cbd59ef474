//! Replies of the text protocol.

use super::meta::MetaKey;

/// Appends a line.
pub fn line(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// Appends a number.
pub fn number(out: &mut Vec<u8>, number: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Appends one of the values that answer a `get`.
pub fn value(out: &mut Vec<u8>, key: &[u8], flags: u32, value: &[u8], cas: Option<u64>) {
    out.extend_from_slice(b"VALUE ");
    out.extend_from_slice(key);
    out.push(b' ');
    number(out, flags);
    out.push(b' ');
    number(out, value.len());
    if let Some(cas) = cas {
        out.push(b' ');
        number(out, cas);
    }
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// Appends one of the lines that answer `stats`.
pub fn stat(out: &mut Vec<u8>, name: &str, value: &str) {
    for part in ["STAT ", name, " ", value, "\r\n"] {
        out.extend_from_slice(part.as_bytes());
    }
}

/// Appends a flag with a number, for replies to meta commands.
pub fn meta_number(out: &mut Vec<u8>, flag: u8, value: impl itoa::Integer) {
    out.extend_from_slice(&[b' ', flag]);
    number(out, value);
}

/// Appends a word unchanged, for replies to meta commands.
pub fn meta_word(out: &mut Vec<u8>, word: &[u8]) {
    out.push(b' ');
    out.extend_from_slice(word);
}

/// Appends the key as it was sent, for replies to meta commands.
pub fn meta_key(out: &mut Vec<u8>, key: &MetaKey<'_>) {
    out.extend_from_slice(b" k");
    out.extend_from_slice(key.given());
    if key.is_base64() {
        out.extend_from_slice(b" b");
    }
}
