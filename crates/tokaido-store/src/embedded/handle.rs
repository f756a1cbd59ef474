//! A store as an embedding program holds it: one handle for all its threads.

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

/// Maximum number of snapshots that are kept for the next read while none is under way.
const SPARE_SNAPSHOTS_MAX: usize = 16;

/// Opens the durable store in `directory`, and makes it if it is not there. Every write is on disk
/// when the call that made it returns.
///
/// One process at a time has a directory; any number of its threads share the handle.
///
/// # Errors
/// See [`OpenError`].
pub fn open(directory: impl AsRef<Path>) -> Result<Embedded, OpenError> {
    open_with(directory, tree::Options::default())
}

/// As [`open`], with another sync mode, more memory, or a clock of one's own.
///
/// # Errors
/// See [`OpenError`].
pub fn open_with(
    directory: impl AsRef<Path>,
    options: tree::Options,
) -> Result<Embedded, OpenError> {
    Ok(Embedded::new(Arc::new(tree::open(directory.as_ref(), options)?)))
}

/// A store for the threads of one program. A clone is another handle of the same store, which is
/// closed with the last one.
///
/// Reads never wait. Writes of several threads take turns, and those that meet share one sync.
#[derive(Clone)]
pub struct Embedded {
    shared: Arc<Inner>,
}

struct Inner {
    /// Before `store`: what the store gave out is dropped first.
    spare_snapshots: Mutex<Vec<Box<dyn Snapshot>>>,
    writer: Arc<SharedWriter>,
    /// The thread that commits what is submitted, once something was.
    committer: Mutex<Option<JoinHandle<()>>>,
    store: Arc<dyn Store>,
}

impl Drop for Inner {
    /// Everything that was submitted is run before.
    fn drop(&mut self) {
        let Some(committer) = lock(&self.committer).take() else { return };
        self.writer.stop();
        // A body may have had the last handle: then this is the committer itself.
        if committer.thread().id() != thread::current().id() && committer.join().is_err() {
            tracing::error!("the thread that commits has panicked");
        }
    }
}

impl Embedded {
    /// The handle of a store that was opened in another way.
    #[must_use]
    pub fn new(store: Arc<dyn Store>) -> Self {
        let spare_snapshots = Mutex::new(Vec::new());
        let (writer, committer) = (Arc::default(), Mutex::new(None));
        Self { shared: Arc::new(Inner { spare_snapshots, writer, committer, store }) }
    }

    /// The database of that name. It comes into being with the first write to it; until then it
    /// reads as empty.
    ///
    /// # Errors
    /// For a name that no database can have, and at the limit of databases.
    pub fn database(&self, name: &str) -> Result<Database, DatabaseError> {
        Ok(Database { store: self.clone(), id: self.shared.store.database(name)? })
    }

    /// Runs `body` as one transaction over all databases, and returns once it is durable. An error
    /// of the body, or a panic in it, rolls all of it back.
    ///
    /// Transactions of several threads run one after another, and one thread may run those of
    /// others that wait. On some engines a conflict runs the body again from the top, so it must
    /// have no effects but the transaction's.
    ///
    /// # Errors
    /// The body's, or why the store did not commit. [`WriteError::WriterBusy`] from within another
    /// transaction of the same thread, and while somebody else holds the store's writer.
    pub fn transact<T: Send, E: Send>(
        &self,
        body: impl FnMut(&mut dyn WriteTransaction) -> Result<T, E> + Send,
    ) -> Result<T, TransactError<E>> {
        self.shared.writer.transact(&*self.shared.store, body)
    }

    /// Hands in `body`, to be run as one transaction, and returns at once: for a program that has
    /// other things to do until it is durable, and for one that is `async`.
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
    /// What one thread submits is run in that order. A thread of the store's own runs it, unless
    /// one that [waits](Self::transact) does. It runs `body` again after a conflict, as `transact`
    /// does, and what that says of errors holds of the outcome.
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

    /// A view of all databases at one commit, for as long as it is kept.
    ///
    /// # Errors
    /// Only if the engine fails, for example because it has as many readers as it can.
    pub fn snapshot(&self) -> Result<Box<dyn Snapshot>, ReadError> {
        self.shared.store.snapshot()
    }

    /// Removes up to `limit` records that have expired, or are elements of collections that have
    /// gone, and tells how many it was. They are not seen in any case; this gives their space back,
    /// so a program that lets records expire, or has collections, calls it now and then.
    ///
    /// # Errors
    /// As [`transact`](Self::transact).
    pub fn reclaim(&self, limit: usize) -> Result<usize, TransactError<WriteError>> {
        self.transact(|tx| tx.reclaim(limit))
    }

    /// The store itself, for what takes a [`Store`].
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
