//! Base64 (RFC 4648, with padding): for Basic authentication, and for keys and values in JSON that
//! are not UTF-8.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The text that stands for `bytes`.
pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
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

/// The bytes that `text` stands for; `None` for what is not base64. Padding may be missing.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=').as_bytes();
    if digits.len() % 4 == 1 || text.len() - digits.len() > 2 {
        return None;
    }
    let mut bytes = Vec::with_capacity(digits.len() / 4 * 3 + 2);
    for chunk in digits.chunks(4) {
        let mut group = 0;
        for i in 0..4 {
            let digit = *chunk.get(i).unwrap_or(&b'A');
            group = group << 6 | ALPHABET.iter().position(|&d| d == digit)? as u32;
        }
        bytes.extend_from_slice(&group.to_be_bytes()[1..chunk.len()]);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_standard() {
        let examples = ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"];
        for (len, text) in examples.into_iter().enumerate() {
            let bytes = &b"foobar"[..len];
            assert_eq!(encode(bytes), text);
            assert_eq!(decode(text).as_deref(), Some(bytes));
        }
        assert_eq!(decode("Zg").as_deref(), Some(&b"f"[..]));
        for broken in ["Z", "Zg===", "Zm9v!", "Zm 9v", "日本"] {
            assert_eq!(decode(broken), None, "{broken}");
        }
    }

    proptest::proptest! {
        #[test]
        fn what_is_encoded_decodes(bytes: Vec<u8>) {
            assert_eq!(decode(&encode(&bytes)), Some(bytes));
        }
    }
}
