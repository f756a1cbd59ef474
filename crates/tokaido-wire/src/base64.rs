//! Base64 (RFC 4648), for bytes in JSON that are not text, for keys of memcached's meta commands,
//! and for Basic authentication.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The length in base64 of `len` bytes.
#[must_use]
pub const fn encoded_len(len: usize) -> usize {
    len.div_ceil(3) * 4
}

/// Encodes `bytes`, with padding.
#[must_use]
pub fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(encoded_len(bytes.len()));
    for chunk in bytes.chunks(3) {
        let [a, b, c] = [0, 1, 2].map(|i| u32::from(*chunk.get(i).unwrap_or(&0)));
        let group = a << 16 | b << 8 | c;
        for i in 0..4 {
            let digit = ALPHABET[(group >> (18 - 6 * i)) as usize & 63];
            text.push(if i <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

/// Decodes `text`; `None` for what no encoder writes. The padding may be missing altogether.
#[must_use]
pub fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let padding = text.iter().rev().take_while(|&&b| b == b'=').count();
    let digits = &text[..text.len() - padding];
    if digits.len() % 4 == 1 || (padding > 0 && padding != digits.len().wrapping_neg() % 4) {
        return None;
    }
    let mut bytes = Vec::with_capacity(digits.len() / 4 * 3 + 2);
    for chunk in digits.chunks(4) {
        let mut group: u32 = 0;
        for i in 0..4 {
            group = group << 6 | chunk.get(i).map_or(Some(0), |&digit| value_of(digit))?;
        }
        let group = group.to_be_bytes();
        let (kept, stray) = group[1..].split_at(chunk.len() - 1);
        if stray.iter().any(|&b| b != 0) {
            return None;
        }
        bytes.extend_from_slice(kept);
    }
    Some(bytes)
}

/// The six bits that a digit stands for.
#[must_use]
pub fn value_of(digit: u8) -> Option<u32> {
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

    #[test]
    fn the_examples_of_the_standard_hold() {
        let examples = ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"];
        for (len, text) in examples.into_iter().enumerate() {
            let bytes = &b"foobar"[..len];
            assert_eq!((encode(bytes).as_str(), encoded_len(len)), (text, text.len()));
            assert_eq!(decode(text.as_bytes()).as_deref(), Some(bytes));
            assert_eq!(decode(text.trim_end_matches('=').as_bytes()).as_deref(), Some(bytes));
        }
    }

    #[test]
    fn what_no_encoder_writes_is_refused() {
        for text in
            ["Z", "Zg=", "Z===", "====", "Zg===", "Zh==", "Zg==Zg==", "Z g=", "Zm9\n", "日本"]
        {
            assert_eq!(decode(text.as_bytes()), None, "{text:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn what_is_encoded_is_decoded(bytes: Vec<u8>) {
            proptest::prop_assert_eq!(decode(encode(&bytes).as_bytes()), Some(bytes));
        }
    }
}
