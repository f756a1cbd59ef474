//! The one writer: begins, commits and rolls back transactions of a group, and flushes the group.

use std::{marker::PhantomData, sync::Arc};

use crate::{CommitError, CommitNumber, WriteError, WriteTransaction, Writer};

use super::{
    expiry,
    group::Group,
    layout::DatabaseEntry,
    lmdb::{LmdbError, Severity},
    store::Shared,
    transaction::TreeTransaction,
};

/// What a writer must know of the store as it was last committed.
pub(super) struct Committed {
    pub(super) databases: Vec<DatabaseEntry>,
    pub(super) number: CommitNumber,
}

pub(super) struct TreeWriter {
    shared: Arc<Shared>,
    committed: Option<Committed>,
    /// The group under way, with its open or last transaction.
    current: Option<TreeTransaction>,
    is_open: bool,
    /// The number of the last transaction that the group has kept.
    number: CommitNumber,
    /// LMDB's write lock belongs to a thread.
    _not_send: PhantomData<*mut ()>,
}

impl TreeWriter {
    pub(super) fn new(shared: Arc<Shared>, committed: Committed) -> Self {
        let number = committed.number;
        let committed = Some(committed);
        Self { shared, committed, current: None, is_open: false, number, _not_send: PhantomData }
    }

    fn committed(&self) -> &Committed {
        self.committed.as_ref().expect("it is given back only on drop")
    }

    fn begin_group(&self) -> Result<TreeTransaction, WriteError> {
        let txn = self.shared.environment.write().map_err(|error| self.refusal(error))?;
        let databases = self.committed().databases.clone();
        let group = Group::new(txn, databases, self.shared.trees.all());
        Ok(TreeTransaction::new(Arc::clone(&self.shared), group))
    }

    fn refusal(&self, error: LmdbError) -> WriteError {
        WriteError::Engine { message: error.to_string() }
    }

    /// Gives the whole group up.
    fn abandon(&mut self) {
        self.current = None;
        self.is_open = false;
        self.number = self.committed().number;
    }

    /// What a failed group means, for the store as well as for the caller.
    fn failure(&self, error: LmdbError) -> CommitError {
        let message = error.to_string();
        // LMDB reports a short write, which is how a disk fills up, as EIO.
        let is_short_write = error.system() == Some(libc::EIO) && self.shared.is_disk_full();
        match error.severity() {
            Severity::Full => CommitError::DiskFull,
            _ if is_short_write => CommitError::DiskFull,
            Severity::Transaction => CommitError::Failed { message },
            Severity::Unknown => {
                self.shared.poison(&message);
                CommitError::Undetermined { message }
            }
        }
    }
}

impl Writer for TreeWriter {
    fn begin(&mut self) -> Result<&mut dyn WriteTransaction, WriteError> {
        assert!(!self.is_open, "a transaction is open already");
        self.shared.check_poison()?;
        let mut current = match self.current.take() {
            Some(current) => current,
            None => self.begin_group()?,
        };
        current.begin(self.number + 1);
        self.is_open = true;
        Ok(self.current.insert(current))
    }

    fn transaction(&mut self) -> &mut dyn WriteTransaction {
        assert!(self.is_open, "no transaction is open");
        self.current.as_mut().expect("an open transaction is there")
    }

    fn commit(&mut self) -> Result<CommitNumber, CommitError> {
        assert!(self.is_open, "no transaction is open");
        self.is_open = false;
        let current = self.current.as_mut().expect("an open transaction is there");
        if let Some(error) = current.group.broken {
            self.abandon();
            return Err(self.failure(error));
        }
        if current.group.keep() {
            self.number = current.number;
        }
        Ok(self.number)
    }

    fn rollback(&mut self) -> Result<(), CommitError> {
        if !std::mem::take(&mut self.is_open) {
            return Ok(());
        }
        let current = self.current.as_mut().expect("an open transaction is there");
        if let Err(error) = current.group.undo() {
            self.abandon();
            return Err(self.failure(error));
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), CommitError> {
        assert!(!self.is_open, "a transaction is open");
        let Some(current) = self.current.take() else { return Ok(()) };
        if !current.group.is_changed() {
            return Ok(());
        }
        match current.group.commit(&self.shared, self.number) {
            Ok(databases) => {
                self.committed = Some(Committed { databases, number: self.number });
                Ok(())
            }
            Err(error) => {
                self.abandon();
                Err(self.failure(error))
            }
        }
    }

    fn remove_expired(&mut self, limit: usize) -> Result<usize, WriteError> {
        self.begin()?;
        let current = self.current.as_mut().expect("it has just begun");
        let removed = match expiry::sweep(current, limit) {
            Ok(removed) => removed,
            Err(error) => {
                let lost = self.rollback();
                return Err(lost
                    .err()
                    .map_or(error, |lost| WriteError::Engine { message: lost.to_string() }));
            }
        };
        self.commit().map_err(|error| WriteError::Engine { message: error.to_string() })?;
        Ok(removed)
    }
}

impl Drop for TreeWriter {
    fn drop(&mut self) {
        self.current = None;
        if let Some(committed) = self.committed.take() {
            self.shared.give_back(committed);
        }
    }
}
