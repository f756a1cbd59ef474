//! Names of databases, the transaction's time, and the few services that do not touch records.

use std::sync::Arc;

use tokaido_store::{
    DatabaseError, DatabaseId, Store, WriteError, check_database_name, composite,
    counter::format_float,
};

use super::context::{Context, Fault, NO, StoreOrReason, YES};

/// Which calls a database takes, as passed in the reply's flags; `lua/transaction.lua` has the same.
const ORDERED: f64 = 0.0;
const CACHE: f64 = 1.0;
const UNORDERED: f64 = 2.0;

/// The database does not exist yet; see [`open`].
const UNWRITTEN: i32 = 2;

/// Gives the index of a database as the reply's number, and its engine as the reply's flags. If the
/// database does not exist, a read transaction answers `NO`. A write transaction answers `UNWRITTEN`, with an
/// index that is valid until the transaction ends, and longer only if the database is written to.
pub(super) fn open(context: &mut Context, name: &[u8]) -> Result<i32, Fault> {
    let name = std::str::from_utf8(name).map_err(|_| bad_name(&String::from_utf8_lossy(name)))?;
    // A transaction must be running, or the handle would be taken for permission to write.
    context.read()?;
    // A bad name must not be taken for that of an empty database.
    check_database_name(name).map_err(Fault::refused)?;
    let (id, code) = match context.store()?.find_database(name) {
        Some(id) => (id, YES),
        None if context.is_writable() => {
            (context.write()?.open_database(name, usize::MAX)?, UNWRITTEN)
        }
        None => return Ok(NO),
    };
    let store = Arc::clone(context.store()?);
    if let Some(cache) = composite::cache(&*store, id) {
        context.keep_cache(id, cache);
    }
    context.reply.flags = engine(&*store, id);
    context.reply.number = id.index() as f64;
    Ok(code)
}

fn engine(store: &dyn Store, id: DatabaseId) -> f64 {
    if composite::cache(store, id).is_some() {
        CACHE
    } else if store.capabilities(id).is_ordered {
        ORDERED
    } else {
        UNORDERED
    }
}

/// The engine of the database of that name, as [`open`] gives it. Mounted databases exist from the beginning; any other
/// that does not exist is made in the store.
pub(crate) fn engine_of(store: &StoreOrReason, name: &str) -> f64 {
    let store = store.as_ref().ok();
    let id = store.and_then(|store| Some((store, store.find_database(name)?)));
    id.map_or(ORDERED, |(store, id)| engine(&**store, id))
}

/// Deletes a database with all its records. Tells whether it existed.
pub(super) fn drop_database(context: &mut Context, name: &[u8]) -> Result<i32, Fault> {
    let name = std::str::from_utf8(name).map_err(|_| bad_name(&String::from_utf8_lossy(name)))?;
    let tx = context.write()?;
    let id = match tx.open_database(name, 0) {
        Err(WriteError::Name(DatabaseError::TooMany { .. })) => return Ok(NO),
        opened => opened?,
    };
    Ok(if tx.drop_database(id)? { YES } else { NO })
}

fn bad_name(name: &str) -> Fault {
    Fault::refused(DatabaseError::BadName { name: name.to_owned() })
}

/// Whether the running transaction may write.
pub(super) fn writable(context: &mut Context) -> Result<i32, Fault> {
    context.read()?;
    Ok(if context.is_writable() { YES } else { NO })
}

/// The transaction's time.
pub(super) fn now(context: &mut Context) -> Result<i32, Fault> {
    context.reply.number = context.read()?.now_ms() as f64;
    Ok(YES)
}

/// The shortest decimal of a number.
pub(super) fn number_text(context: &mut Context, number: f64) -> Result<i32, Fault> {
    if !number.is_finite() {
        return Err(Fault::Refused(format!("{number} cannot be stored")));
    }
    Ok(context.answer(|out| out.extend_from_slice(format_float(number).as_bytes())))
}

/// Writes a line to the server's log.
pub(super) fn log(context: &mut Context, level: i32, message: &[u8]) -> Result<i32, Fault> {
    let shown = message.len().min(context.limits.log_len_max);
    let message = String::from_utf8_lossy(&message[..shown]);
    let procedure = context.procedure.as_str();
    match level {
        0 => tracing::error!(target: "procedure", procedure, "{message}"),
        1 => tracing::warn!(target: "procedure", procedure, "{message}"),
        2 => tracing::info!(target: "procedure", procedure, "{message}"),
        _ => tracing::debug!(target: "procedure", procedure, "{message}"),
    }
    Ok(YES)
}
