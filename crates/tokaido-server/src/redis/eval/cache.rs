//! The scripts that the server knows, by the SHA-1 of their source text.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
};

use tokaido_script::{RedisScript, sha1_hex};

use super::{
    shebang::{self, ScriptFlags},
    slots::Slots,
};
use crate::{Limits, call_statistics::CallStatistics, redis::failure::Failure};

/// A script.
#[derive(Debug)]
pub(crate) struct Script {
    /// The SHA-1 of its text, in hexadecimal.
    name: String,
    text: Box<[u8]>,
    pub(super) flags: ScriptFlags,
    pub(super) statistics: CallStatistics,
    /// When it was last used, as a count of requests.
    used: AtomicU64,
    /// It was added to the cache. If it is evicted, the same text makes a new script.
    is_kept: AtomicBool,
}

impl Script {
    fn new(name: String, text: &[u8]) -> Result<Self, Failure> {
        let flags = shebang::parse(text)?;
        let (statistics, used) = (CallStatistics::default(), AtomicU64::new(0));
        let is_kept = AtomicBool::new(false);
        Ok(Self { name, text: text.into(), flags, statistics, used, is_kept })
    }

    pub(super) fn as_redis(&self) -> RedisScript<'_> {
        RedisScript { name: &self.name, text: &self.text }
    }
}

/// The scripts of one server.
#[derive(Default)]
pub(crate) struct ScriptCache {
    known: Mutex<Known>,
    /// Incremented when all scripts are flushed, so that threads discard their compiled scripts.
    generation: AtomicU64,
    /// The threads that run scripts.
    pub(super) slots: Slots,
}

#[derive(Default)]
struct Known {
    scripts: HashMap<String, Arc<Script>>,
    /// The total length of their texts.
    bytes: usize,
    requests: u64,
}

impl Known {
    /// Evicts the least recently used script.
    fn forget_one(&mut self) {
        let oldest = self.scripts.values().min_by_key(|script| script.used.load(Relaxed));
        if let Some(name) = oldest.map(|script| script.name.clone()) {
            self.remove(&name);
        }
    }

    fn remove(&mut self, name: &str) {
        if let Some(removed) = self.scripts.remove(name) {
            self.bytes -= removed.text.len();
        }
    }
}

impl ScriptCache {
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The script with this name, which may be in upper, lower or mixed case.
    pub(super) fn find(&self, name: &[u8]) -> Option<Arc<Script>> {
        let name = std::str::from_utf8(name).ok()?;
        let mut known = self.lock();
        known.requests += 1;
        let found = match known.scripts.get(name) {
            Some(found) => found,
            None => known.scripts.get(&name.to_ascii_lowercase())?,
        };
        found.used.store(known.requests, Relaxed);
        Some(found.clone())
    }

    /// The script with this text. A new one is cached once compiled: see [`keep`](Self::keep).
    pub(super) fn of_text(&self, text: &[u8], limits: &Limits) -> Result<Arc<Script>, Failure> {
        let max = limits.redis_script_bytes_max;
        if text.len() > max {
            return Err(Failure::other(format!(
                "a script has at most {max} bytes (redis_script_bytes_max)"
            )));
        }
        let name = sha1_hex(text);
        match self.find(name.as_bytes()) {
            Some(known) => Ok(known),
            None => Script::new(name, text).map(Arc::new),
        }
    }

    /// Adds a script to the cache. If the cache is over its limits, evicts least recently used
    /// scripts.
    pub(super) fn keep(&self, script: &Arc<Script>, limits: &Limits) {
        if script.is_kept.swap(true, Relaxed) {
            return;
        }
        let mut known = self.lock();
        if known.scripts.contains_key(&script.name) {
            return;
        }
        script.used.store(known.requests, Relaxed);
        known.bytes += script.text.len();
        known.scripts.insert(script.name.clone(), script.clone());
        let is_over = |known: &Known| {
            known.scripts.len() > limits.redis_scripts_max
                || known.bytes > limits.redis_scripts_bytes_max
        };
        while known.scripts.len() > 1 && is_over(&known) {
            known.forget_one();
        }
    }

    /// Discards all scripts.
    pub(super) fn flush(&self) {
        *self.lock() = Known::default();
        self.generation.fetch_add(1, Relaxed);
    }

    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Relaxed)
    }
}
