//! The trait behind which an engine stands, and the loop that runs a transaction on any of them.

use std::sync::Arc;

use crate::{
    CommitError, DatabaseError, DatabaseId, ReadError, ReadTransaction, TransactError, Usage,
    WriteError, WriteTransaction, cache::Cache, limits,
};

/// The number of a committed transaction. They grow, and are never used twice.
pub type CommitNumber = u64;

/// What stands behind one database.
#[derive(Clone, Copy)]
pub enum Engine<'s> {
    /// Ordered, and part of every transaction.
    Transactional,
    /// A cache: each call is atomic alone, is seen at once, and no rollback takes it back. Within
    /// a transaction that holds for each `get`, `put` and `delete`; for what reads and then writes,
    /// use the cache itself, or [`Cache::transact`].
    Cache(&'s Arc<Cache>),
    /// A file that is only read.
    Cdb,
}

impl Engine<'_> {
    /// As the configuration and listings call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Transactional => "tree",
            Self::Cache(_) => "cache",
            Self::Cdb => "cdb",
        }
    }

    /// Whether [`seek`](ReadTransaction::seek) goes through its keys, or
    /// [`page`](ReadTransaction::page) does.
    #[must_use]
    pub fn is_ordered(self) -> bool {
        matches!(self, Self::Transactional)
    }
}

/// An engine: named databases under one clock and one sequence of transactions.
pub trait Store: Send + Sync {
    /// The database of that name. It comes into being, on disk too, with the first write to it;
    /// until then it reads as empty.
    ///
    /// # Errors
    /// For a name that no database can have, and at the limit of databases.
    fn database(&self, name: &str) -> Result<DatabaseId, DatabaseError>;

    /// The database of that name, if [`database`](Self::database) has been called for it, now or
    /// in an earlier life of the store.
    fn find_database(&self, name: &str) -> Option<DatabaseId>;

    /// All databases that [`find_database`](Self::find_database) finds, in the order of their ids.
    fn databases(&self) -> Vec<(DatabaseId, String)>;

    /// What stands behind a database: of a plain engine, the engine itself;
    /// [`CompositeStore`](crate::composite::CompositeStore) has others, too.
    fn engine(&self, database: DatabaseId) -> Engine<'_> {
        let _ = database;
        Engine::Transactional
    }

    /// What the engine occupies now.
    fn usage(&self) -> Usage {
        Usage::default()
    }

    /// A view of what is committed now. It never waits for a writer.
    ///
    /// # Errors
    /// Only if the engine fails, for example because it has as many readers as it can.
    fn snapshot(&self) -> Result<Box<dyn Snapshot>, ReadError>;

    /// The right to write, until it is dropped. It belongs to the thread that asked for it.
    ///
    /// # Errors
    /// [`WriteError::WriterBusy`] while another writer lives.
    fn writer(&self) -> Result<Box<dyn Writer>, WriteError>;
}

/// A consistent view of all databases at one commit.
pub trait Snapshot: ReadTransaction + Send {
    /// Moves the view, and its time, to what is committed now. Cheap: a worker does it for every
    /// batch of requests.
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
pub trait Writer {
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

    /// Removes up to `limit` records that have expired, in a transaction of its own, and tells how
    /// many it was. Needs a [`flush`](Self::flush) like any other.
    ///
    /// # Errors
    /// As a transaction's.
    fn remove_expired(&mut self, limit: usize) -> Result<usize, WriteError>;
}

/// Runs `body` as one transaction and makes it durable. An error of the body rolls it back; a
/// conflict runs it again from the top, so it must have no effects but the transaction's.
///
/// # Errors
/// The body's, or why the store did not commit.
pub fn transact<T, E>(
    writer: &mut dyn Writer,
    mut body: impl FnMut(&mut dyn WriteTransaction) -> Result<T, E>,
) -> Result<T, TransactError<E>> {
    let mut attempt = 1;
    loop {
        let transaction = writer.begin().map_err(TransactError::Write)?;
        let result = match body(transaction) {
            Ok(result) => result,
            Err(error) => {
                writer.rollback().map_err(TransactError::Commit)?;
                return Err(TransactError::Body(error));
            }
        };
        match writer.commit() {
            Ok(_) => {
                writer.flush().map_err(TransactError::Commit)?;
                return Ok(result);
            }
            Err(CommitError::Conflict) if attempt < limits::CONFLICT_ATTEMPTS_MAX => attempt += 1,
            Err(error) => return Err(TransactError::Commit(error)),
        }
    }
}
