//! The handle of a store that an embedding program shares among its threads.

use std::{
    path::Path,
    sync::{Arc, Mutex},
    thread::{self, JoinHandle},
};

use crate::{
    DatabaseError, OpenError, ReadError, Snapshot, Store, TransactError, WriteError,
    WriteTransaction, mutex::lock, tree,
};

use super::{database::Database, pending::Pending, shared_writer::SharedWriter};

/// Maximum number of idle snapshots that are kept for later reads.
const SPARE_SNAPSHOTS_MAX: usize = 16;

/// Opens the durable store in `directory`, creating it if it does not exist. Every write is on disk
/// when its call returns.
///
/// Only one process at a time may write to a directory; all of its threads can share the handle.
///
/// # Errors
/// See [`OpenError`].
pub fn open(directory: impl AsRef<Path>) -> Result<Embedded, OpenError> {
    open_with(directory, tree::Options::default())
}

/// As [`open`], with another sync mode, more memory, or a custom clock.
///
/// # Errors
/// See [`OpenError`].
pub fn open_with(
    directory: impl AsRef<Path>,
    options: tree::Options,
) -> Result<Embedded, OpenError> {
    Ok(Embedded::new(Arc::new(tree::open(directory.as_ref(), options)?)))
}

/// A store for the threads of one program. A clone is another handle to the same store, which is
/// closed with the last one.
///
/// Reads never wait. Writes of several threads take turns, and concurrent ones share one sync.
#[derive(Clone)]
pub struct Embedded {
    shared: Arc<Inner>,
}

struct Inner {
    /// Declared before `store`, so that what the store handed out is dropped first.
    spare_snapshots: Mutex<Vec<Box<dyn Snapshot>>>,
    writer: Arc<SharedWriter>,
    /// The thread that commits submitted transactions, once there was one.
    committer: Mutex<Option<JoinHandle<()>>>,
    store: Arc<dyn Store>,
}

impl Drop for Inner {
    /// Runs everything that was submitted first.
    fn drop(&mut self) {
        let Some(committer) = lock(&self.committer).take() else { return };
        self.writer.stop();
        // A body may have held the last handle: then this thread is the committer itself.
        if committer.thread().id() != thread::current().id() && committer.join().is_err() {
            tracing::error!("the thread that commits has panicked");
        }
    }
}

impl Embedded {
    /// A handle to a store that was opened in another way.
    #[must_use]
    pub fn new(store: Arc<dyn Store>) -> Self {
        let spare_snapshots = Mutex::new(Vec::new());
        let (writer, committer) = (Arc::default(), Mutex::new(None));
        Self { shared: Arc::new(Inner { spare_snapshots, writer, committer, store }) }
    }

    /// The database of that name. It is created by the first write to it; until then it reads as
    /// empty.
    ///
    /// # Errors
    /// For an invalid name, and at the limit of databases.
    pub fn database(&self, name: &str) -> Result<Database, DatabaseError> {
        Ok(Database { store: self.clone(), id: self.shared.store.database(name)? })
    }

    /// Runs `body` as one transaction across all databases, and returns once it is durable. An
    /// error or a panic in the body rolls all of it back.
    ///
    /// Transactions of several threads run one after another, and one thread may run those of
    /// others that wait. On some engines the body runs again from the top after a conflict, so it
    /// must have no side effects outside the transaction.
    ///
    /// # Errors
    /// The body's error, or why the store did not commit. [`WriteError::WriterBusy`] from within
    /// another transaction of the same thread, and while other code holds the store's writer.
    pub fn transact<T: Send, E: Send>(
        &self,
        body: impl FnMut(&mut dyn WriteTransaction) -> Result<T, E> + Send,
    ) -> Result<T, TransactError<E>> {
        self.shared.writer.transact(&*self.shared.store, body)
    }

    /// Submits `body`, to be run as one transaction, and returns at once: for a program that has
    /// other things to do until it is durable, or that is `async`.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let store = tokaido_store::open(directory.path())?;
    /// # let log = store.database("log")?.id();
    /// use tokaido_store::{NewRecord, WriteError};
    ///
    /// let both = ["1", "2"].map(|key| {
    ///     store.submit(move |tx| tx.put(log, key.as_bytes(), NewRecord::of(b"begun")))
    /// });
    /// // They share a sync, and are on disk when these return; or `.await` them.
    /// for pending in both {
    ///     pending.wait()?;
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// What one thread submits is run in that order, on a thread of the store's own or on one that
    /// [waits](Self::transact). As in `transact`, `body` runs again after a conflict; the outcome
    /// has the same errors.
    pub fn submit<T: Send + 'static, E: Send + 'static>(
        &self,
        body: impl FnMut(&mut dyn WriteTransaction) -> Result<T, E> + Send + 'static,
    ) -> Pending<T, E> {
        let (pending, task) = Pending::new(&self.shared.writer, body);
        let submitted = self.start_committer().and_then(|()| self.shared.writer.submit(task));
        if let Err(error) = submitted {
            pending.refuse(error);
        }
        pending
    }

    fn start_committer(&self) -> Result<(), WriteError> {
        let mut committer = lock(&self.shared.committer);
        if committer.is_none() {
            let (writer, store) = (Arc::clone(&self.shared.writer), Arc::clone(self.store()));
            let thread = thread::Builder::new().name("tokaido-committer".to_owned());
            let started = thread.spawn(move || writer.serve(&*store));
            *committer = Some(started.map_err(|error| WriteError::Engine {
                message: format!("no thread could be started for commits ({error}); try again"),
            })?);
        }
        Ok(())
    }

    /// A view of all databases as of one commit, for as long as it is kept.
    ///
    /// # Errors
    /// Only if the engine fails, for example because it has as many readers as it can.
    pub fn snapshot(&self) -> Result<Box<dyn Snapshot>, ReadError> {
        self.shared.store.snapshot()
    }

    /// Removes up to `limit` records that have expired, or are elements of collections that are
    /// gone, and returns how many it removed. They are invisible anyway; this frees their space. A
    /// program that uses expiry or collections should call it now and then.
    ///
    /// # Errors
    /// As [`transact`](Self::transact).
    pub fn reclaim(&self, limit: usize) -> Result<usize, TransactError<WriteError>> {
        self.transact(|tx| tx.reclaim(limit))
    }

    /// The store itself, for code that takes a [`Store`].
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.shared.store
    }

    /// Runs `read` on a view of what is committed now.
    pub(super) fn read<T>(
        &self,
        read: impl FnOnce(&mut dyn Snapshot) -> Result<T, ReadError>,
    ) -> Result<T, ReadError> {
        let spare = lock(&self.shared.spare_snapshots).pop();
        let mut snapshot = match spare {
            Some(mut snapshot) => {
                snapshot.renew()?;
                snapshot
            }
            None => self.snapshot()?,
        };
        let result = read(&mut *snapshot);
        snapshot.release();
        let mut spares = lock(&self.shared.spare_snapshots);
        if spares.len() < SPARE_SNAPSHOTS_MAX {
            spares.push(snapshot);
        }
        result
    }
}
