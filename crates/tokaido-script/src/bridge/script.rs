//! `tokaido.transact` and `tokaido.snapshot` of a script that runs outside of any transaction.

use std::sync::Arc;

use tokaido_store::CommitError;

use super::context::{CONFLICT, Context, Fault, YES, native};
use crate::Transaction;

fn check_idle(context: &Context) -> Result<(), Fault> {
    if context.is_running() {
        return Err(Fault::Refused(
            "a transaction is open already; pass its tx on instead of beginning another".to_owned(),
        ));
    }
    Ok(())
}

/// Begins a write transaction.
pub(super) unsafe extern "C" fn begin_write(context: *mut Context) -> i32 {
    // SAFETY: called from Lua with the VM's context. The writer outlives `run_script`, which set it
    // and takes it away, and is used by nothing else meanwhile.
    unsafe {
        native(context, |context| {
            check_idle(context)?;
            context.store()?;
            let writer = context.writer.ok_or_else(|| {
                Fault::Refused(
                    "tokaido.transact is for scripts; a procedure is a transaction already"
                        .to_owned(),
                )
            })?;
            let transaction = (*writer).begin().map_err(Fault::refused)?;
            context.begin(Transaction::Write(transaction));
            Ok(YES)
        })
    }
}

/// Begins to read from a snapshot of what is committed.
pub(super) unsafe extern "C" fn begin_read(context: *mut Context) -> i32 {
    // SAFETY: called from Lua with the VM's context, which keeps the snapshot until `rollback`.
    unsafe {
        native(context, |context| {
            check_idle(context)?;
            let store = Arc::clone(context.store()?);
            if context.writer.is_none() {
                return Err(Fault::Refused(
                    "tokaido.snapshot is for scripts; a procedure is a transaction already"
                        .to_owned(),
                ));
            }
            let snapshot = context.snapshot.insert(store.snapshot()?);
            let snapshot: *mut dyn tokaido_store::Snapshot = &mut **snapshot;
            context.begin(Transaction::Read(&mut *snapshot));
            Ok(YES)
        })
    }
}

/// Commits the write transaction and makes it durable.
pub(super) unsafe extern "C" fn commit(context: *mut Context) -> i32 {
    // SAFETY: as for `begin_write`.
    unsafe {
        native(context, |context| {
            let poison = context.end();
            let Some(writer) = context.writer else { return Ok(YES) };
            if let Some(why) = poison {
                (*writer).rollback().map_err(Fault::refused)?;
                return Err(Fault::Refused(why));
            }
            match (*writer).commit() {
                Ok(_) => {
                    (*writer).flush().map_err(Fault::refused)?;
                    Ok(YES)
                }
                Err(CommitError::Conflict) => Ok(CONFLICT),
                Err(error) => Err(Fault::refused(error)),
            }
        })
    }
}

/// Ends what was begun as if it had never been.
pub(super) unsafe extern "C" fn rollback(context: *mut Context) -> i32 {
    // SAFETY: as for `begin_write`.
    unsafe {
        native(context, |context| {
            context.end();
            if context.snapshot.take().is_none()
                && let Some(writer) = context.writer
            {
                (*writer).rollback().map_err(Fault::refused)?;
            }
            Ok(YES)
        })
    }
}
