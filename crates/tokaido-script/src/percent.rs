//! Percent-encoding in URLs.

use std::borrow::Cow;

/// The bytes that `text` stands for; `None` for a `%` without two hexadecimal digits after it.
#[must_use]
pub fn decode(text: &str) -> Option<Cow<'_, [u8]>> {
    match unescape(text.as_bytes(), false) {
        (decoded, Escapes::Whole) => Some(decoded),
        (_, Escapes::Broken) => None,
    }
}

/// As [`decode`]; `None` also if the result is not UTF-8.
#[must_use]
pub fn decode_utf8(text: &str) -> Option<Cow<'_, str>> {
    match decode(text)? {
        Cow::Borrowed(_) => Some(Cow::Borrowed(text)),
        Cow::Owned(bytes) => String::from_utf8(bytes).ok().map(Cow::Owned),
    }
}

/// As [`decode`], for a name or a value in a query, where `+` stands for a space.
#[must_use]
pub fn decode_query(text: &str) -> Option<Vec<u8>> {
    match unescape(text.as_bytes(), true) {
        (decoded, Escapes::Whole) => Some(decoded.into_owned()),
        (_, Escapes::Broken) => None,
    }
}

/// The pairs of a query, decoded; invalid escapes stay as they are. A pair without `=` has an empty
/// value.
pub fn query_pairs(query: &str) -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> {
    let decoded = |text: &str| unescape(text.as_bytes(), true).0.into_owned();
    query.split('&').filter(|pair| !pair.is_empty()).map(move |pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decoded(name), decoded(value))
    })
}

/// Text that stands for `bytes` within any part of a URL.
#[must_use]
pub fn encode(bytes: &[u8]) -> String {
    let keep = |b: u8| b.is_ascii_alphanumeric() || b"-._~".contains(&b);
    let one = |&b: &u8| if keep(b) { char::from(b).to_string() } else { format!("%{b:02X}") };
    bytes.iter().map(one).collect()
}

/// Whether all escapes of a text are valid.
pub(crate) enum Escapes {
    Whole,
    /// Some `%` has no two digits after it, and was left as it is.
    Broken,
}

/// The bytes that `text` stands for, with `+` for a space or for itself.
pub(crate) fn unescape(text: &[u8], has_plus: bool) -> (Cow<'_, [u8]>, Escapes) {
    let is_special = |&b: &u8| b == b'%' || b == b'+' && has_plus;
    let Some(first) = text.iter().position(is_special) else {
        return (Cow::Borrowed(text), Escapes::Whole);
    };
    let mut decoded = Vec::with_capacity(text.len());
    decoded.extend_from_slice(&text[..first]);
    let (mut rest, mut escapes) = (&text[first..], Escapes::Whole);
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        let digits = behind.first_chunk::<2>().and_then(|[a, b]| Some((digit(*a)?, digit(*b)?)));
        match (byte, digits) {
            (b'%', Some((high, low))) => {
                decoded.push(high << 4 | low);
                rest = &behind[2..];
            }
            (b'+', _) if has_plus => decoded.push(b' '),
            _ => {
                if byte == b'%' {
                    escapes = Escapes::Broken;
                }
                decoded.push(byte);
            }
        }
    }
    (Cow::Owned(decoded), escapes)
}

fn digit(b: u8) -> Option<u8> {
    char::from(b).to_digit(16).map(|digit| digit as u8)
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

    #[test]
    fn a_query_is_taken_apart_and_decoded() {
        let pairs: Vec<_> = query_pairs("a=1&b=x+y%20z&c&&d=%e6%97%a5&e=%zz%2").collect();
        let expected: [(&str, &str); 5] =
            [("a", "1"), ("b", "x y z"), ("c", ""), ("d", "日"), ("e", "%zz%2")];
        let expected: Vec<_> = expected
            .iter()
            .map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec()))
            .collect();
        assert_eq!(pairs, expected);
    }

    proptest::proptest! {
        #[test]
        fn what_is_encoded_is_decoded(bytes: Vec<u8>) {
            let text = encode(&bytes);
            proptest::prop_assert!(text.bytes().all(|b| b.is_ascii_graphic()));
            proptest::prop_assert_eq!(decode(&text).map(Cow::into_owned), Some(bytes));
        }
    }
}
