//! Runs XREAD and XREADGROUP: returns what is there, or waits.

use std::{sync::Arc, time::Instant};

use tokaido_collections::StreamId;
use tokaido_script::Transaction;
use tokaido_store::Kind;

use super::{
    run::ended,
    waiters::{Waiting, Wish},
};
use crate::{
    protocol::{Context, Target},
    redis::{
        call::Call,
        command::Command,
        execute::{self, Step},
        failure::Failure,
        session::Session,
        streams::{self, Reading},
    },
};

/// Runs a connection's command. One that waits runs again when it is woken, and at its deadline.
pub(in crate::redis) fn run(
    call: &mut Call<'_>,
    session: &mut Session,
    context: &mut Context<'_>,
    command: &'static Command,
    reading: &Reading,
) -> Result<Step, Failure> {
    if reading.waits {
        call.needs_transaction("nothing can be waited for there")?;
    }
    if let Some(ended) = ended(call, session, context) {
        return ended;
    }
    let ran = match reading.group {
        None => read(call, session, context, command, reading),
        Some(group) => read_group(call, session, context, command, (reading, group)),
    };
    match ran {
        Ok(Ran::Served) => {
            session.waiting = None;
            Ok(Step::Done)
        }
        Ok(Ran::NeedsWriter) => Ok(Step::NeedsWriter),
        Ok(Ran::Waits(wish, starts)) => Ok(wait(call, session, reading, wish, starts)),
        Err(Failure::TakesLong) => Err(Failure::TakesLong),
        Err(failure) => {
            session.waiting = None;
            Err(failure)
        }
    }
}

/// The outcome of a run.
enum Ran {
    /// The reply is written.
    Served,
    /// Nothing was read. A group needs the writer; so does a wait, or entries could arrive before.
    NeedsWriter,
    /// There was nothing. The session waits for this, after these ids.
    Waits(Wish, Vec<StreamId>),
}

fn read(
    call: &mut Call<'_>,
    session: &mut Session,
    context: &mut Context<'_>,
    command: &'static Command,
    reading: &Reading,
) -> Result<Ran, Failure> {
    let is_on_writer = matches!(context.target, Target::Writer(_));
    execute::read(call, session, &mut context.target, |call, session, tx| {
        session.client().note(command, tx.now_ms());
        let before = session.waiting.as_ref().map(Waiting::starts);
        let has_waited = before.is_some();
        let starts = before.map_or_else(|| streams::starts(call, tx, reading), Ok)?;
        if streams::read(call, tx, reading, &starts, has_waited)? {
            return Ok(Ran::Served);
        }
        if !reading.waits {
            call.reply.null_array();
            return Ok(Ran::Served);
        }
        if !is_on_writer {
            return Ok(Ran::NeedsWriter);
        }
        Ok(Ran::Waits(wish(call, session, reading), starts))
    })
}

fn read_group(
    call: &mut Call<'_>,
    session: &mut Session,
    context: &mut Context<'_>,
    command: &'static Command,
    (reading, group): (&Reading, usize),
) -> Result<Ran, Failure> {
    let Target::Writer(writer) = &mut context.target else { return Ok(Ran::NeedsWriter) };
    let selected = session.selected().clone();
    execute::write(call, *writer, |call, tx| {
        session.client().note(command, tx.now_ms());
        // Reading does not create the database.
        call.database = selected.find_in(tx);
        let mut wish = wish(call, session, reading);
        wish.group = Some(call.arg(group).into());
        let before = session.waiting.as_ref().map(Waiting::starts);
        let has_waited = before.is_some();
        let starts = before.map_or_else(|| streams::starts(call, tx, reading), Ok)?;
        let waiters = &call.shared.waiters;
        let may_take = |key: &[u8]| !reading.waits || waiters.is_first(session.id(), &wish, key);
        if streams::read_group(call, tx, reading, &starts, has_waited, &may_take)? {
            return Ok(Ran::Served);
        }
        if !reading.waits {
            call.reply.null_array();
            return Ok(Ran::Served);
        }
        Ok(Ran::Waits(wish, starts))
    })
}

fn wish(call: &Call<'_>, session: &Session, reading: &Reading) -> Wish {
    Wish {
        database: call.database,
        name: Arc::clone(session.selected().name()),
        kind: Kind::Stream,
        keys: reading.keys.clone().map(|index| call.arg(index).into()).collect(),
        count: reading.count,
        group: None,
    }
}

fn wait(
    call: &mut Call<'_>,
    session: &mut Session,
    reading: &Reading,
    wish: Wish,
    starts: Vec<StreamId>,
) -> Step {
    let Some(mailbox) = session.mailbox().cloned() else {
        // The session belongs to no connection, so nothing could wake it.
        call.reply.null_array();
        return Step::Done;
    };
    let client = session.client_handle();
    let waiters = Arc::clone(&call.shared.waiters);
    let waiting = session.waiting.get_or_insert_with(|| Waiting::new(waiters, client, starts));
    waiting.wait(wish, mailbox);
    Step::Block { until: reading.timeout.and_then(|timeout| Instant::now().checked_add(timeout)) }
}

/// Runs the command in an open transaction, where it does not wait.
pub(in crate::redis) fn run_within(
    call: &mut Call<'_>,
    transaction: Transaction<'_>,
    reading: &Reading,
) -> Result<(), Failure> {
    let is_served = match (reading.group, transaction) {
        (None, Transaction::Read(tx)) => {
            let starts = streams::starts(call, tx, reading)?;
            streams::read(call, tx, reading, &starts, false)?
        }
        (None, Transaction::Write(tx)) => {
            let starts = streams::starts(call, tx, reading)?;
            streams::read(call, tx, reading, &starts, false)?
        }
        (Some(_), Transaction::Write(tx)) => {
            let starts = streams::starts(call, tx, reading)?;
            streams::read_group(call, tx, reading, &starts, false, &|_| true)?
        }
        (Some(_), Transaction::Read(_)) => return Err(Failure::ReadOnlyScript),
    };
    if !is_served {
        call.reply.null_array();
    }
    Ok(())
}
