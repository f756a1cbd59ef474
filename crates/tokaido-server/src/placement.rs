//! Where a request runs: on its worker, in the pool or on the writer. The place is chosen and
//! counted here, for every protocol, and everything that can go wrong on the way is one error.
//!
//! - A read runs on the worker's own snapshot; one that may take long, or of an engine that blocks,
//!   runs in the pool.
//! - A write runs on the writer, unless its database takes no part in transactions: then it runs
//!   where the request is.
//! - A procedure that writes runs on the writer. One that reads runs in the pool until it has earned
//!   its place on the workers.

use std::sync::Arc;

use tokaido_script::{Mode, ProcedureId, Transaction};
use tokaido_store::{
    Capabilities, CommitError, DatabaseId, ReadError, Snapshot, TransactError, WriteError,
    WriteTransaction, transact, transact_in_place,
};

use crate::{
    Shared,
    metrics::{self, RequestCounters},
    pause::Paused,
    procedures::Procedures,
    program::Program,
    read_context::ReadContext,
    redis::Message,
    worker::Worker,
    writer::WriterContext,
};

/// A thread, or one of several, that runs requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The worker that has the connection. What may run here may also run elsewhere, with the rest
    /// of a batch.
    Worker,
    Pool,
    Writer,
}

impl Place {
    /// The place of a read of a database. Some reads take long whatever the engine.
    pub(crate) fn of_read(capabilities: Capabilities, is_long: bool) -> Self {
        if is_long || capabilities.reads_block { Self::Pool } else { Self::Worker }
    }

    /// The place of a write to a database.
    pub(crate) fn of_write(capabilities: Capabilities) -> Self {
        if capabilities.is_transactional { Self::Writer } else { Self::Worker }
    }

    /// The place of a procedure call, which may read any database.
    pub(crate) fn of_procedure(shared: &Shared, program: &Program, id: ProcedureId) -> Self {
        match program.get(id).mode {
            Mode::Write => Self::Writer,
            Mode::Read => {
                let is_long = !program.get(id).is_of_worker && !program.runs_inline(id);
                Self::of_read(shared.capabilities(shared.main()), is_long)
            }
        }
    }
}

/// The outcome of a procedure call: its result and what it has published, or nothing, if it has to
/// run on the writer.
pub(crate) type Called<T> = Option<(T, Vec<Message>)>;

/// A request did not run to its end, for a reason outside of the request.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RunError {
    /// No snapshot was available, or the request panicked.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Its group of writes was not committed.
    #[error(transparent)]
    Commit(#[from] CommitError),
    /// The thread that had it is gone: it panicked, or the server is stopping.
    #[error("an error in the server itself, see its log")]
    Lost,
}

/// Runs one protocol's requests for a worker.
#[derive(Clone, Copy)]
pub(crate) struct Placement<'w> {
    pub(crate) worker: &'w Worker,
    counters: &'w RequestCounters,
}

impl<'w> Placement<'w> {
    /// Requests of the Redis protocol.
    pub(crate) fn resp(worker: &'w Worker) -> Self {
        Self { worker, counters: &worker.counters.resp }
    }

    /// Requests over HTTP.
    pub(crate) fn http(worker: &'w Worker) -> Self {
        Self { worker, counters: &worker.counters.http }
    }

    /// Requests of the memcached protocol.
    pub(crate) fn memcached(worker: &'w Worker) -> Self {
        Self { worker, counters: &worker.counters.memcached }
    }

    /// Requests of Kyoto Tycoon's binary protocol.
    pub(crate) fn kyoto(worker: &'w Worker) -> Self {
        Self { worker, counters: &worker.counters.kyoto }
    }

    /// Requests of Tokyo Tyrant's binary protocol, and of its lines.
    pub(crate) fn tyrant(worker: &'w Worker) -> Self {
        Self { worker, counters: &worker.counters.tyrant }
    }

    /// Counts requests that ran.
    pub(crate) fn count(self, place: Place, requests: usize) {
        let counter = match place {
            Place::Worker => &self.counters.local,
            Place::Pool => &self.counters.pool,
            Place::Writer => &self.counters.writer,
        };
        metrics::add(counter, requests as u64);
    }

    /// Counts a request that the protocol itself refused.
    pub(crate) fn count_error(self) {
        metrics::add(&self.counters.errors, 1);
    }

    /// Runs a read of a database where [`Place::of_read`] says.
    pub(crate) async fn read<T: Send + 'static>(
        self,
        database: DatabaseId,
        is_long: bool,
        work: impl FnOnce(&mut dyn Snapshot) -> T + Send + 'static,
    ) -> Result<T, RunError> {
        let capabilities = self.worker.service.shared.capabilities(database);
        let read = |context: &mut ReadContext| work(&mut *context.snapshot);
        match Place::of_read(capabilities, is_long) {
            Place::Pool => self.in_pool(read).await,
            _ => self.here(read),
        }
    }

    /// Runs a request on this worker, before the worker looks at the next connection.
    pub(crate) fn here<T>(self, work: impl FnOnce(&mut ReadContext) -> T) -> Result<T, RunError> {
        self.count(Place::Worker, 1);
        Ok(self.worker.reading.borrow_mut().run(work)?)
    }

    /// Runs a request on a pool thread.
    pub(crate) async fn in_pool<T: Send + 'static>(
        self,
        work: impl FnOnce(&mut ReadContext) -> T + Send + 'static,
    ) -> Result<T, RunError> {
        self.count(Place::Pool, 1);
        self.worker.pool.call(work).await
    }

    /// Runs a request on the writer, and waits until what it wrote is durable.
    async fn on_writer<T: Send + 'static>(
        self,
        work: impl FnOnce(&mut WriterContext<'_>) -> T + Send + 'static,
    ) -> Result<T, RunError> {
        self.count(Place::Writer, 1);
        self.worker.writer.call(work).await
    }

    /// Runs `body` where [`Place::of_write`] says. It may run more than once.
    pub(crate) async fn write<T, E>(
        self,
        database: DatabaseId,
        body: impl FnMut(&mut dyn WriteTransaction) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<RunError> + From<WriteError> + From<TransactError<E>> + Send + 'static,
    {
        let shared = &self.worker.service.shared;
        if Place::of_write(shared.capabilities(database)) == Place::Writer {
            let work = |context: &mut WriterContext<'_>| transact(context.writer, body);
            return Ok(self.on_writer(work).await??);
        }
        shared.pause.until_over(Paused::Writes).await;
        self.count(Place::Worker, 1);
        transact_in_place(&**shared.store(), database, body)
    }

    /// Runs a call of a procedure, in a transaction, where [`Place::of_procedure`] says.
    ///
    /// The call looks the procedure up where it runs, since the program there may be a newer one.
    /// If it returns nothing, because the procedure writes and the transaction does not, it runs
    /// again on the writer. A write may run more than once. The messages returned with its result
    /// are sent once its writes are durable, even if nobody waits for the result any more.
    pub(crate) async fn procedure<T, E, C>(self, place: Place, mut call: C) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<RunError> + From<TransactError<E>> + Send + 'static,
        C: FnMut(&mut Procedures<'_>, Transaction<'_>) -> Result<Called<T>, E> + Send + 'static,
    {
        let shared = &self.worker.service.shared;
        let (channels, notifier) = (Arc::clone(&shared.channels), Arc::clone(&shared.notifier));
        if place != Place::Writer {
            let read = move |context: &mut ReadContext| {
                let procedures = &mut context.program.procedures();
                (call(procedures, Transaction::Read(&mut *context.snapshot)), call)
            };
            let (result, back) = match place {
                Place::Pool => self.in_pool(read).await?,
                _ => self.here(read)?,
            };
            match result? {
                Some((result, messages)) => {
                    channels.publish_all(&messages);
                    return Ok(result);
                }
                None => call = back,
            }
        }
        let write = move |context: &mut WriterContext<'_>| {
            let WriterContext { writer, program, when_durable } = context;
            let procedures = &mut program.procedures();
            let called = notifier.transact(*writer, |tx| call(procedures, Transaction::Write(tx)));
            called.map(|(called, _)| {
                let (result, messages) = called?;
                when_durable.push(Box::new(move || channels.publish_all(&messages)));
                Some(result)
            })
        };
        Ok(self.on_writer(write).await??.ok_or(RunError::Lost)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_run_where_the_engine_can_serve_them() {
        let (tree, cache, cdb) = (Capabilities::TREE, Capabilities::CACHE, Capabilities::CDB);
        let remote = Capabilities { reads_block: true, ..tree };
        for (engine, read, long_read, write) in [
            (tree, Place::Worker, Place::Pool, Place::Writer),
            (cache, Place::Worker, Place::Pool, Place::Worker),
            (cdb, Place::Worker, Place::Pool, Place::Worker),
            (remote, Place::Pool, Place::Pool, Place::Writer),
        ] {
            let places = [Place::of_read(engine, false), Place::of_read(engine, true)];
            assert_eq!(places, [read, long_read], "{engine:?}");
            assert_eq!(Place::of_write(engine), write, "{engine:?}");
        }
    }
}
