//! Denied requests, for ACL LOG.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::gate::What;
use crate::shared::wall_clock_us;

/// Maximum number of entries.
pub(crate) const ENTRIES_MAX: usize = 128;

/// Similar events within this time share one entry.
const GROUPED_MS: u64 = 60_000;

/// Where a request was denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Where {
    TopLevel,
    Multi,
    Script,
}

impl Where {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::TopLevel => "toplevel",
            Self::Multi => "multi",
            Self::Script => "lua",
        }
    }
}

/// Why a request was denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    Command,
    Key,
    Channel,
    /// The name or the password is wrong.
    Authentication,
}

impl Reason {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::Key => "key",
            Self::Channel => "channel",
            Self::Authentication => "auth",
        }
    }
}

/// A kind of denied request, with a count.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) id: u64,
    pub(crate) count: u64,
    pub(crate) reason: Reason,
    pub(crate) place: Where,
    pub(crate) object: Vec<u8>,
    pub(crate) user: String,
    /// The client, as CLIENT LIST shows it.
    pub(crate) client: String,
    pub(crate) created_ms: u64,
    pub(crate) updated_ms: u64,
}

#[derive(Default)]
struct Entries {
    next_id: u64,
    /// The entry that was updated last comes first.
    entries: VecDeque<Entry>,
}

/// Denied requests, the most recent first.
#[derive(Default)]
pub(super) struct Log(Mutex<Entries>);

/// Maximum length of an object or a name that is kept, in bytes.
const KEPT_LEN_MAX: usize = 1024;

impl Log {
    pub(super) fn note_denied(&self, what: &What, user: &str, place: Where, client: String) {
        let (reason, object) = match what {
            What::Command(name) => (Reason::Command, name.as_bytes()),
            What::Key(key) => (Reason::Key, &key[..]),
            What::Channel(channel) => (Reason::Channel, &channel[..]),
        };
        self.note(reason, place, object, user, client);
    }

    pub(super) fn note(
        &self,
        reason: Reason,
        place: Where,
        object: &[u8],
        user: &str,
        client: String,
    ) {
        let object = &object[..object.len().min(KEPT_LEN_MAX)];
        let user: String = user.chars().take(KEPT_LEN_MAX).collect();
        let now_ms = wall_clock_us() / 1000;
        let mut log = self.lock();
        let known = log.entries.iter().position(|entry| {
            now_ms.saturating_sub(entry.updated_ms) <= GROUPED_MS
                && (entry.reason, entry.place) == (reason, place)
                && entry.object == object
                && entry.user == user
        });
        let entry = match known.and_then(|at| log.entries.remove(at)) {
            Some(entry) => Entry { count: entry.count + 1, updated_ms: now_ms, client, ..entry },
            None => {
                log.next_id += 1;
                let (id, object) = (log.next_id - 1, object.to_vec());
                let (created_ms, updated_ms) = (now_ms, now_ms);
                Entry { id, count: 1, reason, place, object, user, client, created_ms, updated_ms }
            }
        };
        log.entries.push_front(entry);
        log.entries.truncate(ENTRIES_MAX);
    }

    pub(super) fn last(&self, count: usize) -> Vec<Entry> {
        self.lock().entries.iter().take(count).cloned().collect()
    }

    pub(super) fn reset(&self) {
        self.lock().entries.clear();
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
