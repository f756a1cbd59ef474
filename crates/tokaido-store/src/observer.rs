//! Observers: who is told what was committed, as soon as snapshots see it.
//!
//! Whatever waits for a change of the data hangs on this one hook: blocking reads, notifications of
//! keys, invalidations of clients' caches, triggers, change feeds. Without an observer it costs one
//! load for each group of transactions.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use crate::{CommitNumber, DatabaseId, Record, mutex::lock};

/// Is told of every group of transactions that is committed while it is registered by
/// [`Store::observe`](crate::Store::observe).
pub trait Observer: Send + Sync {
    /// A group was made as durable as the store was opened for, and published. All groups come in
    /// the order of their transactions, each once; of what was rolled back or failed, nothing comes.
    ///
    /// It runs on the thread of the writer, before anybody learns that his transaction was
    /// committed. So it must be quick, and must not write to the store. A panic is logged, and goes
    /// no further.
    fn published(&self, group: &[TransactionChanges<'_>]);
}

/// What one transaction has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransactionChanges<'g> {
    /// Its number.
    pub number: CommitNumber,
    /// At most one for each key, in no order, except that [`What::Cleared`] and [`What::Moved`] come before the rest.
    pub changes: Vec<Change<'g>>,
}

/// A change of one keyspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change<'g> {
    /// A database, or the [elements](DatabaseId::elements) of one.
    pub database: DatabaseId,
    /// What happened.
    pub what: What<'g>,
}

/// What happened to a keyspace. What stood there before is not told: to find out would cost every
/// write a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What<'g> {
    /// Everything that was there before the transaction has gone.
    Cleared,
    /// Everything that was there before the transaction has gone, and in its place is what was in another
    /// keyspace before the transaction.
    Moved {
        /// The other keyspace.
        from: DatabaseId,
    },
    /// A record was put under a key.
    Put {
        /// The key.
        key: &'g [u8],
        /// What stands there now.
        record: Record<'g>,
    },
    /// A key was deleted, which may have had an expired record, or none.
    Deleted {
        /// The key.
        key: &'g [u8],
    },
    /// The store has removed a record that had expired, or an element of a collection that had
    /// gone. Nobody had seen either for a while.
    Reclaimed {
        /// The key.
        key: &'g [u8],
    },
}

/// As long as it lives, an observer is told of changes.
pub struct ObserverGuard {
    observers: Arc<Observers>,
    observer: Arc<dyn Observer>,
}

impl Drop for ObserverGuard {
    fn drop(&mut self) {
        let mut all = lock(&self.observers.all);
        // The same one may have been added twice.
        if let Some(own) = all.iter().position(|other| Arc::ptr_eq(other, &self.observer)) {
            all.remove(own);
        }
        self.observers.has_any.store(!all.is_empty(), Ordering::SeqCst);
    }
}

/// The observers of one store.
#[derive(Default)]
pub(crate) struct Observers {
    has_any: AtomicBool,
    all: Mutex<Vec<Arc<dyn Observer>>>,
}

impl Observers {
    pub(crate) fn add(self: &Arc<Self>, observer: Arc<dyn Observer>) -> ObserverGuard {
        let mut all = lock(&self.all);
        all.push(Arc::clone(&observer));
        self.has_any.store(true, Ordering::SeqCst);
        ObserverGuard { observers: Arc::clone(self), observer }
    }

    /// Whether there are any. Asked after a group is visible, and in one order with that: so what an observer is
    /// not told of, because it came too late, is seen by every snapshot that is taken after it came.
    #[inline]
    pub(crate) fn has_any(&self) -> bool {
        self.has_any.load(Ordering::SeqCst)
    }

    pub(crate) fn tell(&self, group: &[TransactionChanges<'_>]) {
        // Not under the lock, so that an observer may drop guards, and its own with them.
        let all = lock(&self.all).clone();
        for observer in all {
            if catch_unwind(AssertUnwindSafe(|| observer.published(group))).is_err() {
                tracing::error!("an observer of changes has panicked; what was committed stays");
            }
        }
    }
}
