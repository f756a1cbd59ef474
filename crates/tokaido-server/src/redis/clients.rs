//! The open sessions, as CLIENT LIST tells of them.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU16, AtomicU64, Ordering},
    },
};

use super::{command::Command, table};
use crate::shared::wall_clock_us;

/// What one session shows to the others. The session alone writes to it.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) id: u64,
    /// The address of the peer.
    pub(crate) peer: String,
    /// The address that it connected to.
    pub(crate) local: String,
    pub(crate) opened_at_ms: u64,
    pub(crate) active_at_ms: AtomicU64,
    /// The index of the selected database in the store.
    pub(crate) database: AtomicU16,
    pub(crate) is_resp3: AtomicBool,
    /// How many commands MULTI has queued; -1 outside of one.
    pub(crate) queued: AtomicI64,
    last_command: AtomicU8,
    pub(crate) names: Mutex<Names>,
}

/// What clients call themselves.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    pub(crate) connection: String,
    pub(crate) library: String,
    pub(crate) library_version: String,
}

impl Client {
    /// Notes that the client was heard of.
    pub(crate) fn note(&self, command: &'static Command, now_ms: u64) {
        self.last_command.store(table::number_of(command), Ordering::Relaxed);
        self.active_at_ms.store(now_ms, Ordering::Relaxed);
    }

    pub(crate) fn last_command(&self) -> &'static str {
        let number = usize::from(self.last_command.load(Ordering::Relaxed));
        table::COMMANDS.get(number).map_or("NULL", |command| command.name)
    }

    pub(crate) fn names(&self) -> Names {
        self.names.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn change_names(&self, change: impl FnOnce(&mut Names)) {
        change(&mut self.names.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// The open sessions by their id.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    opened: AtomicU64,
    open: Mutex<BTreeMap<u64, Arc<Client>>>,
}

impl Clients {
    /// Enters a session, until the entry is dropped. Ids count from 1 and are never used twice.
    pub(crate) fn enter(self: &Arc<Self>, peer: &str, local: &str) -> Entry {
        let id = self.opened.fetch_add(1, Ordering::Relaxed) + 1;
        let now_ms = wall_clock_us() / 1000;
        let client = Arc::new(Client {
            id,
            peer: peer.to_owned(),
            local: local.to_owned(),
            opened_at_ms: now_ms,
            active_at_ms: AtomicU64::new(now_ms),
            database: AtomicU16::new(0),
            is_resp3: AtomicBool::new(false),
            queued: AtomicI64::new(-1),
            last_command: AtomicU8::new(u8::MAX),
            names: Mutex::default(),
        });
        self.lock().insert(id, Arc::clone(&client));
        Entry { client, clients: Arc::clone(self) }
    }

    /// Those that are open now, the oldest first.
    pub(crate) fn list(&self) -> Vec<Arc<Client>> {
        self.lock().values().cloned().collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<u64, Arc<Client>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A session's place among the open ones.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) client: Arc<Client>,
    clients: Arc<Clients>,
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.clients.lock().remove(&self.client.id);
    }
}
