//! Redis's patterns: `*`, `?`, `[a-c]`, `[^a-c]`, and `\` before a byte to be taken literally.

/// Whether all of `text` matches `pattern`, in time of at most the product of their lengths.
pub(crate) fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    // Where to resume after a mismatch: after the last `*`, which then takes one more byte.
    let mut retry: Option<(usize, usize)> = None;
    loop {
        if pattern.get(p) == Some(&b'*') {
            p += 1;
            retry = Some((p, t));
            continue;
        }
        match (pattern.get(p), text.get(t)) {
            (None, None) => return true,
            (Some(_), Some(&byte)) => {
                if let Some(next) = match_byte(pattern, p, byte) {
                    (p, t) = (next, t + 1);
                    continue;
                }
            }
            (Some(_), None) => return false,
            (None, Some(_)) => {}
        }
        let Some((star, taken)) = &mut retry else { return false };
        *taken += 1;
        (p, t) = (*star, *taken);
    }
}

/// Matches one byte against the pattern item at `p`. Returns the index after the item.
fn match_byte(pattern: &[u8], p: usize, byte: u8) -> Option<usize> {
    match pattern[p] {
        b'?' => Some(p + 1),
        b'[' => {
            let (matched, next) = match_class(pattern, p + 1, byte);
            matched.then_some(next)
        }
        b'\\' if p + 1 < pattern.len() => (pattern[p + 1] == byte).then_some(p + 2),
        literal => (literal == byte).then_some(p + 1),
    }
}

/// Matches a class whose first byte after `[` is at `p`. An unclosed class extends to the end of
/// the pattern.
fn match_class(pattern: &[u8], mut p: usize, byte: u8) -> (bool, usize) {
    let negated = pattern.get(p) == Some(&b'^');
    p += usize::from(negated);
    let mut found = false;
    loop {
        match pattern[p.min(pattern.len())..] {
            [] => return (found != negated, pattern.len()),
            [b']', ..] => return (found != negated, p + 1),
            [b'\\', literal, ..] => {
                found |= literal == byte;
                p += 2;
            }
            [from, b'-', to, ..] => {
                found |= (from.min(to)..=from.max(to)).contains(&byte);
                p += 3;
            }
            [literal, ..] => {
                found |= literal == byte;
                p += 1;
            }
        }
    }
}

/// The bytes that every match starts with, so that a scan visits only keys with this prefix.
pub(crate) fn literal_prefix(pattern: &[u8]) -> Vec<u8> {
    let mut prefix = Vec::new();
    let mut rest = pattern;
    loop {
        match rest {
            [] | [b'*' | b'?' | b'[', ..] => return prefix,
            [b'\\', literal, tail @ ..] | [literal, tail @ ..] => {
                prefix.push(*literal);
                rest = tail;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_forms_of_a_pattern() {
        for (pattern, yes, no) in [
            ("*", &["", "a", "abc"][..], &[][..]),
            ("h?llo", &["hello", "hxllo"], &["hllo", "heello"]),
            ("h*llo", &["hllo", "heeello"], &["hell"]),
            ("h[ae]llo", &["hello", "hallo"], &["hillo"]),
            ("h[^e]llo", &["hallo", "h^llo"], &["hello"]),
            ("h[a-c]llo", &["hallo", "hbllo"], &["hello"]),
            ("h[c-a]llo", &["hallo", "hbllo"], &["hello"]),
            ("h\\*llo", &["h*llo"], &["hello"]),
            ("[\\]]", &["]"], &["\\"]),
            ("[a\\-z]", &["a", "-", "z"], &["b"]),
            ("[]", &[], &["", "a", "]"]),
            ("[^]", &["a", "]"], &[""]),
            ("[ab", &["a", "b"], &["c", "[ab"]),
            ("a\\", &["a\\"], &["a"]),
            ("*a*b*", &["ab", "xaxbx"], &["ba"]),
            ("a**b", &["ab", "axb"], &["a"]),
        ] {
            for text in yes {
                assert!(matches(pattern.as_bytes(), text.as_bytes()), "{pattern} {text}");
            }
            for text in no {
                assert!(!matches(pattern.as_bytes(), text.as_bytes()), "{pattern} {text}");
            }
        }
    }

    #[test]
    fn the_literal_prefix_ends_at_the_first_special_byte() {
        assert_eq!(literal_prefix(b"user:*"), b"user:");
        assert_eq!(literal_prefix(b"user\\*:[a]"), b"user*:");
        assert_eq!(literal_prefix(b"plain"), b"plain");
        assert_eq!(literal_prefix(b"a\\"), b"a\\");
        assert_eq!(literal_prefix(b"?a"), b"");
    }

    /// The definition, item by item, trying every length for a `*`.
    fn naive(pattern: &[u8], text: &[u8]) -> bool {
        match (pattern, text) {
            ([], text) => text.is_empty(),
            ([b'*', rest @ ..], text) => (0..=text.len()).any(|n| naive(rest, &text[n..])),
            (_, []) => false,
            (_, [byte, tail @ ..]) => {
                match_byte(pattern, 0, *byte).is_some_and(|next| naive(&pattern[next..], tail))
            }
        }
    }

    proptest! {
        #[test]
        fn stars_match_as_the_naive_matcher_does(
            pattern in "[ab*?\\[\\]^\\\\-]{0,10}", text in "[ab*\\]^-]{0,10}",
        ) {
            prop_assert_eq!(
                matches(pattern.as_bytes(), text.as_bytes()),
                naive(pattern.as_bytes(), text.as_bytes())
            );
        }

        #[test]
        fn a_match_has_the_literal_prefix(pattern in "[ab*?\\\\]{0,6}", text in "[ab]{0,6}") {
            if matches(pattern.as_bytes(), text.as_bytes()) {
                prop_assert!(text.as_bytes().starts_with(&literal_prefix(pattern.as_bytes())));
            }
        }

        #[test]
        fn an_escaped_text_matches_only_itself(text: Vec<u8>, other: Vec<u8>) {
            let pattern: Vec<u8> = text.iter().flat_map(|&b| [b'\\', b]).collect();
            prop_assert!(matches(&pattern, &text));
            prop_assert_eq!(matches(&pattern, &other), text == other);
        }
    }
}
