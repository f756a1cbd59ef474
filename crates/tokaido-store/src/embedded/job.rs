//! One transaction that somebody waits for: run by whoever leads, and told once its group is flushed.

use std::{
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    thread,
};

use crate::{CommitError, GroupWriter, TransactError, WriteTransaction, transact_unflushed};

/// What a transaction came to before the flush, or the payload of its panic.
pub(super) type Outcome<T, E> = thread::Result<Result<T, TransactError<E>>>;

/// Runs `body`, whose panic is the caller's, and not that of the thread that leads.
pub(super) fn run<T, E>(
    writer: &mut GroupWriter,
    body: &mut impl FnMut(&mut dyn WriteTransaction) -> Result<T, E>,
) -> Outcome<T, E> {
    catch_unwind(AssertUnwindSafe(|| transact_unflushed(writer, body)))
}

/// What the one who asked is told, after the flush. A panic of its body goes on with it.
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
