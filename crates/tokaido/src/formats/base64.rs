//! Base64 (RFC 4648, with padding), for the bytes that JSON strings cannot hold.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The length of `len` bytes in base64.
pub(crate) const fn encoded_len(len: usize) -> usize {
    len.div_ceil(3) * 4
}

/// Writes `bytes` in base64.
pub(crate) fn encode(bytes: &[u8], text: &mut Vec<u8>) {
    for chunk in bytes.chunks(3) {
        let byte = |i: usize| u32::from(chunk.get(i).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        let digit = |shift: u32| ALPHABET[(bits >> shift & 0x3f) as usize];
        text.push(digit(18));
        text.push(digit(12));
        text.push(if chunk.len() > 1 { digit(6) } else { b'=' });
        text.push(if chunk.len() > 2 { digit(0) } else { b'=' });
    }
}

/// Reads base64 strictly: whole groups, padding only at the end, no stray bits.
pub(crate) fn decode(text: &[u8]) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let padding = text.iter().rev().take_while(|&&b| b == b'=').count();
    if padding > 2 {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let digits = &text[..text.len() - padding];
    for group in digits.chunks(4) {
        let mut bits = 0;
        for &digit in group {
            bits = bits << 6 | value_of(digit)?;
        }
        bits <<= 6 * (4 - group.len());
        let [_, high, middle, low] = bits.to_be_bytes();
        let kept = group.len() - 1;
        if [high, middle, low][kept..].iter().any(|&b| b != 0) {
            return None;
        }
        bytes.extend_from_slice(&[high, middle, low][..kept]);
    }
    Some(bytes)
}

fn value_of(digit: u8) -> Option<u32> {
    Some(u32::from(match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(bytes: &[u8]) -> String {
        let mut text = Vec::new();
        encode(bytes, &mut text);
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn the_examples_of_the_standard_hold() {
        let examples = ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"];
        for (len, text) in examples.into_iter().enumerate() {
            assert_eq!(encoded(&b"foobar"[..len]), text);
            assert_eq!(encoded_len(len), text.len());
        }
    }

    #[test]
    fn what_no_encoder_writes_is_refused() {
        for text in ["Zg=", "Zg", "Z===", "====", "Zh==", "Zg==Zg==", "Z g=", "Zm9\n"] {
            assert_eq!(decode(text.as_bytes()), None, "{text:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn what_is_encoded_is_decoded(bytes: Vec<u8>) {
            proptest::prop_assert_eq!(decode(encoded(&bytes).as_bytes()), Some(bytes));
        }
    }
}
