//! Names of databases, the transaction's time, and the few services that touch no record.

use std::sync::Arc;

use tokaido_store::{DatabaseError, Engine, check_database_name, format_float};

use super::context::{Context, Fault, NO, YES, bytes, native};

/// What stands behind a database, as the reply's flags tell it; `lua/transaction.lua` has the same.
const TREE: f64 = 0.0;
const CACHE: f64 = 1.0;
const CDB: f64 = 2.0;

/// Answers the index of a database as the reply's number, and its engine as the reply's flags. In a read transaction a database that
/// nobody made yet answers `NO`, so that reading takes no place in the table of databases.
pub(super) unsafe extern "C" fn open(context: *mut Context, name: *const u8, len: u32) -> i32 {
    // SAFETY: called from Lua with the VM's context and a Lua string.
    unsafe {
        native(context, |context| {
            let name = bytes(name, len);
            let name =
                std::str::from_utf8(name).map_err(|_| bad_name(&String::from_utf8_lossy(name)))?;
            // A transaction must be running, or the handle would be taken for a licence to write.
            context.read()?;
            let id = if context.is_writable() {
                Some(context.store()?.database(name).map_err(Fault::refused)?)
            } else {
                // The store checks a name when it makes the database; a read, which makes none,
                // must not take a bad name for an empty database.
                check_database_name(name).map_err(Fault::refused)?;
                context.store()?.find_database(name)
            };
            let Some(id) = id else { return Ok(NO) };
            let store = Arc::clone(context.store()?);
            context.reply.flags = match store.engine(id) {
                Engine::Transactional => TREE,
                Engine::Cache(cache) => {
                    context.keep_cache(id, cache);
                    CACHE
                }
                Engine::Cdb => CDB,
            };
            context.reply.number = id.index() as f64;
            Ok(YES)
        })
    }
}

fn bad_name(name: &str) -> Fault {
    Fault::refused(DatabaseError::BadName { name: name.to_owned() })
}

/// Whether the running transaction may write.
pub(super) unsafe extern "C" fn writable(context: *mut Context) -> i32 {
    // SAFETY: called from Lua with the VM's context.
    unsafe {
        native(context, |context| {
            context.read()?;
            Ok(if context.is_writable() { YES } else { NO })
        })
    }
}

/// The transaction's time.
pub(super) unsafe extern "C" fn now(context: *mut Context) -> i32 {
    // SAFETY: called from Lua with the VM's context.
    unsafe {
        native(context, |context| {
            context.reply.number = context.read()?.now_ms() as f64;
            Ok(YES)
        })
    }
}

/// The shortest decimal of a number.
pub(super) unsafe extern "C" fn number_text(context: *mut Context, number: f64) -> i32 {
    // SAFETY: called from Lua with the VM's context.
    unsafe {
        native(context, |context| {
            if !number.is_finite() {
                return Err(Fault::Refused(format!("{number} cannot be stored")));
            }
            Ok(context.answer(|out| out.extend_from_slice(format_float(number).as_bytes())))
        })
    }
}

/// Writes a line to the server's log.
pub(super) unsafe extern "C" fn log(
    context: *mut Context,
    level: i32,
    message: *const u8,
    len: u32,
) -> i32 {
    // SAFETY: called from Lua with the VM's context and a Lua string.
    unsafe {
        native(context, |context| {
            let message = bytes(message, len);
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
        })
    }
}
