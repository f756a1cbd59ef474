//! Quoted-printable (RFC 2045) on a single line, since a column has only one.

use super::columns::digit;

/// Encodes bytes on one line, however long it gets.
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

/// Decodes `text`; `None` if a `=` is not followed by two hexadecimal digits.
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
