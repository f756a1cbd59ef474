//! A transaction that a caller waits for: run by the leader, answered once its group is flushed.

use std::{
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    thread,
};

use crate::{CommitError, GroupWriter, TransactError, WriteTransaction, transact_unflushed};

/// The outcome of a transaction before the flush, or the payload of its panic.
pub(super) type Outcome<T, E> = thread::Result<Result<T, TransactError<E>>>;

/// Runs `body`. A panic in it is the caller's, and does not unwind the leader's thread.
pub(super) fn run<T, E>(
    writer: &mut GroupWriter,
    body: &mut impl FnMut(&mut dyn WriteTransaction) -> Result<T, E>,
) -> Outcome<T, E> {
    catch_unwind(AssertUnwindSafe(|| transact_unflushed(writer, body)))
}

/// The result for the caller, after the flush. A panic of its body is resumed.
pub(super) fn result<T, E>(
    ran: Option<Outcome<T, E>>,
    flushed: Result<(), CommitError>,
) -> Result<T, TransactError<E>> {
    match (ran, flushed) {
        (Some(Err(panic)), _) => resume_unwind(panic),
        (Some(Ok(Err(error))), _) => Err(error),
        (Some(Ok(Ok(value))), Ok(())) => Ok(value),
        (_, Err(error)) => Err(TransactError::Commit(error)),
        (None, Ok(())) => unreachable!("a leader runs what it tells"),
    }
}
