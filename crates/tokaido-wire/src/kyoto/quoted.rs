//! Quoted-printable (RFC 2045), of one line, which is all that a column has.

use super::columns::digit;

/// Bytes as text, on one line however long it gets.
#[must_use]
pub fn encode(bytes: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(bytes.len());
    for &byte in bytes {
        match byte {
            b' '..=b'~' if byte != b'=' => text.push(byte),
            _ => text.extend_from_slice(format!("={byte:02X}").as_bytes()),
        }
    }
    text
}

/// The bytes that `text` stands for; `None` for a `=` without two hexadecimal digits behind it.
#[must_use]
pub fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, behind)) = rest.split_first() {
        rest = match (byte, behind) {
            (b'=', [high, low, after @ ..]) => {
                bytes.push(digit(*high)? << 4 | digit(*low)?);
                after
            }
            (b'=', _) => return None,
            _ => {
                bytes.push(byte);
                behind
            }
        };
    }
    Some(bytes)
}
