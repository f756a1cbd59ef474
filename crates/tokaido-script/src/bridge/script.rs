//! `tokaido.transact` and `tokaido.snapshot` in a script that runs outside any transaction.

use std::sync::Arc;

use tokaido_collections::count_requested;
use tokaido_store::{CommitError, Snapshot, TransactError, WriteError, transact};

use super::context::{CONFLICT, Context, Fault, YES};
use crate::Transaction;

/// How many members of sorted sets are counted at most before a script gets a snapshot.
const COUNTED_MAX: usize = 100_000;

fn check_idle(context: &Context) -> Result<(), Fault> {
    if context.is_running() {
        return Err(Fault::Refused(
            "a transaction is open already; pass its tx on instead of beginning another".to_owned(),
        ));
    }
    Ok(())
}

/// Begins a write transaction.
pub(super) fn begin_write(context: &mut Context) -> Result<i32, Fault> {
    check_idle(context)?;
    context.store()?;
    let writer = context.writer().ok_or_else(|| {
        Fault::Refused(
            "tokaido.transact is for scripts; a procedure is a transaction already".to_owned(),
        )
    })?;
    let transaction = writer.begin().map_err(Fault::refused)?;
    // SAFETY: the writer outlives `run_script`, which takes the transaction back, and is not used
    // before `commit` or `rollback` here have done so.
    unsafe { context.begin(Transaction::Write(transaction).into()) };
    Ok(YES)
}

/// Begins to read from a snapshot of the committed data.
pub(super) fn begin_read(context: &mut Context) -> Result<i32, Fault> {
    check_idle(context)?;
    let store = Arc::clone(context.store()?);
    let writer = context.writer().ok_or_else(|| {
        Fault::Refused(
            "tokaido.snapshot is for scripts; a procedure is a transaction already".to_owned(),
        )
    })?;
    // A server would do this between transactions.
    let counted = transact(writer, |tx| count_requested(tx, COUNTED_MAX));
    counted.map_err(|error: TransactError<WriteError>| Fault::refused(error))?;
    let snapshot: *mut dyn Snapshot = &mut **context.snapshot.insert(store.snapshot()?);
    // SAFETY: the context keeps the snapshot, untouched, until `rollback` or the end of the script
    // has taken the transaction back.
    unsafe { context.begin(Transaction::Read(&mut *snapshot).into()) };
    Ok(YES)
}

/// Commits the write transaction and makes it durable.
pub(super) fn commit(context: &mut Context) -> Result<i32, Fault> {
    let poison = context.end();
    let Some(writer) = context.writer() else { return Ok(YES) };
    if let Some(why) = poison {
        writer.rollback().map_err(Fault::refused)?;
        return Err(Fault::Refused(why));
    }
    match writer.commit() {
        Ok(_) => {
            writer.flush().map_err(Fault::refused)?;
            Ok(YES)
        }
        Err(CommitError::Conflict) => Ok(CONFLICT),
        Err(error) => Err(Fault::refused(error)),
    }
}

/// Ends what was begun, without any effect.
pub(super) fn rollback(context: &mut Context) -> Result<i32, Fault> {
    context.end();
    if context.snapshot.take().is_none()
        && let Some(writer) = context.writer()
    {
        writer.rollback().map_err(Fault::refused)?;
    }
    Ok(YES)
}
