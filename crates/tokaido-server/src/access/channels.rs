//! Channel patterns.

use super::{error::RuleError, patterns::PATTERNS_MAX};
use crate::redis::glob;

/// The channel patterns of a selector.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct ChannelPatterns {
    are_all: bool,
    patterns: Vec<Vec<u8>>,
}

impl ChannelPatterns {
    pub(super) fn allow_all(&mut self) {
        *self = Self { are_all: true, patterns: Vec::new() };
    }

    pub(super) fn are_all(&self) -> bool {
        self.are_all
    }

    /// Adds a pattern, without the `&` before it.
    pub(super) fn add(&mut self, pattern: &[u8]) -> Result<(), RuleError> {
        if self.are_all {
            return Err(RuleError::AllChannels);
        }
        if super::has_blank(pattern) {
            return Err(RuleError::Syntax);
        }
        if self.patterns.iter().any(|known| known == pattern) {
            return Ok(());
        }
        if self.patterns.len() >= PATTERNS_MAX {
            return Err(RuleError::TooMany(PATTERNS_MAX));
        }
        self.patterns.push(pattern.to_vec());
        Ok(())
    }

    /// Whether a channel may be used. A pattern to subscribe to must itself be one of these.
    pub(super) fn allow(&self, channel: &[u8], is_pattern: bool) -> bool {
        let matches = |pattern: &Vec<u8>| match is_pattern {
            true => pattern == channel,
            false => glob::matches(pattern, channel),
        };
        self.are_all || self.patterns.iter().any(matches)
    }

    /// The patterns as ACL rules, separated by spaces.
    pub(super) fn describe(&self) -> Vec<u8> {
        if self.are_all {
            return b"&*".to_vec();
        }
        let described = self.patterns.iter().map(|pattern| [b"&", &pattern[..]].concat());
        described.collect::<Vec<_>>().join(&b' ')
    }
}
