//! Quoted-printable (RFC 2045), of one line, which is all that a column has.

use super::columns::digit;

/// The bytes that `text` stands for; `None` for a `=` without two hexadecimal digits behind it.
pub(super) fn decode(text: &[u8]) -> Option<Vec<u8>> {
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
