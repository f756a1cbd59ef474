//! Matches texts against patterns with `*` and `?`.

/// Whether a text matches a pattern, in which `*` stands for any text and `?` for one byte.
///
/// Takes at most the product of the lengths in steps, since only the last `*` is ever retried.
pub(crate) fn matches_wildcard(text: &[u8], pattern: &[u8], ignores_case: bool) -> bool {
    let same = |a: u8, b: u8| if ignores_case { a.eq_ignore_ascii_case(&b) } else { a == b };
    let (mut at, mut place) = (0, 0);
    // Where the last star is, and where the text begins that it does not take.
    let mut star: Option<(usize, usize)> = None;
    while at < text.len() {
        match pattern.get(place) {
            Some(b'*') => {
                star = Some((place, at));
                place += 1;
            }
            Some(&wanted) if wanted == b'?' || same(wanted, text[at]) => {
                at += 1;
                place += 1;
            }
            _ => {
                let Some((star_place, taken)) = star else { return false };
                star = Some((star_place, taken + 1));
                (at, place) = (taken + 1, star_place + 1);
            }
        }
    }
    pattern[place..].iter().all(|&byte| byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_question_marks_match() {
        let matches = |text: &str, pattern: &str, ignores_case| {
            matches_wildcard(text.as_bytes(), pattern.as_bytes(), ignores_case)
        };
        for (text, pattern) in [
            ("foobar.com", "foo*.com"),
            ("abc", "a?c"),
            ("abc", "*"),
            ("", "**"),
            ("aXbXc", "*X?"),
            ("abab", "*ab"),
        ] {
            assert!(matches(text, pattern, false), "{text} {pattern}");
        }
        for (text, pattern) in
            [("abc", "a?"), ("abc", ""), ("", "?"), ("abc", "*d"), ("Foo", "foo")]
        {
            assert!(!matches(text, pattern, false), "{text} {pattern}");
        }
        assert!(matches("Foo", "fO?", true));
    }
}
