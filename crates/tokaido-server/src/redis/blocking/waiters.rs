//! Who waits for what, in the order in which they came.
//!
//! Invariant: of those that wait for a key, as many of the first are woken, or have found nothing since,
//! as there are elements for. Whoever is woken and takes nothing lets the next one know.
//!
//! Entries of a stream are for all who read it, so everybody is woken; and of one group for the one who has waited longest, who lets
//! the others of the group know when he has taken what he wants.

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
    /// The name of the database, which may not be there yet.
    pub(super) name: Arc<str>,
    pub(super) kind: Kind,
    pub(super) keys: Vec<Box<[u8]>>,
    /// How many elements it takes at most.
    pub(super) count: u64,
    /// The group of consumers, if they are entries of streams for a consumer.
    pub(super) group: Option<Box<[u8]>>,
}

/// Why a session waits no longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unblocked {
    /// As if its time were over.
    Timeout,
    /// With an error.
    Error,
}

/// All sessions of a server that wait for elements.
pub(crate) struct Waiters {
    store: Weak<dyn Store>,
    /// How many there are.
    count: AtomicUsize,
    all: Mutex<All>,
}

#[derive(Default)]
struct All {
    /// By the number of the session.
    waiters: HashMap<u64, Waiter>,
    /// By the database and the kind of what is waited for, and by the key.
    queues: HashMap<(DatabaseId, Kind), Queues>,
    next_ticket: u64,
    /// As long as somebody waits.
    observer: Option<ObserverGuard>,
}

/// The queue of each key.
type Queues = HashMap<Box<[u8]>, Queue>;

/// Those that wait for one key: sessions by their tickets.
type Queue = BTreeMap<u64, u64>;

struct Waiter {
    /// The smallest has waited longest.
    ticket: u64,
    wish: Wish,
    mailbox: Mailbox,
    is_woken: bool,
    unblocked: Option<Unblocked>,
}

impl Waiters {
    /// Nobody waits yet.
    pub(crate) fn new(store: &Arc<dyn Store>) -> Arc<Self> {
        let store = Arc::downgrade(store);
        Arc::new(Self { store, count: AtomicUsize::new(0), all: Mutex::default() })
    }

    /// How many sessions wait.
    pub(crate) fn len(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Whether a session may take elements of a key that has `len`: those that wait for longer leave
    /// some of them.
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

    /// Wakes everybody, since what some have taken was given back.
    pub(crate) fn wake_all(&self) {
        if self.len() > 0 {
            self.lock().waiters.values_mut().for_each(Waiter::wake);
        }
    }

    /// Ends the waiting of a session. Tells whether it was waiting.
    pub(crate) fn unblock(&self, session: u64, how: Unblocked) -> bool {
        let mut all = self.lock();
        let Some(waiter) = all.waiters.get_mut(&session) else { return false };
        waiter.unblocked = Some(how);
        waiter.wake();
        true
    }

    /// Puts a session into the queues; one that has waited before keeps its place.
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

    /// Takes a session out of the queues. What it was woken for and leaves is the next one's;
    /// of a key that it has taken from, the others are told anyway.
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
                // It may be that the database was dropped, and gets another number.
                What::Cleared | What::Moved { .. } => {
                    all.wake_where(|wish| wish.database == change.database);
                }
                // A group has gone with its stream.
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

    /// Wakes as many of the first as there are elements for.
    fn wake_first(&mut self, database: DatabaseId, key: &[u8], record: &Record<'_>) {
        let keys = self.queues.get(&(database, record.kind));
        let Some(queue) = keys.and_then(|keys| keys.get(key)) else { return };
        // A damaged record is told of by whoever reads it.
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

    /// Wakes the first of those that are not woken yet.
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

    /// Wakes those who wait for entries of a stream.
    fn wake_readers(&mut self, database: DatabaseId, key: &[u8], is_meant: impl Fn(&Wish) -> bool) {
        let keys = self.queues.get(&(database, Kind::Stream));
        let Some(queue) = keys.and_then(|keys| keys.get(key)) else { return };
        for session in queue.values() {
            if let Some(waiter) = self.waiters.get_mut(session).filter(|w| is_meant(&w.wish)) {
                waiter.wake();
            }
        }
    }

    /// Wakes those of the same group: one of them has left, who may have been the first.
    fn wake_rivals(&mut self, left: &Wish) {
        for key in &left.keys {
            self.wake_readers(left.database, key, |wish| wish.group == left.group);
        }
    }

    fn wake_where(&mut self, is_meant: impl Fn(&Wish) -> bool) {
        self.waiters.values_mut().filter(|waiter| is_meant(&waiter.wish)).for_each(Waiter::wake);
    }

    /// Wakes those whose database has come into being.
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

/// A session's place in the queues, which ends with it.
pub(crate) struct Waiting {
    waiters: Arc<Waiters>,
    client: Arc<Client>,
    /// The ids behind which entries of streams are waited for.
    starts: Vec<StreamId>,
}

impl Waiting {
    pub(super) fn new(waiters: Arc<Waiters>, client: Arc<Client>, starts: Vec<StreamId>) -> Self {
        client.is_blocked.store(true, Ordering::Relaxed);
        Self { waiters, client, starts }
    }

    /// The ids behind which entries of streams are waited for.
    pub(super) fn starts(&self) -> Vec<StreamId> {
        self.starts.clone()
    }

    /// Waits, from now on or still.
    pub(super) fn wait(&self, wish: Wish, mailbox: Mailbox) {
        self.waiters.enter(self.client.id, wish, mailbox);
    }

    /// Takes what was said to end the waiting.
    pub(super) fn unblocked(&self) -> Option<Unblocked> {
        self.waiters.lock().waiters.get(&self.client.id)?.unblocked
    }

    /// An element of the key was taken.
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
