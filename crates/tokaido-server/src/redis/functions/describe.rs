//! FUNCTION LIST and FUNCTION STATS.

use std::collections::BTreeMap;

use tokaido_script::{Mode, Procedure, RegisteredFunction};
use tokaido_store::ReadTransaction;

use super::{commands::libraries, library::Library};
use crate::redis::{call::Call, failure::Failure, glob, reply::Reply};

/// The engine of libraries that clients load.
const LUA: &[u8] = b"LUA";

/// The engine of procedure files, which the operator installs.
const TOKAIDO: &[u8] = b"TOKAIDO";

/// What FUNCTION LIST asks for.
struct Asked<'c> {
    pattern: &'c [u8],
    with_code: bool,
}

fn asked<'c>(call: &Call<'c>) -> Result<Asked<'c>, Failure> {
    let (mut pattern, mut with_code, mut place) = (None, false, 2);
    while place < call.len() {
        if !with_code && call.is_word(place, "WITHCODE") {
            with_code = true;
        } else if pattern.is_none() && call.is_word(place, "LIBRARYNAME") {
            place += 1;
            if place == call.len() {
                return Err(Failure::other("library name argument was not given"));
            }
            pattern = Some(call.arg(place));
        } else {
            let argument = String::from_utf8_lossy(call.arg(place));
            return Err(Failure::other(format!("Unknown argument {argument}")));
        }
        place += 1;
    }
    Ok(Asked { pattern: pattern.unwrap_or(b"*"), with_code })
}

/// Shows a procedure file as a library and each procedure as a function, with a separate engine name.
pub(super) fn list(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    let Asked { pattern, with_code } = asked(call)?;
    let program = call.shared.program.get();
    let mut files: BTreeMap<&str, Vec<&Procedure>> = BTreeMap::new();
    let named = program.procedures().iter().filter(|procedure| procedure.route.is_none());
    for procedure in named {
        let file = procedure.name.rsplit_once('.').map_or("", |(file, _)| file);
        if glob::matches(pattern, file.as_bytes()) {
            files.entry(file).or_default().push(procedure);
        }
    }
    let libraries = libraries(call, tx)?;
    let is_wanted = |name: &str| glob::matches(pattern, name.as_bytes());
    let wanted: Vec<_> = libraries.iter().filter(|(name, _)| is_wanted(name)).collect();
    call.reply.array(files.len() + wanted.len());
    for (name, procedures) in files {
        write_head(call.reply, name, TOKAIDO, procedures.len(), with_code);
        procedures.iter().for_each(|procedure| write_procedure(call.reply, procedure));
        if with_code {
            call.reply.bulk(b"library_code");
            call.reply.null();
        }
        call.check_reply()?;
    }
    for (name, library) in wanted {
        write_library(call.reply, name, library, with_code);
        call.check_reply()?;
    }
    Ok(())
}

/// Writes the fields before the functions.
fn write_head(reply: &mut dyn Reply, name: &str, engine: &[u8], functions: usize, with_code: bool) {
    reply.map(3 + usize::from(with_code));
    reply.bulk(b"library_name");
    reply.bulk(name.as_bytes());
    reply.bulk(b"engine");
    reply.bulk(engine);
    reply.bulk(b"functions");
    reply.array(functions);
}

fn write_library(reply: &mut dyn Reply, name: &str, library: &Library, with_code: bool) {
    write_head(reply, name, LUA, library.functions.len(), with_code);
    for function in &library.functions {
        let RegisteredFunction { name, description, flags } = &function.registered;
        let flags: Vec<_> = flags.names().collect();
        write_function(reply, name, description.as_deref(), &flags);
    }
    if with_code {
        reply.bulk(b"library_code");
        reply.bulk(&library.code);
    }
}

fn write_procedure(reply: &mut dyn Reply, procedure: &Procedure) {
    let flags: &[&str] = if procedure.mode == Mode::Read { &["no-writes"] } else { &[] };
    write_function(reply, &procedure.name, None, flags);
}

fn write_function(reply: &mut dyn Reply, name: &str, description: Option<&[u8]>, flags: &[&str]) {
    reply.map(3);
    reply.bulk(b"name");
    reply.bulk(name.as_bytes());
    reply.bulk(b"description");
    reply.bulk_or_null(description);
    reply.bulk(b"flags");
    reply.set(flags.len());
    flags.iter().for_each(|flag| reply.simple(flag));
}

/// If several functions are running, reports the one that has run the longest.
pub(super) fn stats(call: &mut Call<'_>, tx: &mut dyn ReadTransaction) -> Result<(), Failure> {
    let libraries = libraries(call, tx)?;
    let reply = &mut *call.reply;
    reply.map(2);
    reply.bulk(b"running_script");
    match call.shared.functions.slots.longest_running() {
        None => reply.null(),
        Some(running) => {
            reply.map(3);
            reply.bulk(b"name");
            reply.bulk(&running.name);
            reply.bulk(b"command");
            reply.array(running.command.len());
            running.command.iter().for_each(|argument| reply.bulk(argument));
            reply.bulk(b"duration_ms");
            reply.integer(i64::try_from(running.for_so_long.as_millis()).unwrap_or(i64::MAX));
        }
    }
    reply.bulk(b"engines");
    reply.map(1);
    reply.bulk(LUA);
    reply.map(2);
    reply.bulk(b"libraries_count");
    reply.integer(libraries.iter().len() as i64);
    reply.bulk(b"functions_count");
    reply.integer(libraries.function_names().len() as i64);
    Ok(())
}
