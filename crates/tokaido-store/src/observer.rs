//! Observers: callbacks that learn what was committed as soon as snapshots see it.
//!
//! Everything that waits for changes to the data uses this one hook: blocking reads, keyspace
//! notifications, invalidation of client-side caches, triggers, change feeds. Without an observer
//! it costs one load for each group of transactions.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use crate::{CommitNumber, DatabaseId, Record, mutex::lock};

/// Is told of every group of transactions that is committed while it is registered with
/// [`Store::observe`](crate::Store::observe).
pub trait Observer: Send + Sync {
    /// Called when a group was made as durable as configured, and published. Groups come in order
    /// of their transactions, each once; what was rolled back or failed is not reported.
    ///
    /// It runs on the writer's thread, before any caller learns that its transaction was committed.
    /// So it must be quick, and must not write to the store. A panic is logged and goes no further.
    fn published(&self, group: &[TransactionChanges<'_>]);
}

/// The changes made by one transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransactionChanges<'g> {
    /// Its number.
    pub number: CommitNumber,
    /// At most one for each key, in no order, except that [`What::Cleared`] and [`What::Moved`]
    /// come before the rest.
    pub changes: Vec<Change<'g>>,
}

/// A change in one keyspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change<'g> {
    /// A database, or a database's [elements](DatabaseId::elements).
    pub database: DatabaseId,
    /// What happened.
    pub what: What<'g>,
}

/// What happened to a keyspace. The previous record is not reported: finding it out would cost
/// every write a look-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What<'g> {
    /// Everything that was there before the transaction is gone.
    Cleared,
    /// Everything that was there before the transaction was replaced by what was in another
    /// keyspace before the transaction.
    Moved {
        /// The other keyspace.
        from: DatabaseId,
    },
    /// A record was put under a key.
    Put {
        /// The key.
        key: &'g [u8],
        /// The record that is there now.
        record: Record<'g>,
    },
    /// A key was deleted; it may have had an expired record, or none.
    Deleted {
        /// The key.
        key: &'g [u8],
    },
    /// The store has removed a record that had expired, or an element of a collection that was
    /// gone. Neither was visible any more.
    Reclaimed {
        /// The key.
        key: &'g [u8],
    },
}

/// Keeps an observer registered until it is dropped.
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

    /// Whether there are any. Checked after a group becomes visible, in one total order with that. So every snapshot
    /// taken after an observer registered sees the groups that it was too late to be told of.
    #[inline]
    pub(crate) fn has_any(&self) -> bool {
        self.has_any.load(Ordering::SeqCst)
    }

    pub(crate) fn tell(&self, group: &[TransactionChanges<'_>]) {
        // Not called under the lock, so that an observer may drop guards, including its own.
        let all = lock(&self.all).clone();
        for observer in all {
            if catch_unwind(AssertUnwindSafe(|| observer.published(group))).is_err() {
                tracing::error!("an observer of changes has panicked; what was committed stays");
            }
        }
    }
}
