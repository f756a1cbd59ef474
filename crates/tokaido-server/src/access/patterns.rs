//! Key patterns, and what may be done to the keys that match them.

use super::error::RuleError;
use crate::redis::glob;

/// What is done, or may be done, to a key. If neither is set, only its existence is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rights {
    pub(crate) reads: bool,
    pub(crate) writes: bool,
}

impl Rights {
    pub(crate) const NONE: Self = Self { reads: false, writes: false };
    pub(crate) const READ: Self = Self { reads: true, writes: false };
    pub(crate) const WRITE: Self = Self { reads: false, writes: true };
    pub(crate) const BOTH: Self = Self { reads: true, writes: true };

    /// Whether these rights include the others.
    fn cover(self, other: Self) -> bool {
        self.reads >= other.reads && self.writes >= other.writes
    }
}

#[derive(Clone, PartialEq, Eq)]
struct Pattern {
    rights: Rights,
    text: Vec<u8>,
}

/// The key patterns of a selector.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct KeyPatterns {
    are_all: bool,
    patterns: Vec<Pattern>,
}

/// Maximum number of patterns of a selector, and of first arguments with which it allows a command.
pub(super) const PATTERNS_MAX: usize = 10_000;

impl KeyPatterns {
    pub(super) fn allow_all(&mut self) {
        *self = Self { are_all: true, patterns: Vec::new() };
    }

    pub(super) fn are_all(&self) -> bool {
        self.are_all
    }

    /// Adds a pattern, written as `~text` or `%R~text`.
    pub(super) fn add(&mut self, rule: &[u8]) -> Result<(), RuleError> {
        if self.are_all {
            return Err(RuleError::AllKeys);
        }
        let (rights, text) = match rule.split_first() {
            Some((b'~', text)) => (Rights::BOTH, text),
            _ => {
                let tilde = rule.iter().position(|&byte| byte == b'~').ok_or(RuleError::Syntax)?;
                (rights_of(&rule[1..tilde])?, &rule[tilde + 1..])
            }
        };
        if super::has_blank(text) {
            return Err(RuleError::Syntax);
        }
        if let Some(pattern) = self.patterns.iter_mut().find(|pattern| pattern.text == text) {
            pattern.rights.reads |= rights.reads;
            pattern.rights.writes |= rights.writes;
        } else if self.patterns.len() < PATTERNS_MAX {
            self.patterns.push(Pattern { rights, text: text.to_vec() });
        } else {
            return Err(RuleError::TooMany(PATTERNS_MAX));
        }
        Ok(())
    }

    pub(super) fn match_key(&self, key: &[u8], rights: Rights) -> bool {
        let matches =
            |pattern: &Pattern| pattern.rights.cover(rights) && glob::matches(&pattern.text, key);
        self.are_all || self.patterns.iter().any(matches)
    }

    /// Whether every key may be used with these rights.
    pub(super) fn match_every_key(&self, rights: Rights) -> bool {
        let matches = |pattern: &Pattern| pattern.rights.cover(rights) && pattern.text == b"*";
        self.are_all || self.patterns.iter().any(matches)
    }

    /// The patterns as ACL rules, separated by spaces.
    pub(super) fn describe(&self) -> Vec<u8> {
        if self.are_all {
            return b"~*".to_vec();
        }
        let described = self.patterns.iter().map(|Pattern { rights, text }| {
            let head: &[u8] = match (rights.reads, rights.writes) {
                (true, false) => b"%R~",
                (false, true) => b"%W~",
                _ => b"~",
            };
            [head, text].concat()
        });
        described.collect::<Vec<_>>().join(&b' ')
    }
}

fn rights_of(letters: &[u8]) -> Result<Rights, RuleError> {
    let mut rights = Rights::NONE;
    for letter in letters {
        match letter {
            b'R' | b'r' => rights.reads = true,
            b'W' | b'w' => rights.writes = true,
            _ => return Err(RuleError::Syntax),
        }
    }
    if rights == Rights::NONE { Err(RuleError::Syntax) } else { Ok(rights) }
}
