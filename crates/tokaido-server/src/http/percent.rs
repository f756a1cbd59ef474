//! Percent-encoding, as URLs have it.

use std::borrow::Cow;

/// The bytes that `text` stands for; `None` for a `%` without two hexadecimal digits behind it.
pub(crate) fn decode(text: &str) -> Option<Cow<'_, [u8]>> {
    let bytes = text.as_bytes();
    let Some(first) = memchr::memchr(b'%', bytes) else { return Some(Cow::Borrowed(bytes)) };
    let mut decoded = Vec::with_capacity(bytes.len());
    decoded.extend_from_slice(&bytes[..first]);
    let mut rest = &bytes[first..];
    while let Some((&byte, behind)) = rest.split_first() {
        if byte == b'%' {
            let digits = behind.first_chunk::<2>()?;
            decoded.push(hexadecimal(digits[0])? << 4 | hexadecimal(digits[1])?);
            rest = &behind[2..];
        } else {
            decoded.push(byte);
            rest = behind;
        }
    }
    Some(Cow::Owned(decoded))
}

/// As [`decode`]; `None` also for what is not UTF-8.
pub(crate) fn decode_utf8(text: &str) -> Option<Cow<'_, str>> {
    match decode(text)? {
        Cow::Borrowed(_) => Some(Cow::Borrowed(text)),
        Cow::Owned(bytes) => String::from_utf8(bytes).ok().map(Cow::Owned),
    }
}

/// A name or a value of a query, where `+` stands for a space.
pub(crate) fn decode_query(text: &str) -> Option<Vec<u8>> {
    if text.contains('+') {
        decode(&text.replace('+', " ")).map(Cow::into_owned)
    } else {
        decode(text).map(Cow::into_owned)
    }
}

fn hexadecimal(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_become_bytes_and_broken_ones_are_refused() {
        assert_eq!(decode("a%2Fb%2f%00").as_deref(), Some(&b"a/b/\0"[..]));
        assert!(matches!(decode("plain+text"), Some(Cow::Borrowed(b"plain+text"))));
        assert_eq!(decode_utf8("%E6%97%A5").as_deref(), Some("日"));
        assert_eq!(decode_utf8("%E6%97"), None);
        assert_eq!(decode_query("a+b%2B"), Some(b"a b+".to_vec()));
        for broken in ["%", "%1", "a%zz", "%+1", "%1%20"] {
            assert_eq!(decode(broken), None, "{broken}");
        }
    }
}
