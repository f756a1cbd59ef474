//! Runs a blocking command: takes what is there, or waits.

use std::{sync::Arc, time::Instant};

use tokaido_store::{DatabaseId, WriteTransaction};

use super::{
    plan::{Plan, Take},
    waiters::{Unblocked, Waiting, Wish},
};
use crate::{
    protocol::{Context, Target},
    redis::{
        call::Call,
        command::Command,
        execute::{self, Step},
        failure::Failure,
        session::Session,
    },
};

/// Runs a connection's command. It runs again when it is woken, and at its deadline.
pub(in crate::redis) fn run(
    call: &mut Call<'_>,
    session: &mut Session,
    context: &mut Context<'_>,
    command: &'static Command,
    plan: &Plan,
) -> Result<Step, Failure> {
    call.needs_transaction("nothing can be waited for there")?;
    if let Some(ended) = ended(call, session, context) {
        return ended;
    }
    let Target::Writer(writer) = &mut context.target else { return Ok(Step::NeedsWriter) };
    let selected = session.selected().clone();
    let mut wish = Wish {
        database: DatabaseId::NOWHERE,
        name: Arc::clone(selected.name()),
        kind: plan.kind(),
        keys: plan.keys.clone().map(|index| call.arg(index).into()).collect(),
        count: plan.count(),
        group: None,
    };
    let taken = execute::write(call, *writer, |call, tx| {
        session.client().note(command, tx.now_ms());
        // Waiting does not create the database.
        call.database = selected.find_in(tx);
        wish.database = call.database;
        let (has_waited, waiters) = (session.waiting.is_some(), &call.shared.waiters);
        let may_take = |key: &[u8], len| waiters.may_take(session.id(), &wish, key, len);
        let taken = take_first(call, tx, plan, has_waited, may_take)?;
        call.shared.notifier.note(command, call, tx);
        Ok(taken)
    });
    match taken {
        Ok(Some(index)) => {
            if let Some(waiting) = session.waiting.take() {
                waiting.served(call.arg(index));
            }
            Ok(Step::Done)
        }
        Ok(None) => Ok(wait(call, session, plan, wish)),
        Err(failure) => {
            session.waiting = None;
            Err(failure)
        }
    }
}

/// The reply of a command whose wait has ended, at its deadline or by CLIENT UNBLOCK.
pub(super) fn ended(
    call: &mut Call<'_>,
    session: &mut Session,
    context: &Context<'_>,
) -> Option<Result<Step, Failure>> {
    let unblocked = session.waiting.as_ref().and_then(Waiting::unblocked);
    if !context.timed_out && unblocked.is_none() {
        return None;
    }
    session.waiting = None;
    if unblocked == Some(Unblocked::Error) {
        return Some(Err(Failure::Unblocked));
    }
    call.reply.null_array();
    Some(Ok(Step::Done))
}

fn wait(call: &mut Call<'_>, session: &mut Session, plan: &Plan, wish: Wish) -> Step {
    let Some(mailbox) = session.mailbox().cloned() else {
        // The session belongs to no connection, so nothing could wake it.
        write_nothing(call, plan);
        return Step::Done;
    };
    let client = session.client_handle();
    let waiters = Arc::clone(&call.shared.waiters);
    let waiting = session.waiting.get_or_insert_with(|| Waiting::new(waiters, client, Vec::new()));
    waiting.wait(wish, mailbox);
    Step::Block { until: plan.timeout.and_then(|timeout| Instant::now().checked_add(timeout)) }
}

/// Runs the command in an open transaction, where it does not wait.
pub(in crate::redis) fn run_within(
    call: &mut Call<'_>,
    tx: &mut dyn WriteTransaction,
    command: &Command,
    plan: &Plan,
) -> Result<(), Failure> {
    if take_first(call, tx, plan, false, |_, _| true)?.is_none() {
        write_nothing(call, plan);
    }
    call.shared.notifier.note(command, call, tx);
    Ok(())
}

/// Takes from the first non-empty key that `may_take` allows, and returns the index of its argument. A client
/// that `has_waited` goes on waiting if a key holds another type.
fn take_first(
    call: &mut Call<'_>,
    tx: &mut dyn WriteTransaction,
    plan: &Plan,
    has_waited: bool,
    may_take: impl Fn(&[u8], u64) -> bool,
) -> Result<Option<usize>, Failure> {
    for index in plan.keys.clone() {
        let len = match plan.len(call, tx, index) {
            Err(Failure::WrongKind) if has_waited => 0,
            len => len?,
        };
        if len > 0 && may_take(call.arg(index), len) {
            plan.take(call, tx, index)?;
            return Ok(Some(index));
        }
    }
    Ok(None)
}

/// Writes the reply of a command that does not wait and finds nothing.
fn write_nothing(call: &mut Call<'_>, plan: &Plan) {
    match plan.take {
        Take::Moved { .. } => call.reply.null(),
        _ => call.reply.null_array(),
    }
}
