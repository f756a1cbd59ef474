//! A database that a client has named. Until someone writes to it, it takes up nothing.

use std::sync::Arc;

use tokaido_store::{
    DatabaseError, DatabaseId, Store, WriteError, WriteTransaction, check_database_name,
};

use crate::Shared;

/// The name of a database, with the id that it had when it was last looked up.
#[derive(Clone, Debug)]
pub(crate) struct Selected {
    name: Arc<str>,
    id: DatabaseId,
    /// How many databases had been dropped by then.
    dropped: u64,
}

impl Selected {
    /// The database of that name.
    pub(crate) fn new(store: &dyn Store, name: &str) -> Result<Self, DatabaseError> {
        check_database_name(name)?;
        let mut selected = Self { name: name.into(), id: DatabaseId::NOWHERE, dropped: 0 };
        selected.look(store);
        Ok(selected)
    }

    pub(crate) fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The id that was found, for reads on a snapshot.
    pub(crate) fn id(&self) -> DatabaseId {
        self.id
    }

    /// Looks it up again, if it may have come or gone. To be called before each request.
    #[inline]
    pub(crate) fn look(&mut self, store: &dyn Store) {
        let dropped = store.databases_dropped();
        if self.id == DatabaseId::NOWHERE || self.dropped != dropped {
            self.id = store.find_database(&self.name).unwrap_or(DatabaseId::NOWHERE);
            self.dropped = dropped;
        }
    }

    /// The id for reads in a transaction, which sees databases that its group has created.
    pub(crate) fn find_in(&self, tx: &mut dyn WriteTransaction) -> DatabaseId {
        match self.id {
            DatabaseId::NOWHERE => find_in(&self.name, tx),
            id => id,
        }
    }

    /// The id for writes. If the database does not exist, it is created for a client.
    pub(crate) fn open_in(
        &self,
        tx: &mut dyn WriteTransaction,
        shared: &Shared,
    ) -> Result<DatabaseId, WriteError> {
        match self.id {
            DatabaseId::NOWHERE => open_in(&self.name, tx, shared),
            id => Ok(id),
        }
    }
}

/// The database of that name, if it exists. Creates none.
pub(crate) fn find_in(name: &str, tx: &mut dyn WriteTransaction) -> DatabaseId {
    tx.open_database(name, 0).unwrap_or(DatabaseId::NOWHERE)
}

/// The database of that name. If it does not exist, it is created for a client.
pub(crate) fn open_in(
    name: &str,
    tx: &mut dyn WriteTransaction,
    shared: &Shared,
) -> Result<DatabaseId, WriteError> {
    tx.open_database(name, shared.limits().client_databases_max)
}
