//! The traits behind which an engine stands.

use std::{any::Any, sync::Arc};

use crate::{
    Capabilities, CommitError, DatabaseError, DatabaseId, Observer, ObserverGuard, ReadError,
    ReadTransaction, TransactError, Usage, WriteError, WriteTransaction, transact_unflushed,
};

/// The number of a committed transaction. They grow, and are never used twice.
pub type CommitNumber = u64;

/// An engine: named databases under one clock and one sequence of transactions.
pub trait Store: Any + Send + Sync {
    /// The database of that name. It comes into being, on disk too, with the first write to it;
    /// until then it reads as empty. The name is held as long as the store is open, so this is
    /// for those who know which databases they need; with names of others, use
    /// [`find_database`](Self::find_database) and [`WriteTransaction::open_database`].
    ///
    /// # Errors
    /// For a name that no database can have, and at the limit of databases.
    fn database(&self, name: &str) -> Result<DatabaseId, DatabaseError>;

    /// The database of that name, if somebody has written to it or [`database`](Self::database) has
    /// been called for it. Takes nothing.
    fn find_database(&self, name: &str) -> Option<DatabaseId>;

    /// The database that belongs to the program around the store: what must be durable as the data are,
    /// and is no data. No name finds it, no list has it, and it stays when all databases are dropped.
    /// Check, backup and salvage carry it as any other. `None` where an engine has none.
    fn internal_database(&self) -> Option<DatabaseId> {
        None
    }

    /// How many databases were dropped since the store was opened: as long as that stays the same, an
    /// id that was found is the name's.
    fn databases_dropped(&self) -> u64 {
        0
    }

    /// All databases that [`find_database`](Self::find_database) finds, in the order of their ids.
    fn databases(&self) -> Vec<(DatabaseId, String)>;

    /// What the engine behind a database can do. [`CompositeStore`](crate::composite::CompositeStore)
    /// has several engines, any other store one.
    fn capabilities(&self, database: DatabaseId) -> Capabilities;

    /// Runs `body` at once, on this thread, with the database as all that it reaches: for a
    /// database that can be written to and is not [transactional](Capabilities::is_transactional).
    /// If others come in between of what it reads and what it writes, it runs again from the top.
    /// [`transact_in_place`](crate::transact_in_place) gives its result.
    ///
    /// # Errors
    /// [`WriteError::Raced`] if others were faster every time; [`WriteError::ReadOnly`]; and for a
    /// transactional database, which takes a [`writer`](Self::writer).
    fn run_in_place(
        &self,
        database: DatabaseId,
        body: &mut dyn FnMut(&mut dyn WriteTransaction),
    ) -> Result<(), WriteError> {
        let _ = body;
        if !self.capabilities(database).is_writable {
            return Err(WriteError::ReadOnly);
        }
        let message = "this database is written to in a transaction of the store's writer";
        Err(WriteError::Engine { message: message.to_owned() })
    }

    /// What the engine occupies now.
    fn usage(&self) -> Usage {
        Usage::default()
    }

    /// Tells `observer` of every group that is committed from now on, until the guard is dropped.
    /// One that is being committed meanwhile may be left out. `None` if the engine cannot tell.
    fn observe(&self, observer: Arc<dyn Observer>) -> Option<ObserverGuard> {
        let _ = observer;
        None
    }

    /// A view of what is committed now. It never waits for a writer.
    ///
    /// # Errors
    /// Only if the engine fails, for example because it has as many readers as it can.
    fn snapshot(&self) -> Result<Box<dyn Snapshot>, ReadError>;

    /// The right to write, until it is dropped. It belongs to the thread that asked for it.
    ///
    /// # Errors
    /// [`WriteError::WriterBusy`] while as many writers live as
    /// [`Capabilities::writers_max`] says.
    fn writer(&self) -> Result<Box<dyn Writer>, WriteError>;
}

/// A consistent view of all databases at one commit.
pub trait Snapshot: ReadTransaction + Send {
    /// Moves the view, and its time, to what is committed now; one that was let go of keeps its time from now on, and
    /// may see what is committed when the next read comes. Cheap: a worker does it for every batch of requests.
    ///
    /// # Errors
    /// Only if the engine fails.
    fn renew(&mut self) -> Result<(), ReadError>;

    /// Lets go of the view, so that the engine can reuse what only this view needed. The next
    /// read, or [`renew`](Self::renew), takes a new one. To be called before idling.
    fn release(&mut self);
}

/// Runs transactions one after another and makes groups of them durable (group commit).
///
/// `begin` … `commit` or `rollback`, as often as wanted, then `flush`. A transaction sees what
/// those before it in the group committed. Snapshots see the group at once, after `flush`. A
/// writer that is dropped takes back what was not flushed.
pub trait Writer: Send {
    /// Begins a transaction.
    ///
    /// # Errors
    /// [`WriteError::Poisoned`] after an undetermined commit.
    ///
    /// # Panics
    /// If one is open already.
    fn begin(&mut self) -> Result<&mut dyn WriteTransaction, WriteError>;

    /// The transaction that is open.
    ///
    /// # Panics
    /// If none is.
    fn transaction(&mut self) -> &mut dyn WriteTransaction;

    /// Ends the open transaction. A local engine only notes it here and does the work in
    /// [`flush`](Self::flush); a remote one decides here.
    ///
    /// # Errors
    /// [`CommitError::Conflict`]: nothing of it happened, run it again. With any other error the
    /// whole group is lost, as with a failed [`rollback`](Self::rollback).
    fn commit(&mut self) -> Result<CommitNumber, CommitError>;

    /// Ends the open transaction as if it had never been. Does nothing without one.
    ///
    /// # Errors
    /// If taking back fails the whole group is lost: every transaction since the last flush
    /// failed, and none of them happened.
    fn rollback(&mut self) -> Result<(), CommitError>;

    /// Makes durable, and visible to snapshots, all that was committed since the last flush. A
    /// reply may be sent once this has returned.
    ///
    /// # Errors
    /// None of those transactions happened, or with [`CommitError::Undetermined`] it is unknown.
    fn flush(&mut self) -> Result<(), CommitError>;

    /// Between two groups, now and then, by whoever has the writer: an engine may use that nothing was written for
    /// some time, and give memory back.
    ///
    /// # Errors
    /// Only if the engine fails, and of what fails again and again only the first; nothing that was written is
    /// lost by that.
    fn tidy(&mut self) -> Result<(), WriteError> {
        Ok(())
    }

    /// Whether the next group may wait for a disk, or for another machine, as far as that is known: then a
    /// thread on which others wait leaves it to one that can.
    fn may_wait(&self) -> bool {
        true
    }
}

impl dyn Writer + '_ {
    /// Runs [`reclaim`](WriteTransaction::reclaim) as a transaction, which needs a
    /// [`flush`](Self::flush) like any other.
    ///
    /// # Errors
    /// As [`transact`](crate::transact).
    pub fn reclaim(&mut self, limit: usize) -> Result<usize, TransactError<WriteError>> {
        transact_unflushed(self, |tx| tx.reclaim(limit))
    }
}
