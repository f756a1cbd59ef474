//! Which sessions wait for what, in order of arrival.
//!
//! Invariant: of the sessions that wait for a key, as many at the front as there are elements for have
//! been woken, or have found nothing since. A woken session that takes nothing wakes the next one.
//!
//! Entries of a stream are for all readers, so a new entry wakes every one of them. Within a group, an entry is for the consumer
//! that has waited longest, which wakes the group's other consumers after taking what it wants.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokaido_collections::StreamId;
use tokaido_store::{
    DatabaseId, Kind, Observer, ObserverGuard, Record, Store, TransactionChanges, What,
};

use crate::{Mailbox, redis::clients::Client};

/// What a session waits for: elements of the keys.
pub(super) struct Wish {
    pub(super) database: DatabaseId,
    /// The name of the database, which may not exist yet.
    pub(super) name: Arc<str>,
    pub(super) kind: Kind,
    pub(super) keys: Vec<Box<[u8]>>,
    /// Maximum number of elements to take.
    pub(super) count: u64,
    /// The consumer group, if the session waits for entries of streams as a consumer.
    pub(super) group: Option<Box<[u8]>>,
}

/// How a session was made to stop waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unblocked {
    /// As if its timeout had passed.
    Timeout,
    /// With an error.
    Error,
}

/// All sessions of a server that wait for elements or entries.
pub(crate) struct Waiters {
    store: Weak<dyn Store>,
    /// The number of waiting sessions.
    count: AtomicUsize,
    all: Mutex<All>,
}

#[derive(Default)]
struct All {
    /// By session number.
    waiters: HashMap<u64, Waiter>,
    /// By the database and the kind of value waited for, then by key.
    queues: HashMap<(DatabaseId, Kind), Queues>,
    next_ticket: u64,
    /// Present as long as any session waits.
    observer: Option<ObserverGuard>,
}

/// The queue of each key.
type Queues = HashMap<Box<[u8]>, Queue>;

/// The sessions that wait for one key, by ticket.
type Queue = BTreeMap<u64, u64>;

struct Waiter {
    /// The smallest ticket has waited longest.
    ticket: u64,
    wish: Wish,
    mailbox: Mailbox,
    is_woken: bool,
    unblocked: Option<Unblocked>,
}

impl Waiters {
    /// Creates an instance with no waiting sessions.
    pub(crate) fn new(store: &Arc<dyn Store>) -> Arc<Self> {
        let store = Arc::downgrade(store);
        Arc::new(Self { store, count: AtomicUsize::new(0), all: Mutex::default() })
    }

    /// The number of waiting sessions.
    pub(crate) fn len(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Whether a session may take elements of a key that has `len`: those that have waited longer must
    /// leave some of them.
    pub(super) fn may_take(&self, session: u64, wish: &Wish, key: &[u8], len: u64) -> bool {
        if self.len() == 0 {
            return true;
        }
        let all = self.lock();
        let ticket = all.waiters.get(&session).map_or(u64::MAX, |waiter| waiter.ticket);
        let Some(queue) = all.queue(wish.database, wish.kind, key) else { return true };
        let mut left = len;
        for session in queue.range(..ticket).map(|(_, session)| session) {
            let count = all.waiters.get(session).map_or(0, |waiter| waiter.wish.count);
            left = left.saturating_sub(count);
            if left == 0 {
                return false;
            }
        }
        true
    }

    /// Whether no other consumer of the group has waited longer for new entries of a stream.
    pub(super) fn is_first(&self, session: u64, wish: &Wish, key: &[u8]) -> bool {
        if self.len() == 0 {
            return true;
        }
        let all = self.lock();
        let ticket = all.waiters.get(&session).map_or(u64::MAX, |waiter| waiter.ticket);
        let Some(queue) = all.queue(wish.database, wish.kind, key) else { return true };
        let mut before = queue.range(..ticket).filter_map(|(_, session)| all.waiters.get(session));
        !before.any(|waiter| waiter.wish.group == wish.group)
    }

    /// Wakes all sessions, because elements that some of them took were put back.
    pub(crate) fn wake_all(&self) {
        if self.len() > 0 {
            self.lock().waiters.values_mut().for_each(Waiter::wake);
        }
    }

    /// Ends a session's wait. Returns whether it was waiting.
    pub(crate) fn unblock(&self, session: u64, how: Unblocked) -> bool {
        let mut all = self.lock();
        let Some(waiter) = all.waiters.get_mut(&session) else { return false };
        waiter.unblocked = Some(how);
        waiter.wake();
        true
    }

    /// Adds a session to the queues. One that has waited before keeps its place.
    fn enter(self: &Arc<Self>, session: u64, wish: Wish, mailbox: Mailbox) {
        let mut all = self.lock();
        let ticket = match all.remove(session) {
            Some(before) => before.ticket,
            None => {
                all.next_ticket += 1;
                all.next_ticket
            }
        };
        for key in &wish.keys {
            let queues = all.queues.entry((wish.database, wish.kind)).or_default();
            queues.entry(key.clone()).or_default().insert(ticket, session);
        }
        let waiter = Waiter { ticket, wish, mailbox, is_woken: false, unblocked: None };
        all.waiters.insert(session, waiter);
        self.count.store(all.waiters.len(), Ordering::Relaxed);
        if all.observer.is_none() {
            let store = self.store.upgrade();
            all.observer = store.and_then(|store| store.observe(Arc::clone(self) as _));
        }
    }

    /// Removes a session from the queues. Elements that it was woken for but left go to the next one.
    /// For the key that it took from, the other sessions are woken anyway.
    fn leave(&self, session: u64, taken: Option<&[u8]>) {
        let mut all = self.lock();
        let Some(waiter) = all.remove(session) else { return };
        self.count.store(all.waiters.len(), Ordering::Relaxed);
        if waiter.wish.group.is_some() {
            all.wake_rivals(&waiter.wish);
        } else if waiter.is_woken && waiter.wish.kind != Kind::Stream {
            let Wish { database, kind, keys, .. } = &waiter.wish;
            for key in keys.iter().filter(|key| taken != Some(key)) {
                all.wake_next(*database, *kind, key);
            }
        }
        if all.waiters.is_empty() {
            all.observer = None;
        }
    }

    fn lock(&self) -> MutexGuard<'_, All> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Waiters {
    fn published(&self, group: &[TransactionChanges<'_>]) {
        let mut all = self.lock();
        for change in group.iter().flat_map(|transaction| &transaction.changes) {
            match change.what {
                What::Put { key, record } if record.kind == Kind::Stream => {
                    all.wake_readers(change.database, key, |_| true);
                }
                What::Put { key, record } => {
                    all.wake_first(change.database, key, &record);
                    all.wake_readers(change.database, key, |wish| wish.group.is_some());
                }
                // The database may have been dropped, and will get another number.
                What::Cleared | What::Moved { .. } => {
                    all.wake_where(|wish| wish.database == change.database);
                }
                // The groups of a stream are gone with it.
                What::Deleted { key } | What::Reclaimed { key } => {
                    all.wake_readers(change.database, key, |wish| wish.group.is_some());
                }
            }
        }
        if let Some(store) = self.store.upgrade() {
            all.wake_homeless(&*store);
        }
    }
}

impl All {
    fn queue(&self, database: DatabaseId, kind: Kind, key: &[u8]) -> Option<&Queue> {
        self.queues.get(&(database, kind))?.get(key)
    }

    /// Wakes as many sessions at the front as there are elements for.
    fn wake_first(&mut self, database: DatabaseId, key: &[u8], record: &Record<'_>) {
        let keys = self.queues.get(&(database, record.kind));
        let Some(queue) = keys.and_then(|keys| keys.get(key)) else { return };
        // A damaged record is reported by whichever session reads it.
        let mut left = tokaido_collections::len(record).unwrap_or(1);
        for session in queue.values() {
            if left == 0 {
                return;
            }
            if let Some(waiter) = self.waiters.get_mut(session) {
                left = left.saturating_sub(waiter.wish.count);
                waiter.wake();
            }
        }
    }

    /// Wakes the first session that is not woken yet.
    fn wake_next(&mut self, database: DatabaseId, kind: Kind, key: &[u8]) {
        let Some(queue) = self.queues.get(&(database, kind)).and_then(|keys| keys.get(key)) else {
            return;
        };
        for session in queue.values() {
            if let Some(waiter) = self.waiters.get_mut(session).filter(|waiter| !waiter.is_woken) {
                return waiter.wake();
            }
        }
    }

    /// Wakes the matching sessions that wait for entries of a stream.
    fn wake_readers(&mut self, database: DatabaseId, key: &[u8], is_meant: impl Fn(&Wish) -> bool) {
        let keys = self.queues.get(&(database, Kind::Stream));
        let Some(queue) = keys.and_then(|keys| keys.get(key)) else { return };
        for session in queue.values() {
            if let Some(waiter) = self.waiters.get_mut(session).filter(|w| is_meant(&w.wish)) {
                waiter.wake();
            }
        }
    }

    /// Wakes the sessions of the same group after one of them, which may have been the first, has left.
    fn wake_rivals(&mut self, left: &Wish) {
        for key in &left.keys {
            self.wake_readers(left.database, key, |wish| wish.group == left.group);
        }
    }

    fn wake_where(&mut self, is_meant: impl Fn(&Wish) -> bool) {
        self.waiters.values_mut().filter(|waiter| is_meant(&waiter.wish)).for_each(Waiter::wake);
    }

    /// Wakes the sessions whose database has been created.
    fn wake_homeless(&mut self, store: &dyn Store) {
        if !self.queues.keys().any(|(database, _)| *database == DatabaseId::NOWHERE) {
            return;
        }
        let homeless = self.waiters.values().map(|waiter| &waiter.wish);
        let homeless = homeless.filter(|wish| wish.database == DatabaseId::NOWHERE);
        let names: BTreeSet<Arc<str>> = homeless.map(|wish| Arc::clone(&wish.name)).collect();
        for name in names.iter().filter(|name| store.find_database(name).is_some()) {
            self.wake_where(|wish| wish.database == DatabaseId::NOWHERE && wish.name == *name);
        }
    }

    fn remove(&mut self, session: u64) -> Option<Waiter> {
        let waiter = self.waiters.remove(&session)?;
        let place = (waiter.wish.database, waiter.wish.kind);
        if let Some(keys) = self.queues.get_mut(&place) {
            for key in &waiter.wish.keys {
                if let Some(queue) = keys.get_mut(key) {
                    queue.remove(&waiter.ticket);
                    if queue.is_empty() {
                        keys.remove(key);
                    }
                }
            }
            if keys.is_empty() {
                self.queues.remove(&place);
            }
        }
        Some(waiter)
    }
}

impl Waiter {
    fn wake(&mut self) {
        self.is_woken = true;
        self.mailbox.wake();
    }
}

/// A session's place in the queues, which it leaves on drop.
pub(crate) struct Waiting {
    waiters: Arc<Waiters>,
    client: Arc<Client>,
    /// The session waits for entries of streams after these ids.
    starts: Vec<StreamId>,
}

impl Waiting {
    pub(super) fn new(waiters: Arc<Waiters>, client: Arc<Client>, starts: Vec<StreamId>) -> Self {
        client.is_blocked.store(true, Ordering::Relaxed);
        Self { waiters, client, starts }
    }

    /// The ids after which entries of streams are waited for.
    pub(super) fn starts(&self) -> Vec<StreamId> {
        self.starts.clone()
    }

    /// Starts to wait, or goes on waiting.
    pub(super) fn wait(&self, wish: Wish, mailbox: Mailbox) {
        self.waiters.enter(self.client.id, wish, mailbox);
    }

    /// How the wait was ended from outside, if it was.
    pub(super) fn unblocked(&self) -> Option<Unblocked> {
        self.waiters.lock().waiters.get(&self.client.id)?.unblocked
    }

    /// Leaves the queues after taking an element of the key.
    pub(super) fn served(self, key: &[u8]) {
        self.waiters.leave(self.client.id, Some(key));
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.waiters.leave(self.client.id, None);
        self.client.is_blocked.store(false, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
