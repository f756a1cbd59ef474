//! The server's state for one connection between its requests, and how a request reaches data.

use std::sync::Arc;

use tokaido_store::{
    Capabilities, DatabaseError, DatabaseId, ReadTransaction, WriteTransaction, transact_in_place,
    transact_unflushed,
};

use super::{
    clients::Entry,
    failure::Failure,
    figures::{Figure, Figures},
};
use crate::{
    Shared,
    access::Principal,
    placement::Place,
    protocol::{Context, Target},
};

/// The server's state for one connection.
pub(crate) struct Session {
    pub(super) database: DatabaseId,
    pub(super) capabilities: Capabilities,
    pub(super) principal: Principal,
    pub(super) entry: Entry,
}

impl Session {
    /// The session of a new connection from `peer` to `local`, both as `address:port`.
    pub(crate) fn new(
        shared: &Arc<Shared>,
        peer: &str,
        local: &str,
    ) -> Result<Self, DatabaseError> {
        let database = shared.memcached.database(&**shared.store())?;
        Ok(Self {
            database,
            capabilities: shared.capabilities(database),
            principal: shared.users().newcomer(),
            entry: shared.memcached.clients.enter(peer, local),
        })
    }

    pub(super) fn figures(&self) -> &Figures {
        &self.entry.client.figures
    }

    pub(super) fn count(&self, figure: Figure) {
        self.figures().count(figure);
    }

    /// Counts one of two figures.
    pub(super) fn count_either(&self, is_first: bool, first: Figure, second: Figure) {
        self.count(if is_first { first } else { second });
    }

    /// Whether a write has to go to the writer, and is not there yet.
    pub(super) fn needs_writer(&self, context: &Context<'_>) -> bool {
        let is_there = matches!(context.target, Target::Writer(_));
        let is_held = context.shared.pause.holds_writes();
        (is_held || Place::of_write(self.capabilities) == Place::Writer) && !is_there
    }

    /// Runs `body` on the snapshot, or in a transaction of the writer, which sees what the batch has
    /// committed so far.
    pub(super) fn read<T>(
        &self,
        context: &mut Context<'_>,
        body: impl FnOnce(&mut dyn ReadTransaction) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        match &mut context.target {
            Target::Snapshot(snapshot) => body(&mut **snapshot),
            Target::Writer(writer) => {
                let result = body(writer.begin()?);
                writer.rollback()?;
                result
            }
        }
    }

    /// Runs `body` as one transaction: here, if the database takes no part in transactions,
    /// otherwise on the writer. The caller has made sure that the request runs
    /// [there](Self::needs_writer). It may run more than once.
    pub(super) fn write<T>(
        &self,
        context: &mut Context<'_>,
        mut body: impl FnMut(&mut dyn WriteTransaction) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        match &mut context.target {
            Target::Writer(writer) if self.capabilities.is_transactional => {
                Ok(transact_unflushed(&mut **writer, body)?)
            }
            _ => transact_in_place(&**context.shared.store(), self.database, &mut body),
        }
    }
}
