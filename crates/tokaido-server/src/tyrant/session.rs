//! A connection of a Tokyo Tyrant client, and where its requests run.

use std::sync::{Arc, OnceLock};

use tokaido_script::Transaction;
use tokaido_store::{
    DatabaseId, KeyIterator, ReadTransaction, WriteTransaction, transact_in_place,
    transact_unflushed,
};

use super::{
    refusal::{ErrorCode, Refusal},
    restore::Restore,
    scripts::Script,
};
use crate::{
    Mailbox, Shared,
    access::Principal,
    backups,
    placement::Place,
    protocol::{Context, Target},
    redis::Message,
    selected::Selected,
};

/// The state of one connection.
pub(super) struct Session {
    pub(super) shared: Arc<Shared>,
    pub(super) principal: Principal,
    /// `None` only if the store cannot have a database of that name.
    database: Option<Selected>,
    pub(super) iterator: KeyIterator,
    /// The last error.
    pub(super) error: ErrorCode,
    /// Messages that procedures have published and that have not been sent yet.
    messages: Vec<Message>,
    mailbox: Mailbox,
    /// The copy that the request at the head of the input waits for, with its outcome.
    copying: Option<Arc<OnceLock<backups::Outcome>>>,
    /// The update log that the request at the head of the input replays.
    pub(super) restoring: Option<Box<Restore>>,
}

/// Why a request is not done, here or at all.
pub(super) enum Stop {
    Refused(Refusal),
    NeedsWriter,
    NeedsPool,
    /// The mailbox runs the request again.
    Waits,
}

impl<E: Into<Refusal>> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Refused(error.into())
    }
}

impl Session {
    /// A new connection.
    pub(super) fn new(shared: &Arc<Shared>, mailbox: Mailbox) -> Self {
        Self {
            principal: shared.users().newcomer(),
            database: Selected::new(&**shared.store(), shared.tyrant.database()).ok(),
            iterator: KeyIterator::default(),
            error: ErrorCode::default(),
            messages: Vec::new(),
            mailbox,
            copying: None,
            restoring: None,
            shared: Arc::clone(shared),
        }
    }

    /// The database, as it is now.
    fn database(&mut self) -> Result<&Selected, Refusal> {
        let database = self.database.as_mut();
        let database =
            database.ok_or_else(|| Refusal::invalid("tyrant.database is no database"))?;
        database.look(&**self.shared.store());
        Ok(database)
    }

    /// Whether the database is a table.
    pub(super) fn has_table(&mut self) -> Result<bool, Refusal> {
        let id = self.database()?.id();
        Ok(self.shared.tables().has(id))
    }

    /// Runs a read, which may be a long one.
    pub(super) fn read<T>(
        &mut self,
        context: &mut Context<'_>,
        is_long: bool,
        work: impl FnOnce(&mut dyn ReadTransaction, DatabaseId) -> Result<T, Refusal>,
    ) -> Result<T, Stop> {
        let database = self.database()?.clone();
        let place = Place::of_read(self.shared.capabilities(database.id()), is_long);
        if place == Place::Pool && !context.may_take_long {
            return Err(Stop::NeedsPool);
        }
        match &mut context.target {
            Target::Snapshot(snapshot) => Ok(work(&mut **snapshot, database.id())?),
            Target::Writer(writer) => {
                let tx = writer.begin()?;
                let id = database.find_in(tx);
                let outcome = work(tx, id);
                writer.rollback()?;
                Ok(outcome?)
            }
        }
    }

    /// Runs a write in a transaction of its own. It may run more than once.
    pub(super) fn write<T>(
        &mut self,
        context: &mut Context<'_>,
        mut work: impl FnMut(&mut dyn WriteTransaction, DatabaseId) -> Result<T, Refusal>,
    ) -> Result<T, Stop> {
        let database = self.database()?.clone();
        let shared = &self.shared;
        let body = |tx: &mut dyn WriteTransaction| {
            let id = database.open_in(tx, shared)?;
            work(tx, id)
        };
        if shared.place_of_write(database.id()) == Place::Worker {
            let done = transact_in_place::<_, Refusal>(&**shared.store(), database.id(), body);
            return Ok(done?);
        }
        match &mut context.target {
            Target::Writer(writer) => Ok(transact_unflushed(&mut **writer, body)?),
            Target::Snapshot(_) => Err(Stop::NeedsWriter),
        }
    }

    /// Waits until what was written is durable: the current group is flushed before the reply.
    pub(super) fn sync(&mut self, context: &mut Context<'_>) -> Result<(), Stop> {
        match context.target {
            Target::Writer(_) => Ok(()),
            Target::Snapshot(_) => Err(Stop::NeedsWriter),
        }
    }

    /// Runs the request at the head of the input again, once others have had their turn.
    pub(super) fn wake(&self) {
        self.mailbox.wake();
    }

    /// Copies the store to a path below the backup directory, and waits until the copy is on disk.
    pub(super) fn copy(&mut self, path: &[u8], context: &mut Context<'_>) -> Result<(), Stop> {
        if let Some(copying) = &self.copying {
            let Some(outcome) = copying.get() else { return Err(Stop::Waits) };
            let outcome = outcome.as_ref().map(drop).map_err(Refusal::from);
            self.copying = None;
            return Ok(outcome?);
        }
        if matches!(context.target, Target::Writer(_)) {
            // The copy must contain the requests before it, so it begins once they are on disk.
            self.wake();
            return Err(Stop::Waits);
        }
        if self.database()?.id().mount().is_some() {
            return Err(Refusal::invalid(
                "tyrant.database is not in the store, nor would it be in a copy",
            )
            .into());
        }
        let (copying, mailbox) = (Arc::new(OnceLock::new()), self.mailbox.clone());
        let told = Arc::clone(&copying);
        let done = move |outcome| {
            // The outcome is set only once.
            let _ = told.set(outcome);
            mailbox.wake();
        };
        self.shared.backups.begin(path, done).map_err(|error| {
            tracing::warn!(%error, "a backup was refused");
            Refusal::from(&error)
        })?;
        self.copying = Some(copying);
        Err(Stop::Waits)
    }

    /// Calls a procedure.
    pub(super) fn call(
        &mut self,
        script: &Script,
        context: &mut Context<'_>,
    ) -> Result<Vec<u8>, Stop> {
        let shared = Arc::clone(&self.shared);
        let procedures = &mut context.procedures;
        let id = script.find(&shared, procedures.program())?;
        let place = Place::of_procedure(&shared, procedures.program(), id);
        if place == Place::Pool && !context.may_take_long {
            return Err(Stop::NeedsPool);
        }
        let called = match &mut context.target {
            Target::Snapshot(snapshot) => {
                script.run(&shared, procedures, Transaction::Read(&mut **snapshot))?
            }
            Target::Writer(writer) => {
                let run = |tx: &mut dyn WriteTransaction| {
                    script.run(&shared, procedures, Transaction::Write(tx))
                };
                shared.notifier.transact(&mut **writer, run)?.0
            }
        };
        let (result, messages) = called.ok_or(Stop::NeedsWriter)?;
        match context.target {
            Target::Snapshot(_) => shared.channels.publish_all(&messages),
            Target::Writer(_) => self.messages.extend(messages),
        }
        Ok(result?)
    }

    /// What to do once what was written is durable.
    pub(super) fn when_durable(&mut self) -> Option<Box<dyn FnOnce()>> {
        if self.messages.is_empty() {
            return None;
        }
        let (messages, shared) = (std::mem::take(&mut self.messages), Arc::clone(&self.shared));
        Some(Box::new(move || shared.channels.publish_all(&messages)))
    }
}
