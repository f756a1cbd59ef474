//! Regular expressions over bytes.

use std::iter;

use regex::bytes::{Captures, Regex, RegexBuilder};

/// Maximum size of a compiled expression, and of its cache while it runs.
const REGEX_BYTES_MAX: usize = 1 << 20;

/// The smallest size that is tried when an expression is weighed.
const REGEX_BYTES_MIN: usize = 1 << 8;

/// The least that a state of a compiled expression takes.
const STATE_BYTES: usize = 32;

/// Maximum number of steps of one search. It takes some tenths of a second, in which no time limit is checked.
const STEPS_MAX: usize = 1 << 26;

/// Keys are bytes, which need not be UTF-8, and neither need be what an expression finds in them.
#[must_use]
pub fn compile(pattern: &[u8], ignores_case: bool) -> Option<Regex> {
    compile_within(pattern, ignores_case, REGEX_BYTES_MAX)
}

fn compile_within(pattern: &[u8], ignores_case: bool, bytes_max: usize) -> Option<Regex> {
    let pattern = std::str::from_utf8(pattern).ok()?;
    let mut builder = RegexBuilder::new(pattern);
    builder.unicode(false).case_insensitive(ignores_case);
    builder.size_limit(bytes_max).dfa_size_limit(REGEX_BYTES_MAX);
    // A class of characters above ASCII needs Unicode.
    builder.build().or_else(|_| builder.unicode(true).build()).ok()
}

/// A compiled expression that knows how much a search with it may cost.
pub(crate) struct Expression {
    regex: Regex,
    /// Steps that a search may take per byte: roughly the number of states of the expression.
    steps: usize,
}

/// Why a search or a replacement was not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SearchError {
    #[error(
        "the text has more than {len_max} bytes, which is most for this expression; look for a simpler one, or in parts of the text"
    )]
    TextTooLong { len_max: usize },
    #[error("regex makes at most {len_max} bytes")]
    MadeTooLong { len_max: usize },
    #[error("the time is over")]
    Stopped,
}

/// How many steps a search may take per byte with an expression that can be compiled within that many bytes.
fn steps_of(fits_in: impl Fn(usize) -> bool) -> usize {
    let next = |bytes: &usize| Some(bytes * 4).filter(|&bytes| bytes < REGEX_BYTES_MAX);
    let bytes = iter::successors(Some(REGEX_BYTES_MIN), next).find(|&bytes| fits_in(bytes));
    bytes.unwrap_or(REGEX_BYTES_MAX) / STATE_BYTES
}

/// Refuses a text in which a search with that many steps per byte could take too long.
fn check_len(text: &[u8], steps: usize) -> Result<(), SearchError> {
    let len_max = STEPS_MAX / steps;
    if text.len() > len_max { Err(SearchError::TextTooLong { len_max }) } else { Ok(()) }
}

impl Expression {
    /// Compiles an expression, if it is valid.
    pub(crate) fn new(pattern: &[u8], ignores_case: bool) -> Option<Self> {
        let regex = compile(pattern, ignores_case)?;
        let steps = steps_of(|bytes| compile_within(pattern, ignores_case, bytes).is_some());
        Some(Self { regex, steps })
    }

    /// Whether it matches somewhere in the text.
    pub(crate) fn is_match(&self, text: &[u8]) -> Result<bool, SearchError> {
        self.check(text)?;
        Ok(self.regex.is_match(text))
    }

    fn check(&self, text: &[u8]) -> Result<(), SearchError> {
        check_len(text, self.steps)
    }

    /// The text with every match replaced. Each search is bounded, but there may be as many as the text has bytes, so
    /// `is_stopping` is called before each.
    pub(crate) fn replace(
        &self,
        text: &[u8],
        Replacement { by, groups, len_max }: Replacement<'_>,
        is_stopping: impl Fn() -> bool,
    ) -> Result<Vec<u8>, SearchError> {
        self.check(text)?;
        let mut made = Made { bytes: Vec::with_capacity(text.len().min(len_max)), len_max };
        let mut matches: Box<dyn Iterator<Item = Captures<'_>>> = match groups {
            Groups::Dollar => Box::new(self.regex.captures_iter(text)),
            Groups::Backslash => Box::new(self.matches_of_tokyo(text)),
        };
        let mut end = 0;
        loop {
            if is_stopping() {
                return Err(SearchError::Stopped);
            }
            let Some(found) = matches.next() else { break };
            let whole = found.get_match();
            made.add(&text[end..whole.start()])?;
            expand(by, groups, &found, &mut made)?;
            end = whole.end();
        }
        made.add(&text[end..])?;
        Ok(made.bytes)
    }

    /// The matches that Tokyo Cabinet replaces: none in an empty text, each from the end of the previous one, until
    /// one gets no further.
    fn matches_of_tokyo<'t>(&self, text: &'t [u8]) -> impl Iterator<Item = Captures<'t>> {
        let mut from = if self.regex.as_str().is_empty() { text.len() } else { 0 };
        iter::from_fn(move || {
            let found = if from < text.len() { self.regex.captures_at(text, from) } else { None }?;
            let end = found.get_match().end();
            from = if end > from { end } else { text.len() };
            Some(found)
        })
    }
}

/// What replaces matches.
#[derive(Clone, Copy)]
pub(crate) struct Replacement<'b> {
    pub(crate) by: &'b [u8],
    pub(crate) groups: Groups,
    /// Maximum length of the whole result.
    pub(crate) len_max: usize,
}

/// How a replacement refers to what was matched. In both, a backslash removes a character's special meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Groups {
    /// `$0` and `$&` stand for the match, `$1` to `$9` for its groups.
    Dollar,
    /// `&` and `\0` stand for the match, `\1` to `\9` for its groups.
    Backslash,
}

/// The result of a replacement, up to its limit.
struct Made {
    bytes: Vec<u8>,
    len_max: usize,
}

impl Made {
    fn add(&mut self, piece: &[u8]) -> Result<(), SearchError> {
        if piece.len() > self.len_max - self.bytes.len() {
            return Err(SearchError::MadeTooLong { len_max: self.len_max });
        }
        self.bytes.extend_from_slice(piece);
        Ok(())
    }
}

fn expand(
    by: &[u8],
    groups: Groups,
    found: &Captures<'_>,
    made: &mut Made,
) -> Result<(), SearchError> {
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
    Ok(())
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

    fn replaced(
        pattern: &str,
        text: &str,
        by: &str,
        groups: Groups,
    ) -> Result<String, SearchError> {
        let expression = Expression::new(pattern.as_bytes(), false).unwrap();
        let replacement = Replacement { by: by.as_bytes(), groups, len_max: 100 };
        let made = expression.replace(text.as_bytes(), replacement, || false)?;
        Ok(String::from_utf8(made).unwrap())
    }

    /// What Kyoto Cabinet gives.
    #[test]
    fn matches_are_replaced() {
        let replaced =
            |text: &str, pattern: &str, by: &str| replaced(pattern, text, by, Groups::Dollar);
        let swapped = replaced("hello world", "(o) (w)", "[$2$1&$&$0]").unwrap();
        assert_eq!(swapped, "hell[wo&o wo w]orld");
        assert_eq!(replaced("aaa", "a*", "x").unwrap(), "x");
        assert_eq!(replaced("a.b", "[.]", "\\$1").unwrap(), "a$1b");
        let too_long = Err(SearchError::MadeTooLong { len_max: 100 });
        assert_eq!(replaced(&"a".repeat(99), "a", "bb"), too_long);
        assert_eq!(replaced(&"a".repeat(101), "b", ""), too_long);
    }

    #[test]
    fn tokyo_cabinet_names_groups_by_a_backslash() {
        let made = replaced("(o) (w)", "hello world", r"[\2\1&\&\\\0$1]", Groups::Backslash);
        assert_eq!(made.unwrap(), r"hell[woo w&\o w$1]orld");
    }

    /// What `tcregexreplace` of Tokyo Cabinet 1.4.48 gives.
    #[test]
    fn tokyo_cabinet_ends_at_a_match_that_gets_no_further() {
        for (text, pattern, expected) in [
            ("abc", "", "abc"),
            ("", "^$", ""),
            ("abc", "x*", "-abc"),
            ("aab", "a*", "--b"),
            ("abab", "^a", "-bab"),
            ("abc", "$", "abc-"),
            ("abc", "c|$", "ab-"),
        ] {
            let made = replaced(pattern, text, "-", Groups::Backslash).unwrap();
            assert_eq!(made, expected, "{pattern:?} in {text:?}");
        }
    }

    #[test]
    fn what_repeats_weighs_more() {
        let steps = |pattern: &[u8]| Expression::new(pattern, false).unwrap().steps;
        assert!(steps(b"a") < 50, "{}", steps(b"a"));
        assert!(steps(b"[ab]{2000}") >= 2000, "{}", steps(b"[ab]{2000}"));
        let text = vec![b'a'; 1 << 20];
        let heavy = Expression::new(b"[ab]{2000}x", false).unwrap();
        assert!(matches!(heavy.is_match(&text), Err(SearchError::TextTooLong { .. })));
        let light = Expression::new(b"x+", false).unwrap();
        assert_eq!(light.is_match(&text), Ok(false));
    }

    /// Each search of this one goes to the end of the text.
    #[test]
    fn a_replacement_ends_with_the_time() {
        let expression = Expression::new(b".*[^A-Z]|[A-Z]", false).unwrap();
        let asked = std::cell::Cell::new(0);
        let is_stopping = || asked.replace(asked.get() + 1) == 10;
        let replacement = Replacement { by: b"x", groups: Groups::Backslash, len_max: 1 << 20 };
        let made = expression.replace(&[b'A'; 200_000], replacement, is_stopping);
        assert_eq!(made, Err(SearchError::Stopped));
        assert_eq!(asked.get(), 11);
    }

    #[test]
    fn a_replacement_ends_at_the_limit() {
        let regex = compile(b".+", false).unwrap();
        let found = regex.captures(b"aaaaaaaaaa").unwrap();
        let mut made = Made { bytes: Vec::new(), len_max: 95 };
        assert!(expand(&b"$0".repeat(1 << 20), Groups::Dollar, &found, &mut made).is_err());
        assert_eq!(made.bytes.len(), 90);
    }
}
