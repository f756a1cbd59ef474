//! `[redis]`: what Redis clients see, and what is recorded about them.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::ConfigError;
use crate::redis::{EVENT_LETTERS, EventClasses};

/// Maximum number of entries that the slow log can be set to.
pub(crate) const SLOW_ENTRIES_MAX: usize = 1_000_000;

/// Maximum number of keys that the table of tracked keys can be set to.
pub(crate) const TRACKED_KEYS_MAX: usize = 1_000_000_000;

/// What Redis clients see. `CONFIG SET` changes the options that Redis also has, until the server stops.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RedisConfig {
    /// The keyspace events to publish, in Redis' letters; empty: none.
    pub notify_keyspace_events: String,
    /// A command that takes at least this many microseconds goes into the slow log; -1: none does.
    pub slowlog_slower_than_us: i64,
    /// The number of entries that the slow log keeps.
    pub slowlog_entries_max: usize,
    /// An event that takes at least this many milliseconds is noted for LATENCY; 0: none is.
    pub latency_threshold_ms: u64,
    /// The number of keys whose readers the server remembers, for `CLIENT TRACKING`.
    pub tracked_keys_max: usize,
    /// Who may call `DEBUG`.
    pub debug_command: DebugCommand,
}

/// Who may call `DEBUG`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DebugCommand {
    /// Nobody.
    #[default]
    No,
    /// Clients on the same machine.
    Local,
    /// Everybody.
    Yes,
}

impl DebugCommand {
    /// The word for it in the configuration.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::No => "no",
            Self::Local => "local",
            Self::Yes => "yes",
        }
    }
}

impl FromStr for DebugCommand {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let all = [Self::No, Self::Local, Self::Yes];
        let found = all.into_iter().find(|command| command.word() == word);
        found.ok_or_else(|| "it must be no, local or yes".to_owned())
    }
}

impl Default for RedisConfig {
    fn default() -> Self {
        Self {
            notify_keyspace_events: String::new(),
            slowlog_slower_than_us: 10_000,
            slowlog_entries_max: 128,
            latency_threshold_ms: 0,
            tracked_keys_max: 1_000_000,
            debug_command: DebugCommand::No,
        }
    }
}

impl RedisConfig {
    /// Refuses letters that stand for no event, and sizes out of range.
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        if EventClasses::parse(&self.notify_keyspace_events).is_none() {
            let message = format!("a letter stands for no event; use {EVENT_LETTERS}");
            return Err(ConfigError::Value { option: "redis.notify_keyspace_events", message });
        }
        if self.slowlog_entries_max > SLOW_ENTRIES_MAX {
            let message = format!("at most {SLOW_ENTRIES_MAX}: the slow log lies in memory");
            return Err(ConfigError::Value { option: "redis.slowlog_entries_max", message });
        }
        if !(1..=TRACKED_KEYS_MAX).contains(&self.tracked_keys_max) {
            let message = format!("takes 1 to {TRACKED_KEYS_MAX}: the table lies in memory");
            return Err(ConfigError::Value { option: "redis.tracked_keys_max", message });
        }
        Ok(())
    }
}
