//! Running a transaction on any engine, and running it again after a conflict.

use crate::{
    CommitError, CommitNumber, DatabaseId, Store, TransactError, WriteError, WriteTransaction,
    Writer, limits,
};

/// Runs `body` as one transaction and makes it durable. An error from the body rolls it back; after
/// a conflict it runs again from the top, so it must have no side effects outside the transaction.
///
/// # Errors
/// The body's error, or why the store did not commit.
pub fn transact<T, E>(
    writer: &mut dyn Writer,
    body: impl FnMut(&mut dyn WriteTransaction) -> Result<T, E>,
) -> Result<T, TransactError<E>> {
    let result = transact_unflushed(writer, body)?;
    writer.flush().map_err(TransactError::Commit)?;
    Ok(result)
}

/// As [`transact`], but leaves the [`flush`](Writer::flush) to the caller, so that several
/// transactions can share one.
///
/// # Errors
/// As [`transact`].
pub fn transact_unflushed<T, E>(
    writer: &mut dyn Writer,
    body: impl FnMut(&mut dyn WriteTransaction) -> Result<T, E>,
) -> Result<T, TransactError<E>> {
    transact_numbered(writer, body).map(|(result, _)| result)
}

/// As [`transact_unflushed`], but also returns the number of the last transaction that changed
/// anything, which is this one's number if this one did.
///
/// # Errors
/// As [`transact`].
pub fn transact_numbered<T, E>(
    writer: &mut dyn Writer,
    mut body: impl FnMut(&mut dyn WriteTransaction) -> Result<T, E>,
) -> Result<(T, CommitNumber), TransactError<E>> {
    // Returns `None` after a conflict.
    let mut attempt = || {
        let ran = writer
            .begin()
            .map_err(TransactError::Write)
            .and_then(|transaction| body(transaction).map_err(TransactError::Body));
        match ran {
            Ok(result) => match writer.commit() {
                Ok(number) => Some(Ok((result, number))),
                Err(CommitError::Conflict) => None,
                Err(error) => Some(Err(TransactError::Commit(error))),
            },
            Err(TransactError::Body(error)) => Some(match writer.rollback() {
                Ok(()) => Err(TransactError::Body(error)),
                Err(error) => Err(TransactError::Commit(error)),
            }),
            Err(error) => Some(Err(error)),
        }
    };
    (0..limits::CONFLICT_ATTEMPTS_MAX)
        .find_map(|_| attempt())
        .unwrap_or(Err(TransactError::Commit(CommitError::Conflict)))
}

/// Runs `body` on a database that is not transactional; see [`Store::run_in_place`].
///
/// # Errors
/// The body's error, or why the store did not run it.
pub fn transact_in_place<T, E: From<WriteError>>(
    store: &dyn Store,
    database: DatabaseId,
    mut body: impl FnMut(&mut dyn WriteTransaction) -> Result<T, E>,
) -> Result<T, E> {
    let mut result = Err(WriteError::Raced.into());
    store.run_in_place(database, &mut |tx| result = body(tx))?;
    result
}
