//! Procedures that the server calls by itself: after its start, before it stops, and around a reload.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Instant,
};

use tokaido_script::{Hook, ProcedureId, Transaction};
use tokaido_store::{TransactError, Writer as _};

use crate::{
    Shared,
    access::{Denied, Users},
    metrics::Metrics,
    procedures::CallFailure,
    redis::ScriptCommands,
    writer::WriterContext,
};

/// Calls all procedures of that hook, each in a transaction of its own, which the current group
/// makes durable. Returns their number. Errors are logged, and stop nothing.
pub(crate) fn call(hook: Hook, context: &mut WriterContext<'_>) -> usize {
    let Some(shared) = context.program.shared() else { return 0 };
    let hooks: Vec<ProcedureId> = context.program.program().hooks(hook).collect();
    for &id in &hooks {
        let called = catch_unwind(AssertUnwindSafe(|| call_one(id, &shared, context)));
        if called.is_err() {
            tracing::error!("a panic in a procedure that the server calls by itself");
            // A rollback failure is kept for the group.
            let _ = context.writer.rollback();
        }
    }
    hooks.len()
}

/// Switches to a newer program, between the end hooks of the old one and the begin hooks of the new
/// one. Returns how many procedures were called.
pub(crate) fn update(context: &mut WriterContext<'_>) -> usize {
    let ended = call(Hook::End, context);
    context.program.update();
    ended + call(Hook::Begin, context)
}

/// Makes such calls in a group of their own.
pub(crate) fn as_group(
    context: &mut WriterContext<'_>,
    metrics: &Metrics,
    calls: impl FnOnce(&mut WriterContext<'_>) -> usize,
) {
    let started = Instant::now();
    let count = calls(context);
    if count > 0 {
        // Errors are in the log.
        let _ = context.end_group(metrics, started, count);
    }
}

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
enum Failure {
    /// It is in the log already.
    #[error("the procedure failed")]
    Procedure,
    #[error("{0}")]
    Other(String),
}

impl From<TransactError<Self>> for Failure {
    fn from(error: TransactError<Self>) -> Self {
        match error {
            TransactError::Body(failure) => failure,
            error => Self::Other(error.to_string()),
        }
    }
}

impl From<CallFailure> for Failure {
    fn from(failure: CallFailure) -> Self {
        match failure.request_id {
            Some(_) => Self::Procedure,
            None => Self::Other(failure.error.to_string()),
        }
    }
}

impl From<Denied> for Failure {
    fn from(denied: Denied) -> Self {
        Self::Other(denied.message())
    }
}

fn call_one(id: ProcedureId, shared: &Arc<Shared>, context: &mut WriterContext<'_>) {
    let principal = Users::server();
    let WriterContext { writer, program, when_durable } = context;
    let mut procedures = program.procedures();
    let name = &procedures.get(id).name;
    let called = shared.notifier.transact(*writer, |tx| {
        let mut commands =
            ScriptCommands::for_call(shared, &principal, shared.main_selected(), name)?;
        let transaction = Transaction::Write(tx);
        match procedures.call(id, commands.in_transaction(transaction), &[]) {
            Err(failure) if !failure.is_kept() => return Err(Failure::from(failure)),
            _ => {}
        }
        Ok(commands.into_messages())
    });
    match called.map_err(Failure::from) {
        Ok((messages, _)) => {
            let shared = Arc::clone(shared);
            when_durable.push(Box::new(move || shared.channels.publish_all(&messages)));
        }
        Err(Failure::Procedure) => {}
        Err(Failure::Other(error)) => {
            tracing::error!(name, error, "the server's own call of a procedure failed");
        }
    }
}
