//! One transaction that somebody waits for: run by whoever leads, and settled once its group is
//! flushed.

use std::{
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    thread,
};

use crate::{
    CommitError, TransactError, WriteError, WriteTransaction, Writer, limits::CONFLICT_ATTEMPTS_MAX,
};

/// What became of a transaction before the flush.
pub(super) enum Fate {
    /// It is part of the group.
    Kept,
    /// It left nothing behind.
    Gone,
    /// It panicked, and may have left a transaction open.
    Panicked,
    /// The whole group goes with it.
    Lost(CommitError),
}

/// What a transaction came to, for the one who asked for it.
pub(super) enum Ran<T, E> {
    Kept(T),
    Gone(TransactError<E>),
    Lost(CommitError),
}

/// [`Ran`], or the payload of a panic.
pub(super) type Run<T, E> = thread::Result<Ran<T, E>>;

/// Runs `work` with the writer, or with the reason why there is none.
pub(super) fn run<T, E>(
    writer: Result<&mut dyn Writer, WriteError>,
    work: &mut impl FnMut(&mut dyn Writer) -> Ran<T, E>,
) -> (Run<T, E>, Fate) {
    let result = catch_unwind(AssertUnwindSafe(|| match writer {
        Ok(writer) => work(writer),
        Err(error) => Ran::Gone(TransactError::Write(error)),
    }));
    let fate = match &result {
        Ok(Ran::Kept(_)) => Fate::Kept,
        Ok(Ran::Gone(_)) => Fate::Gone,
        Ok(Ran::Lost(error)) => Fate::Lost(error.clone()),
        Err(_) => Fate::Panicked,
    };
    (result, fate)
}

/// What the one who asked is told, after the flush. A panic of its body goes on with it.
pub(super) fn settle<T, E>(
    ran: Option<Run<T, E>>,
    outcome: Result<(), CommitError>,
) -> Result<T, TransactError<E>> {
    let failed = |error| Err(TransactError::Commit(error));
    match (ran, outcome) {
        (Some(Ok(Ran::Kept(value))), Ok(())) => Ok(value),
        (Some(Ok(Ran::Kept(_))) | None, Err(error)) => failed(error),
        (Some(Ok(Ran::Gone(error))), _) => Err(error),
        (Some(Ok(Ran::Lost(error))), _) => failed(error),
        (Some(Err(panic)), _) => resume_unwind(panic),
        (None, Ok(())) => unreachable!("a leader runs what it calls done"),
    }
}

/// One transaction up to its commit, and again after a conflict.
pub(super) fn transact<T, E>(
    writer: &mut dyn Writer,
    body: &mut impl FnMut(&mut dyn WriteTransaction) -> Result<T, E>,
) -> Ran<T, E> {
    let mut attempt = 1;
    loop {
        let transaction = match writer.begin() {
            Ok(transaction) => transaction,
            Err(error) => return Ran::Gone(TransactError::Write(error)),
        };
        let value = match body(transaction) {
            Ok(value) => value,
            Err(error) => {
                return match writer.rollback() {
                    Ok(()) => Ran::Gone(TransactError::Body(error)),
                    Err(error) => Ran::Lost(error),
                };
            }
        };
        match writer.commit() {
            Ok(_) => return Ran::Kept(value),
            Err(CommitError::Conflict) if attempt < CONFLICT_ATTEMPTS_MAX => attempt += 1,
            Err(error @ CommitError::Conflict) => return Ran::Gone(TransactError::Commit(error)),
            Err(error) => return Ran::Lost(error),
        }
    }
}
