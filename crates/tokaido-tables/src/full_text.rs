//! Conditions of full-text search: phrases that a text must contain, and phrases that it must not.

use crate::text::{folded, until_nul};

/// Maximum number of phrases, or groups of them, in one condition. Further ones are ignored.
const GROUPS_MAX: usize = 32;

/// What a text must contain: every group must be found, or must not be.
#[derive(Clone, Debug)]
pub(crate) struct FullText {
    pub(crate) groups: Vec<Group>,
}

/// Phrases of which one must be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    /// Folded.
    pub(crate) phrases: Vec<String>,
    /// Whether the text must contain one of them, or none.
    pub(crate) is_wanted: bool,
}

impl Group {
    fn wanting(phrases: Vec<String>) -> Self {
        Self { phrases, is_wanted: true }
    }
}

impl FullText {
    /// The operand is one phrase.
    pub(crate) fn phrase(operand: &[u8]) -> Self {
        Self { groups: vec![Group::wanting(vec![folded(operand)])] }
    }

    /// All tokens of the operand must be there.
    pub(crate) fn all(operand: &[u8]) -> Self {
        let groups = phrases(operand).take(GROUPS_MAX).map(|phrase| Group::wanting(vec![phrase]));
        Self { groups: groups.collect() }
    }

    /// One of the tokens of the operand must be there.
    pub(crate) fn any(operand: &[u8]) -> Self {
        Self { groups: vec![Group::wanting(phrases(operand).collect())] }
    }

    /// Tokens, or phrases in double quotes, with `&&`, `||` and `!!` between them, from left to right:
    /// `||` adds to the group before it, `!!` begins one that must not be found.
    pub(crate) fn expression(operand: &[u8]) -> Self {
        let mut groups: Vec<Group> = Vec::new();
        let mut operator = "&&";
        for token in words(&folded(operand)) {
            match token.as_str() {
                "&&" => operator = "&&",
                "||" => operator = "||",
                "!!" => operator = "!!",
                _ if operator == "||" && !groups.is_empty() => {
                    groups.last_mut().into_iter().for_each(|last| last.phrases.push(token.clone()));
                    operator = "&&";
                }
                _ if groups.len() == GROUPS_MAX => break,
                _ => {
                    groups.push(Group { phrases: vec![token], is_wanted: operator != "!!" });
                    operator = "&&";
                }
            }
        }
        Self { groups }
    }

    /// Whether a text matches. Nothing does without groups, or if the first group is unwanted.
    pub(crate) fn matches(&self, text: &[u8]) -> bool {
        if !self.groups.first().is_some_and(|first| first.is_wanted) {
            return false;
        }
        let text = folded(text);
        self.groups.iter().all(|group| {
            group.phrases.iter().any(|phrase| text.contains(phrase.as_str())) == group.is_wanted
        })
    }
}

/// The tokens of an operand, folded.
fn phrases(operand: &[u8]) -> impl Iterator<Item = String> {
    let parts = until_nul(operand).split(|byte| b"\t\n\r ,".contains(byte));
    parts.filter(|part| !part.is_empty()).map(folded)
}

/// The words of an expression. Text in double quotes is one word, in which a backslash escapes the
/// next character.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut chars = text.chars().peekable();
    loop {
        while chars.next_if_eq(&' ').is_some() {}
        let Some(&first) = chars.peek() else { return words };
        let mut word = String::new();
        if first == '"' {
            chars.next();
            while let Some(c) = chars.next().filter(|c| *c != '"') {
                word.extend(if c == '\\' { chars.next() } else { Some(c) });
            }
        } else {
            word.extend(std::iter::from_fn(|| chars.next_if(|c| *c != ' ')));
        }
        words.push(word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expression(operand: &str) -> Vec<(Vec<String>, bool)> {
        let groups = FullText::expression(operand.as_bytes()).groups;
        groups.into_iter().map(|group| (group.phrases, group.is_wanted)).collect()
    }

    #[test]
    fn an_expression_combines_words_and_quoted_phrases() {
        let group = |phrases: &[&str], is_wanted| {
            (phrases.iter().map(|p| (*p).to_owned()).collect::<Vec<_>>(), is_wanted)
        };
        assert_eq!(
            expression(r#"Tokyo || kyoto && "old \"road" !! sea"#),
            [
                group(&["tokyo", "kyoto"], true),
                group(&["old \"road"], true),
                group(&["sea"], false)
            ]
        );
        assert_eq!(expression("a b"), [group(&["a"], true), group(&["b"], true)]);
        assert_eq!(expression("|| a"), [group(&["a"], true)]);
        assert_eq!(expression(r#""open"#), [group(&["open"], true)]);
        assert_eq!(expression("&& !!"), []);
    }

    #[test]
    fn texts_are_compared_folded() {
        let text = "The Tokaido,\nfrom Tōkyō".as_bytes();
        assert!(FullText::phrase(b"tokaido, FROM").matches(text));
        assert!(FullText::all(b"TOKYO, tokaido").matches(text));
        assert!(!FullText::all(b"tokyo kyoto").matches(text));
        assert!(FullText::any(b"tokyo kyoto").matches(text));
        assert!(!FullText::any(b"").matches(text));
        assert!(FullText::phrase(b"").matches(text));
        assert!(FullText::expression(b"tokyo !! kyoto").matches(text));
        assert!(!FullText::expression(b"!! kyoto").matches(text));
    }
}
