//! Regular expressions over bytes.

use regex::bytes::{Captures, Regex, RegexBuilder};

/// Maximum size of a compiled expression, and of what it remembers while it runs.
const REGEX_BYTES_MAX: usize = 1 << 20;

/// Keys are bytes, which need not be UTF-8; neither need what an expression finds in them.
#[must_use]
pub fn compile(pattern: &[u8], ignores_case: bool) -> Option<Regex> {
    let pattern = std::str::from_utf8(pattern).ok()?;
    let mut builder = RegexBuilder::new(pattern);
    builder.unicode(false).case_insensitive(ignores_case);
    builder.size_limit(REGEX_BYTES_MAX).dfa_size_limit(REGEX_BYTES_MAX);
    // A class of characters above ASCII is one of Unicode.
    builder.build().or_else(|_| builder.unicode(true).build()).ok()
}

/// How a replacement names what was matched. In both, a backslash takes away what a character means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Groups {
    /// `$0` and `$&` stand for the match, `$1` to `$9` for its groups.
    Dollar,
    /// `&` and `\0` stand for the match, `\1` to `\9` for its groups.
    Backslash,
}

/// The text with every match replaced; `None` if that gets longer than `len_max`.
pub(crate) fn replace(
    regex: &Regex,
    text: &[u8],
    by: &[u8],
    groups: Groups,
    len_max: usize,
) -> Option<Vec<u8>> {
    if text.len() > len_max {
        return None;
    }
    let mut made = Made { bytes: Vec::with_capacity(text.len()), len_max };
    let mut end = 0;
    for found in regex.captures_iter(text) {
        let whole = found.get_match();
        // Nothing is found once more behind a match, as POSIX has it.
        if whole.is_empty() && whole.start() == end && end > 0 {
            continue;
        }
        made.add(&text[end..whole.start()])?;
        expand(by, groups, &found, &mut made)?;
        end = whole.end();
    }
    made.add(&text[end..])?;
    Some(made.bytes)
}

/// What a replacement makes, up to its limit.
struct Made {
    bytes: Vec<u8>,
    len_max: usize,
}

impl Made {
    fn add(&mut self, piece: &[u8]) -> Option<()> {
        if piece.len() > self.len_max - self.bytes.len() {
            return None;
        }
        self.bytes.extend_from_slice(piece);
        Some(())
    }
}

fn expand(by: &[u8], groups: Groups, found: &Captures<'_>, made: &mut Made) -> Option<()> {
    let group = |digit: u8| {
        let group = found.get(usize::from(digit.saturating_sub(b'0')));
        group.map(|group| group.as_bytes()).unwrap_or_default()
    };
    let mut rest = by;
    while let Some((&byte, behind)) = rest.split_first() {
        rest = match (groups, byte, behind) {
            (Groups::Dollar, b'$', [digit @ (b'0'..=b'9' | b'&'), after @ ..])
            | (Groups::Backslash, b'\\', [digit @ b'0'..=b'9', after @ ..]) => {
                made.add(group(*digit))?;
                after
            }
            (Groups::Backslash, b'&', after) => {
                made.add(group(b'0'))?;
                after
            }
            (_, b'\\', [escaped, after @ ..]) => {
                made.add(&[*escaped])?;
                after
            }
            _ => {
                made.add(&[byte])?;
                behind
            }
        };
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_over_bytes() {
        let found = |pattern: &str, key: &[u8]| {
            compile(pattern.as_bytes(), false).map(|regex| regex.is_match(key))
        };
        assert_eq!(found("^a.c$", b"a\xffc"), Some(true));
        assert_eq!(found("日", "本日".as_bytes()), Some(true));
        assert_eq!(found("[日月]", "本日".as_bytes()), Some(true));
        assert_eq!(found("A", b"a"), Some(false));
        assert_eq!(found("(", b""), None);
        assert_eq!(found("(a{1000}){1000}", b""), None);
        assert!(compile(b"A", true).is_some_and(|regex| regex.is_match(b"a")));
    }

    /// What Kyoto Cabinet gives.
    #[test]
    fn matches_are_replaced() {
        let replaced = |text: &str, pattern: &str, by: &str| {
            let regex = compile(pattern.as_bytes(), false).unwrap();
            replace(&regex, text.as_bytes(), by.as_bytes(), Groups::Dollar, 100)
                .map(|m| String::from_utf8(m).unwrap())
        };
        let swapped = replaced("hello world", "(o) (w)", "[$2$1&$&$0]").unwrap();
        assert_eq!(swapped, "hell[wo&o wo w]orld");
        assert_eq!(replaced("aaa", "a*", "x").unwrap(), "x");
        assert_eq!(replaced("a.b", "[.]", "\\$1").unwrap(), "a$1b");
        assert_eq!(replaced(&"a".repeat(99), "a", "bb"), None);
        assert_eq!(replaced(&"a".repeat(101), "a+", ""), None);
    }

    #[test]
    fn tokyo_cabinet_names_groups_by_a_backslash() {
        let regex = compile(b"(o) (w)", false).unwrap();
        let made = replace(&regex, b"hello world", br"[\2\1&\&\\\0$1]", Groups::Backslash, 100);
        assert_eq!(made.unwrap(), br"hell[woo w&\o w$1]orld");
    }

    #[test]
    fn a_replacement_ends_at_the_limit() {
        let regex = compile(b".+", false).unwrap();
        let found = regex.captures(b"aaaaaaaaaa").unwrap();
        let mut made = Made { bytes: Vec::new(), len_max: 95 };
        assert!(expand(&b"$0".repeat(1 << 20), Groups::Dollar, &found, &mut made).is_none());
        assert_eq!(made.bytes.len(), 90);
    }
}
