//! Which sessions track which keys, and how they are notified of changes.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    mem,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    thread,
};

use tokaido_store::{
    Change, CommitNumber, DatabaseId, Observer, ObserverGuard, Store, TransactionChanges, What,
};

use super::{
    listener::{Listener, Message},
    prefixes::Prefixes,
    table::Table,
};
use crate::{affinity, redis::failure::Failure};

/// A table with more keys is dropped by a separate thread, because others wait for the thread that holds it.
const DROPPED_HERE_MAX: usize = 1000;

/// Notifies clients of changes of the keys that they have read, or that have a prefix they named. It observes the
/// store only while at least one session tracks.
///
/// The keys are those of all databases: as in Redis, a message does not name the database.
pub(crate) struct Tracker {
    store: Weak<dyn Store>,
    /// How many groups of transactions have been reported to it.
    groups: AtomicU64,
    /// Maximum number of keys in the table.
    keys_max: AtomicUsize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Present as long as any session tracks.
    observer: Option<ObserverGuard>,
    listeners: HashMap<u64, Listener>,
    table: Table,
    prefixes: Prefixes,
    /// The sessions that made transactions of the current group, if they are not notified of their own changes.
    authors: HashMap<CommitNumber, u64>,
}

/// The numbers that INFO reports.
pub(crate) struct Sizes {
    pub(crate) clients: usize,
    pub(crate) keys: usize,
    pub(crate) items: usize,
    pub(crate) prefixes: usize,
}

impl Tracker {
    pub(crate) fn new(store: &Arc<dyn Store>, keys_max: usize) -> Arc<Self> {
        Arc::new(Self {
            store: Arc::downgrade(store),
            groups: AtomicU64::new(0),
            keys_max: AtomicUsize::new(keys_max),
            state: Mutex::default(),
        })
    }

    pub(crate) fn sizes(&self) -> Sizes {
        let state = self.lock();
        Sizes {
            clients: state.listeners.len(),
            keys: state.table.len(),
            items: state.table.items(),
            prefixes: state.prefixes.len(),
        }
    }

    /// How many groups have been reported. Reads of the store after this call see all of them.
    pub(in crate::redis) fn groups(&self) -> u64 {
        self.groups.load(Ordering::SeqCst)
    }

    /// Makes a session track keys, or changes how.
    pub(super) fn enter(self: &Arc<Self>, listener: Listener) -> Result<(), Failure> {
        let mut state = self.lock();
        if state.observer.is_none() {
            let store = self.store.upgrade();
            let observer = store.and_then(|store| store.observe(Arc::clone(self) as _));
            let message = "the engine of this server does not tell of changes";
            state.observer = Some(observer.ok_or_else(|| Failure::other(message))?);
        }
        state.listeners.insert(listener.client.id, listener);
        Ok(())
    }

    /// Notifies the session of keys with a prefix.
    pub(super) fn add_prefix(&self, session: u64, prefix: &Arc<[u8]>) {
        self.lock().prefixes.add(prefix, session);
    }

    /// Ends a session's tracking.
    pub(super) fn leave<'p>(&self, session: u64, prefixes: impl Iterator<Item = &'p Arc<[u8]>>) {
        let mut state = self.lock();
        state.listeners.remove(&session);
        prefixes.for_each(|prefix| state.prefixes.remove(prefix, session));
        state.table.leave(session);
        if state.listeners.is_empty() {
            let state = mem::take(&mut *state);
            drop_aside(state.table);
        }
    }

    /// Records that a session reads keys, unless it has left. Returns whether the number of groups is still
    /// `groups`: if not, what the session reads may be older than the latest group.
    pub(in crate::redis) fn remember<'k>(
        &self,
        session: u64,
        keys: impl Iterator<Item = &'k [u8]>,
        groups: u64,
    ) -> bool {
        let keys_max = self.keys_max.load(Ordering::Relaxed);
        let mut state = self.lock();
        let State { table, listeners, .. } = &mut *state;
        if listeners.contains_key(&session) {
            for key in keys {
                table.remember(key, session);
                while table.len() > keys_max
                    && let Some((key, readers)) = table.take_oldest()
                {
                    tell_readers(listeners, &key, &readers);
                }
            }
        }
        self.groups() == groups
    }

    /// Notifies a session that keys have changed; with `by_prefix`, only of those with one of its prefixes.
    pub(super) fn invalidate<'k>(
        &self,
        session: u64,
        keys: impl Iterator<Item = &'k [u8]>,
        by_prefix: bool,
    ) {
        let mut state = self.lock();
        let State { table, listeners, prefixes, .. } = &mut *state;
        for key in keys {
            if !by_prefix || prefixes.of(key).any(|(_, sessions)| sessions.contains(&session)) {
                tell_readers(listeners, key, &[session]);
                table.take_reader(key, session);
            }
        }
    }

    /// Records that a committed but unpublished transaction was made by this session, which is not notified of its
    /// own changes.
    pub(super) fn note_author(&self, number: CommitNumber, session: u64) {
        self.lock().authors.insert(number, session);
    }

    /// Maximum number of keys in the table.
    pub(crate) fn keys_max(&self) -> usize {
        self.keys_max.load(Ordering::Relaxed)
    }

    /// Changes the limit of the table.
    pub(crate) fn limit(&self, keys_max: usize) {
        self.keys_max.store(keys_max, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Tracker {
    fn published(&self, group: &[TransactionChanges<'_>]) {
        let mut state = self.lock();
        self.groups.fetch_add(1, Ordering::SeqCst);
        let internal = self.store.upgrade().and_then(|store| store.internal_database());
        let is_meant = |change: &&Change<'_>| {
            !change.database.is_elements() && Some(change.database) != internal
        };
        // Each key, with the one session that has changed it if that is not to be notified.
        let mut changed: BTreeMap<&[u8], Option<u64>> = BTreeMap::new();
        for transaction in group {
            let author = state.authors.get(&transaction.number).copied();
            let mut changes = transaction.changes.iter().filter(is_meant).peekable();
            let mut is_flushed = false;
            while changes.next_if(|change| key_of(change).is_none()).is_some() {
                is_flushed = true;
            }
            if is_flushed {
                changed.clear();
                state.flush();
            }
            for key in changes.filter_map(key_of) {
                let known = changed.entry(key).or_insert(author);
                *known = known.filter(|known| Some(*known) == author);
            }
        }
        state.tell(&changed);
    }
}

fn key_of<'g>(change: &Change<'g>) -> Option<&'g [u8]> {
    match change.what {
        What::Put { key, .. } | What::Deleted { key } | What::Reclaimed { key } => Some(key),
        What::Cleared | What::Moved { .. } => None,
    }
}

impl State {
    /// Notifies all sessions that all keys have changed.
    fn flush(&mut self) {
        let message = Message::of_all();
        self.listeners.values().for_each(|listener| listener.tell(&message));
        drop_aside(mem::take(&mut self.table));
    }

    /// Notifies of changed keys. The session given with a key has changed it and is not to be notified.
    fn tell(&mut self, changed: &BTreeMap<&[u8], Option<u64>>) {
        let Self { listeners, table, prefixes, .. } = self;
        table.remove_some();
        for (key, author) in changed {
            let readers = table.take(key, *author);
            tell_readers(listeners, key, &readers);
        }
        if prefixes.is_empty() {
            return;
        }
        let mut by_prefix = BTreeMap::new();
        for key in changed.keys() {
            for (prefix, sessions) in prefixes.of(key) {
                let keys = |sessions| (sessions, Vec::<&[u8]>::new());
                by_prefix.entry(prefix).or_insert_with(|| keys(sessions)).1.push(key);
            }
        }
        for (sessions, keys) in by_prefix.into_values() {
            tell_all(listeners, sessions, &keys, changed);
        }
    }
}

fn tell_readers(listeners: &HashMap<u64, Listener>, key: &[u8], readers: &[u64]) {
    let message = Message::of_key(key);
    for listener in readers.iter().filter_map(|reader| listeners.get(reader)) {
        listener.tell(&message);
    }
}

/// Notifies sessions of keys, leaving out their own changes if they are not to be notified of these.
fn tell_all(
    listeners: &HashMap<u64, Listener>,
    sessions: &BTreeSet<u64>,
    keys: &[&[u8]],
    changed: &BTreeMap<&[u8], Option<u64>>,
) {
    let message = Message::of_keys(keys.to_vec());
    for listener in sessions.iter().filter_map(|session| listeners.get(session)) {
        if !listener.skips_own {
            listener.tell(&message);
            continue;
        }
        let is_own = |key: &&&[u8]| changed.get(**key) == Some(&Some(listener.client.id));
        let others: Vec<&[u8]> = keys.iter().filter(|key| !is_own(key)).copied().collect();
        if !others.is_empty() {
            listener.tell(&Message::of_keys(others));
        }
    }
}

fn drop_aside(table: Table) {
    if table.len() > DROPPED_HERE_MAX {
        // If no thread can be created, the table is dropped here.
        let forget = move || {
            affinity::unbind();
            drop(table);
        };
        let _ = thread::Builder::new().name("forget".to_owned()).spawn(forget);
    }
}

/// Which session made which transactions of the current group. Discarded once the group is published or has
/// failed, because its numbers may then be given to other transactions.
pub(in crate::redis) struct Authored {
    tracker: Arc<Tracker>,
    numbers: Vec<CommitNumber>,
}

impl Authored {
    pub(in crate::redis) fn new(tracker: Arc<Tracker>) -> Self {
        Self { tracker, numbers: Vec::new() }
    }

    pub(in crate::redis) fn add(&mut self, number: CommitNumber, session: u64) {
        self.numbers.push(number);
        self.tracker.note_author(number, session);
    }
}

impl Drop for Authored {
    fn drop(&mut self) {
        let mut state = self.tracker.lock();
        for number in &self.numbers {
            state.authors.remove(number);
        }
    }
}

/// Whether the observer is told of changes in a database. It is not if the database is mounted.
pub(super) fn is_told_of(database: DatabaseId) -> bool {
    database.mount().is_none()
}
