//! Loads procedure files into a VM, and lists what they declare.

use std::{collections::HashSet, path::PathBuf};

use tokaido_script::{
    Dialect, Fault, Listing, LoadError, Mode, Procedure, Route, RuntimeError, Source,
};

use crate::{
    context::Context,
    items::{self, Argument},
    mod_mruby,
    operation::Operation,
    report::Failure,
    setup::Setup,
    state::{RubyState, cannot_start},
};

/// The extension of Ruby files.
pub(crate) const EXTENSION: &str = "rb";

/// Loads every file; those with errors are skipped and reported.
pub(crate) fn load(
    state: &mut RubyState,
    setup: &Setup,
) -> Result<(Vec<Procedure>, Vec<LoadError>), RuntimeError> {
    let mut errors = Vec::new();
    for source in setup.files() {
        if source.dialect_name() != setup.dialect.name {
            let known = format!("{} and {}", Dialect::NATIVE.name, Dialect::MOD_MRUBY.name);
            let name = source.dialect_name();
            let message = format!("Ruby has no dialect {name:?}; there are {known}");
            errors.push(LoadError::of_file(source, message));
            continue;
        }
        let mut given = vec![items::bytes(source.module.as_bytes())];
        let loaded = if setup.is_mod_mruby() {
            match mod_mruby::declared(source) {
                Ok(settings) => {
                    items::flatten(&settings, &mut given);
                    state.call(c"load_script", &given, 2)
                }
                Err(message) => {
                    errors.push(LoadError::of_file(source, message));
                    continue;
                }
            }
        } else {
            state.call(c"load_module", &given, 1)
        };
        if let Err(failure) = loaded {
            let is_stopped = !matches!(failure, Failure::Raised { .. } | Failure::Refused { .. });
            errors.push(load_error(source, failure.load_message()));
            if is_stopped {
                state.call(c"abandon", &[], 0).map_err(as_runtime_error)?;
            }
        }
    }
    let procedures = take_declared(state, &mut errors)?;
    errors.sort_by(|a, b| a.path.cmp(&b.path));
    Ok((procedures, errors))
}

/// What the loaded files have declared, each name and route once.
fn take_declared(
    state: &mut RubyState,
    errors: &mut Vec<LoadError>,
) -> Result<Vec<Procedure>, RuntimeError> {
    let failed: HashSet<PathBuf> = errors.iter().map(|error| error.path.clone()).collect();
    let mut listing = Listing::default();
    let mut kept = Vec::new();
    for (place, procedure) in std::mem::take(&mut state.context().declared).into_iter().enumerate()
    {
        if failed.contains(&procedure.path) {
            continue;
        }
        match listing.add(procedure) {
            Ok(()) => kept.push(items::integer(place as i64)),
            Err(error) => errors.push(error),
        }
    }
    kept.insert(0, items::array(kept.len()));
    state.call(c"keep", &kept, 1).map_err(as_runtime_error)?;
    Ok(listing.into_procedures())
}

fn as_runtime_error(failure: Failure) -> RuntimeError {
    cannot_start(&failure.load_message())
}

/// Splits file and line off the front of a message.
fn load_error(source: &Source, message: String) -> LoadError {
    let path = source.path.display().to_string();
    let rest = message.strip_prefix(&path).and_then(|rest| rest.strip_prefix(':'));
    let place = rest.and_then(|rest| {
        let (line, text) = rest.split_once(": ")?;
        Some((line.parse().ok()?, text.to_owned()))
    });
    match place {
        Some((line, text)) => LoadError { line: Some(line), ..LoadError::of_file(source, text) },
        None => LoadError::of_file(source, message),
    }
}

/// The operations that files use while being loaded.
pub(crate) fn run(
    context: &mut Context,
    operation: Operation,
    arguments: &[Argument<'_>],
) -> Result<(), Fault> {
    let module = arguments[0].text("the name of a file")?;
    let found = context.sources.of(EXTENSION).find(|s| s.module.as_bytes() == &*module);
    let Some(source) = found else {
        context.answer.push(items::array(0));
        return Ok(());
    };
    if operation == Operation::Add {
        if context.read().is_ok() {
            return Err(Fault::refused("procedures are declared while their file is loaded"));
        }
        let procedure = declared(source, arguments)?;
        context.declared.push(procedure);
        return Ok(());
    }
    // Without a byte order mark, which some editors add.
    let text = source.text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&source.text);
    context.scratch = [text, source.path.as_os_str().as_encoded_bytes()].concat();
    let (text, path) = context.scratch.split_at(text.len());
    let answer = [items::array(2), items::bytes(text), items::bytes(path)];
    context.answer.extend(answer);
    Ok(())
}

/// A procedure as a file declares it: the module, its name in it, its mode, the method and pattern
/// of its route, and the line.
fn declared(source: &Source, arguments: &[Argument<'_>]) -> Result<Procedure, Fault> {
    let text = |place: usize| {
        let text = arguments[place].text("a name")?;
        String::from_utf8(text.into_owned()).map_err(|_| Fault::refused("a name is UTF-8"))
    };
    let route = match arguments[3] {
        Argument::Nil => None,
        _ => Some(Route { method: text(3)?, pattern: checked_pattern(text(4)?)? }),
    };
    Ok(Procedure {
        name: format!("{}.{}", source.module, text(1)?),
        mode: if arguments[2].text("a mode")?.as_ref() == b"write" {
            Mode::Write
        } else {
            Mode::Read
        },
        route,
        hook: None,
        path: source.path.clone(),
        line: arguments[5]
            .integer("a line")
            .ok()
            .and_then(|line| line.try_into().ok())
            .unwrap_or(0),
        is_of_worker: false,
    })
}

fn checked_pattern(pattern: String) -> Result<String, Fault> {
    let wrong = |why: &str| Err(Fault::Refused(format!("the route {pattern:?} {why}")));
    if !pattern.starts_with('/') || pattern.contains(|c: char| c.is_whitespace() || c.is_control())
    {
        return wrong("is no path, as \"/hits/:page\"");
    }
    let mut segments = pattern[1..].split('/').peekable();
    while let Some(segment) = segments.next() {
        if segment == ":" || segment == "*" {
            return wrong("has a parameter without a name; it needs one, as in /hits/:page");
        }
        if segment.starts_with('*') && segments.peek().is_some() {
            return wrong("has something behind the parameter that takes the rest of the path");
        }
    }
    Ok(pattern)
}
