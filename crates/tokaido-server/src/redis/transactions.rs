//! MULTI, EXEC, DISCARD, WATCH: several commands as one transaction.

use std::sync::atomic::Ordering;

use tokaido_script::{Transaction, Vm};
use tokaido_store::{CommitNumber, DatabaseId, ReadTransaction, WriteTransaction, Writer};
use tokaido_wire::resp::{Request, RequestBuf};

use super::{
    call::Call,
    command::Handler,
    execute::{self, Step, Wanted},
    failure::Failure,
    procedures,
    session::Session,
};
use crate::Limits;

/// What MULTI has queued.
#[derive(Default)]
pub(crate) struct Queue {
    commands: Vec<(Wanted, RequestBuf)>,
    bytes: usize,
    /// A command could not be queued, so EXEC will refuse.
    is_spoilt: bool,
}

impl Queue {
    /// Lets EXEC refuse, because the client was told of an error already.
    pub(crate) fn spoil(&mut self) {
        self.is_spoilt = true;
    }
}

/// A record as it was when WATCH was called for its key.
pub(crate) struct Watched {
    database: DatabaseId,
    key: Vec<u8>,
    /// `None`: there was none.
    version: Option<CommitNumber>,
}

pub(super) fn multi(call: &mut Call<'_, '_>) -> Result<Step, Failure> {
    if call.session.queue.is_some() {
        return Err(Failure::other("MULTI calls can not be nested"));
    }
    call.session.queue = Some(Queue::default());
    call.session.client().queued.store(0, Ordering::Relaxed);
    call.reply.ok();
    Ok(Step::Done)
}

pub(super) fn discard(call: &mut Call<'_, '_>) -> Result<Step, Failure> {
    if call.session.take_queue().is_none() {
        return Err(Failure::other("DISCARD without MULTI"));
    }
    call.session.watched.clear();
    call.reply.ok();
    Ok(Step::Done)
}

pub(super) fn watch(call: &mut Call<'_, '_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    if call.session.queue.is_some() {
        return Err(Failure::other("WATCH inside MULTI is not allowed"));
    }
    call.needs_transaction("a watched record could change while EXEC runs; use SET with NX or XX")?;
    let database = call.database();
    let watched_max = call.shared.limits().watched_keys_max;
    if call.session.watched.len() + call.len() - 1 > watched_max {
        return Err(Failure::other(format!("a session watches at most {watched_max} keys")));
    }
    for key in call.request.arguments() {
        let is_known = |w: &Watched| w.database == database && w.key == key;
        if !call.session.watched.iter().any(is_known) {
            let version = tx.get(database, key)?.map(|record| record.version);
            call.session.watched.push(Watched { database, key: key.to_vec(), version });
        }
    }
    call.reply.ok();
    Ok(())
}

pub(super) fn unwatch(call: &mut Call<'_, '_>) -> Result<Step, Failure> {
    call.session.watched.clear();
    call.reply.ok();
    Ok(Step::Done)
}

/// Keeps a request for EXEC.
pub(super) fn enqueue(
    session: &mut Session,
    wanted: Wanted,
    request: Request<'_>,
    limits: &Limits,
) -> Result<(), Failure> {
    let Some(queue) = &mut session.queue else { return Ok(()) };
    queue.bytes += request.iter().map(<[u8]>::len).sum::<usize>();
    let Limits { queued_commands_max, queued_bytes_max, .. } = *limits;
    if queue.commands.len() >= queued_commands_max || queue.bytes > queued_bytes_max {
        queue.spoil();
        queue.commands = Vec::new();
        return Err(Failure::other(format!(
            "MULTI queues at most {queued_commands_max} commands of {queued_bytes_max} bytes"
        )));
    }
    queue.commands.push((wanted, RequestBuf::from(request)));
    let queued = queue.commands.len() as i64;
    session.client().queued.store(queued, Ordering::Relaxed);
    Ok(())
}

/// Runs what is queued. Unlike in Redis a command that fails takes the whole transaction with it:
/// all or nothing is what a transaction is here.
pub(super) fn exec(
    call: &mut Call<'_, '_>,
    vm: &mut Vm,
    writer: &mut dyn Writer,
) -> Result<(), Failure> {
    let watched = std::mem::take(&mut call.session.watched);
    let Some(queue) = call.session.take_queue() else {
        call.session.watched = watched;
        return Err(Failure::other("EXEC without MULTI"));
    };
    if queue.is_spoilt {
        return Err(Failure::Discarded);
    }
    let database = call.session.database();
    let result = execute::write(call, writer, |call, tx| {
        call.session.select(database);
        if !is_unchanged(&watched, tx)? {
            call.reply.null_array();
            return Ok(());
        }
        call.reply.array(queue.commands.len());
        for (wanted, request) in &queue.commands {
            run_queued(call, vm, tx, *wanted, request.as_request()).map_err(|source| {
                Failure::Aborted { command: wanted.name(), source: Box::new(source) }
            })?;
        }
        Ok(())
    });
    if result.is_err() {
        call.session.select(database);
    }
    result
}

fn is_unchanged(watched: &[Watched], tx: &mut dyn WriteTransaction) -> Result<bool, Failure> {
    for Watched { database, key, version } in watched {
        if tx.get(*database, key)?.map(|record| record.version) != *version {
            return Ok(false);
        }
    }
    Ok(true)
}

fn run_queued(
    call: &mut Call<'_, '_>,
    vm: &mut Vm,
    tx: &mut dyn WriteTransaction,
    wanted: Wanted,
    request: Request<'_>,
) -> Result<(), Failure> {
    let call = &mut Call {
        session: &mut *call.session,
        shared: call.shared,
        request,
        reply: &mut *call.reply,
    };
    let invocation = match wanted {
        Wanted::Procedure => procedures::bare(call, vm)?,
        Wanted::Command(command) => match command.handler {
            Handler::Container(Some(run)) | Handler::Connection(run) => {
                return run(call).map(drop);
            }
            Handler::Read(run) => return run(call, tx),
            Handler::Write(run) if execute::is_mounted(command, call) => {
                return execute::write_mounted(call, run);
            }
            Handler::Write(run) => return run(call, tx),
            Handler::Procedure(prepare) => prepare(call, vm)?,
            // These are not queued.
            Handler::Container(None) | Handler::Exec => return Err(Failure::Syntax),
        },
    };
    procedures::call_in(call, vm, Transaction::Write(tx), &invocation)
}
