//! The traits that an engine implements.

use std::{any::Any, sync::Arc};

use crate::{
    Capabilities, CommitError, DatabaseError, DatabaseId, Observer, ObserverGuard, ReadError,
    ReadTransaction, TransactError, Usage, WriteError, WriteTransaction, transact_unflushed,
};

/// The number of a committed transaction. Numbers grow, and are never reused.
pub type CommitNumber = u64;

/// An engine: named databases with one clock and one sequence of transactions.
pub trait Store: Any + Send + Sync {
    /// The database of that name. It is created, on disk too, by the first write to it; until then
    /// it reads as empty. The name is held as long as the store is open, so this is for callers
    /// that know which databases they need; for names from outside, use
    /// [`find_database`](Self::find_database) and [`WriteTransaction::open_database`].
    ///
    /// # Errors
    /// For an invalid name, and at the limit of databases.
    fn database(&self, name: &str) -> Result<DatabaseId, DatabaseError>;

    /// The database of that name, if it has been written to or [`database`](Self::database) has
    /// been called for it. Reserves nothing.
    fn find_database(&self, name: &str) -> Option<DatabaseId>;

    /// The database of the program around the store, for state that must be as durable as the data.
    /// No name finds it, no listing has it, and dropping all databases leaves it. Check, backup and
    /// salvage treat it like any other. `None` if the engine has none.
    fn internal_database(&self) -> Option<DatabaseId> {
        None
    }

    /// How many databases have been dropped since the store was opened. While this stays the same,
    /// a name still has the id that was found for it.
    fn databases_dropped(&self) -> u64 {
        0
    }

    /// All databases that [`find_database`](Self::find_database) finds, in the order of their ids.
    fn databases(&self) -> Vec<(DatabaseId, String)>;

    /// What the engine behind a database can do. [`CompositeStore`](crate::composite::CompositeStore)
    /// has several engines, any other store has one.
    fn capabilities(&self, database: DatabaseId) -> Capabilities;

    /// Runs `body` at once, on this thread, with access to this database only: for a database that
    /// is writable but not [transactional](Capabilities::is_transactional). If others write between
    /// its reads and its writes, it runs again from the top.
    /// [`transact_in_place`](crate::transact_in_place) returns its result.
    ///
    /// # Errors
    /// [`WriteError::Raced`] if others were faster every time; [`WriteError::ReadOnly`]; and for a
    /// transactional database, which needs a [`writer`](Self::writer).
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

    /// The space that the engine occupies now.
    fn usage(&self) -> Usage {
        Usage::default()
    }

    /// Whether [`WriteTransaction::take_upkeep_request`] would return a request now.
    fn has_upkeep_request(&self) -> bool {
        false
    }

    /// Tells `observer` of every group that is committed from now on, until the guard is dropped.
    /// One being committed meanwhile may be left out. `None` if the engine cannot do this.
    fn observe(&self, observer: Arc<dyn Observer>) -> Option<ObserverGuard> {
        let _ = observer;
        None
    }

    /// A view of what is committed now. Never waits for a writer.
    ///
    /// # Errors
    /// Only if the engine fails, for example because it has as many readers as it can.
    fn snapshot(&self) -> Result<Box<dyn Snapshot>, ReadError>;

    /// The right to write, until it is dropped. It belongs to the calling thread.
    ///
    /// # Errors
    /// [`WriteError::WriterBusy`] while as many writers live as
    /// [`Capabilities::writers_max`] says.
    fn writer(&self) -> Result<Box<dyn Writer>, WriteError>;
}

/// A consistent view of all databases as of one commit.
pub trait Snapshot: ReadTransaction + Send {
    /// Moves the view and its time to the present. A released one sets only its time, and may see
    /// what is committed by its next read. Cheap: a worker does it for every batch of requests.
    ///
    /// # Errors
    /// Only if the engine fails.
    fn renew(&mut self) -> Result<(), ReadError>;

    /// Releases the view, so that the engine can reuse what only this view needed. The next read,
    /// or [`renew`](Self::renew), takes a new one. To be called before idling.
    fn release(&mut self);
}

/// Runs transactions one after another and makes groups of them durable (group commit).
///
/// Call `begin` and then `commit` or `rollback`, any number of times, then `flush`. A transaction
/// sees what earlier ones in the group committed. Snapshots see the group as a whole, after
/// `flush`. Dropping a writer undoes what was not flushed.
pub trait Writer: Send {
    /// Begins a transaction.
    ///
    /// # Errors
    /// [`WriteError::Poisoned`] after an undetermined commit.
    ///
    /// # Panics
    /// If a transaction is already open.
    fn begin(&mut self) -> Result<&mut dyn WriteTransaction, WriteError>;

    /// The open transaction.
    ///
    /// # Panics
    /// If there is none.
    fn transaction(&mut self) -> &mut dyn WriteTransaction;

    /// Ends the open transaction. A local engine only records it here and does the work in
    /// [`flush`](Self::flush); a remote one decides the outcome here.
    ///
    /// # Errors
    /// [`CommitError::Conflict`]: none of it happened, run it again. With any other error the whole
    /// group is lost, as after a failed [`rollback`](Self::rollback).
    fn commit(&mut self) -> Result<CommitNumber, CommitError>;

    /// Ends the open transaction as if it had never been. Does nothing without one.
    ///
    /// # Errors
    /// If the rollback fails, the whole group is lost: none of the transactions since the last
    /// flush happened.
    fn rollback(&mut self) -> Result<(), CommitError>;

    /// Makes everything committed since the last flush durable, and visible to snapshots. A reply
    /// may be sent once this has returned.
    ///
    /// # Errors
    /// None of those transactions happened, or with [`CommitError::Undetermined`] it is unknown.
    fn flush(&mut self) -> Result<(), CommitError>;

    /// To be called now and then between two groups by the owner of the writer. If nothing was
    /// written for some time, an engine may use it to free memory.
    ///
    /// # Errors
    /// Only if the engine fails, and only the first time for a failure that repeats. No written
    /// data is lost by it.
    fn tidy(&mut self) -> Result<(), WriteError> {
        Ok(())
    }

    /// Whether the next group may wait for a disk or another machine, as far as is known. If so, a
    /// thread that others depend on leaves it to a thread that may block.
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
