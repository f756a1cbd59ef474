//! MULTI, EXEC, DISCARD, WATCH: several commands as one transaction.

use std::sync::{Arc, atomic::Ordering};

use tokaido_script::Transaction;
use tokaido_store::{CommitNumber, ReadTransaction, WriteTransaction, Writer};
use tokaido_wire::resp::{Request, RequestBuf};

use super::{
    admission,
    call::Call,
    command::Handler,
    command::{Command, rows},
    execute::{self, Step, Wanted},
    failure::Failure,
    pausing, procedures,
    session::Session,
};
use crate::{Limits, Procedures, access::Where, selected};

pub(super) const COMMANDS: &[Command] = rows! {
"discard" 1 Connection(discard), NO_KEY [FAST UNQUEUED] Transactions "2.0.0"
    ""
    "Discards the commands queued since MULTI.";
"exec" 1 Exec, NO_KEY [UNQUEUED] Transactions "1.2.0"
    ""
    "Runs the commands queued since MULTI as one transaction. If one fails, none of their changes are kept.";
"multi" 1 Connection(multi), NO_KEY [FAST UNQUEUED] Transactions "1.2.0"
    ""
    "Starts queueing commands for EXEC.";
"unwatch" 1 Connection(unwatch), NO_KEY [FAST] Transactions "2.2.0"
    ""
    "Forgets all watched keys.";
"watch" -2 Watch, KEYS [FAST UNQUEUED] Transactions "2.2.0"
    "key [key ...]"
    "Makes the next EXEC do nothing if one of the keys has changed by then.";
};

/// The commands that MULTI has queued.
#[derive(Default)]
pub(crate) struct Queue {
    commands: Vec<(Wanted, RequestBuf)>,
    bytes: usize,
    /// Whether a command could not be queued, so that EXEC will fail.
    is_spoilt: bool,
}

impl Queue {
    /// Makes EXEC fail, because the client has already received an error.
    pub(crate) fn spoil(&mut self) {
        self.is_spoilt = true;
    }
}

/// A record as it was when its key was watched.
pub(crate) struct Watched {
    database: Arc<str>,
    key: Vec<u8>,
    /// `None`: there was no record.
    version: Option<CommitNumber>,
}

fn multi(call: &mut Call<'_>, session: &mut Session) -> Result<Step, Failure> {
    if session.queue.is_some() {
        return Err(Failure::other("MULTI calls can not be nested"));
    }
    session.queue = Some(Queue::default());
    session.client().queued.store(0, Ordering::Relaxed);
    call.reply.ok();
    Ok(Step::Done)
}

fn discard(call: &mut Call<'_>, session: &mut Session) -> Result<Step, Failure> {
    if session.take_queue().is_none() {
        return Err(Failure::other("DISCARD without MULTI"));
    }
    session.watched.clear();
    call.reply.ok();
    Ok(Step::Done)
}

pub(super) fn watch(
    call: &mut Call<'_>,
    session: &mut Session,
    tx: &mut dyn ReadTransaction,
) -> Result<(), Failure> {
    if session.queue.is_some() {
        return Err(Failure::other("WATCH inside MULTI is not allowed"));
    }
    call.needs_transaction("a watched record could change while EXEC runs; use SET with NX or XX")?;
    let (id, database) = (call.database, session.selected().name().clone());
    let watched_max = call.shared.limits().watched_keys_max;
    if session.watched.len() + call.len() - 1 > watched_max {
        return Err(Failure::other(format!("a session watches at most {watched_max} keys")));
    }
    for key in call.request.arguments() {
        let is_known = |w: &Watched| w.database == database && w.key == key;
        if !session.watched.iter().any(is_known) {
            let version = tx.get(id, key)?.map(|record| record.version);
            let database = database.clone();
            session.watched.push(Watched { database, key: key.to_vec(), version });
        }
    }
    call.reply.ok();
    Ok(())
}

fn unwatch(call: &mut Call<'_>, session: &mut Session) -> Result<Step, Failure> {
    session.watched.clear();
    call.reply.ok();
    Ok(Step::Done)
}

/// Queues a request for EXEC.
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

/// Runs the queued commands. Unlike in Redis, a command that fails aborts the whole transaction:
/// here, a transaction is all or nothing.
pub(super) fn exec(
    call: &mut Call<'_>,
    session: &mut Session,
    procedures: &mut Procedures<'_>,
    writer: &mut dyn Writer,
) -> Result<(), Failure> {
    let watched = std::mem::take(&mut session.watched);
    let Some(queue) = session.take_queue() else {
        session.watched = watched;
        return Err(Failure::other("EXEC without MULTI"));
    };
    if queue.is_spoilt {
        return Err(Failure::Discarded);
    }
    let selected = session.selected().clone();
    let result = execute::write(call, writer, |call, tx| {
        session.select(selected.clone());
        if !is_unchanged(&watched, tx)? {
            call.reply.null_array();
            return Ok(());
        }
        call.reply.array(queue.commands.len());
        for (wanted, request) in &queue.commands {
            // The rules may have changed since it was queued, or by an earlier queued command.
            let permission = wanted.permission(request.as_request());
            admission::admit(session, permission, Where::Multi)?;
            let database = match wanted {
                Wanted::Command(command) => {
                    execute::selected_for(command, session.selected(), tx, call.shared)?
                }
                Wanted::Procedure => session.selected().find_in(tx),
            };
            let queued = &mut Call {
                shared: call.shared,
                database,
                request: request.as_request(),
                reply: &mut *call.reply,
                may_take_long: true,
                messages: std::mem::take(&mut call.messages),
                reader: session.begin_reading(),
                committed: None,
            };
            run_queued(queued, session, procedures, tx, *wanted).map_err(|source| {
                Failure::Aborted { command: wanted.name(), source: Box::new(source) }
            })?;
            call.messages = std::mem::take(&mut queued.messages);
            if let Wanted::Command(command) = wanted {
                let monitors = &call.shared.instruments.monitors;
                monitors.show(session.client(), command, request.as_request());
            }
        }
        Ok(())
    });
    if result.is_err() {
        session.select(selected);
    }
    result
}

fn is_unchanged(watched: &[Watched], tx: &mut dyn WriteTransaction) -> Result<bool, Failure> {
    for Watched { database, key, version } in watched {
        let database = selected::find_in(database, tx);
        if tx.get(database, key)?.map(|record| record.version) != *version {
            return Ok(false);
        }
    }
    Ok(true)
}

fn run_queued(
    call: &mut Call<'_>,
    session: &mut Session,
    procedures: &mut Procedures<'_>,
    tx: &mut dyn WriteTransaction,
    wanted: Wanted,
) -> Result<(), Failure> {
    let invocation = match wanted {
        Wanted::Procedure => procedures::bare(call, procedures)?,
        Wanted::Command(command) => match command.handler {
            Handler::Connection(run) => return run(call, session).map(drop),
            Handler::Procedure(prepare) => prepare(call, procedures)?,
            Handler::Pause => return pausing::run(call, true).map(drop),
            _ => return execute::run_within(command, call, Transaction::Write(tx)),
        },
    };
    procedures::call_in(call, session, procedures, Transaction::Write(tx), &invocation)
}
