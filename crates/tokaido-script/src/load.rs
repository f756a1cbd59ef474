//! Loads procedure files into a Lua state, and lists what they export.

use mlua::{Function, Table, chunk::ChunkMode};

use crate::{
    Dialect, Globals, Hook, Listing, LoadError, Mode, Procedure, Route, RuntimeError, Source,
    Sources, state::LuaState, vm::cannot_start,
};

/// How the names of Lua files end.
pub(crate) const EXTENSION: &str = "lua";

/// Names of modules that belong to the product.
const RESERVED: [&str; 2] = ["tokaido", "bit"];

/// The files of a dialect.
pub(crate) fn of_dialect<'s>(
    sources: &'s Sources,
    dialect: &'static Dialect,
) -> impl Iterator<Item = &'s Source> {
    sources.of(EXTENSION).filter(|source| source.dialect_name() == dialect.name)
}

/// Loads every file of the state's dialect; those with errors are left out and reported.
pub(crate) fn load(
    state: &mut LuaState,
    sources: &Sources,
) -> Result<(Vec<Procedure>, Vec<LoadError>), RuntimeError> {
    load_all(state, sources).map_err(|error| cannot_start(&error))
}

fn load_all(
    state: &mut LuaState,
    sources: &Sources,
) -> mlua::Result<(Vec<Procedure>, Vec<LoadError>)> {
    let mut errors = Vec::new();
    let dialect = state.dialect();
    for source in of_dialect(sources, dialect) {
        if let Err(error) = define(state, source)? {
            errors.push(error);
        }
    }
    let mut listing = Listing::default();
    for source in of_dialect(sources, dialect) {
        if errors.iter().any(|error| error.path == source.path) {
            continue;
        }
        match run(state, source)? {
            Some(error) => errors.push(error),
            None => add_exports(&mut listing, state, source, &mut errors)?,
        }
    }
    errors.sort_by(|a, b| a.path.cmp(&b.path));
    Ok((listing.into_procedures(), errors))
}

fn loader(state: &LuaState) -> mlua::Result<Table> {
    state.core().get("loader")
}

/// Compiles a file and makes it known to `require`.
fn define(state: &LuaState, source: &Source) -> mlua::Result<Result<(), LoadError>> {
    let path = source.path.display().to_string();
    let first = source.module.split('.').next().unwrap_or_default();
    let said = source.all_settings(state.dialect().settings);
    let compiled = if RESERVED.contains(&first) {
        Err(format!("the name {first} is tokaido's own; give the file another one"))
    } else {
        compile(state, source, &path)?
    };
    match compiled.and_then(|chunk| Ok((chunk, said?))) {
        Ok((chunk, said)) => {
            let define: Function = loader(state)?.get("define")?;
            let settings = state.lua().create_table()?;
            for (name, value) in said {
                settings.set(name, value)?;
            }
            define.call::<()>((source.module.as_str(), path, chunk, settings))?;
            Ok(Ok(()))
        }
        Err(message) => {
            let define: Function = loader(state)?.get("define_broken")?;
            define.call::<()>((source.module.as_str(), path, message.as_str()))?;
            Ok(Err(LoadError::of_message(source, &message)))
        }
    }
}

fn compile(
    state: &LuaState,
    source: &Source,
    path: &str,
) -> mlua::Result<Result<Function, String>> {
    let sandbox: Table = state.core().get("sandbox")?;
    let environment: Table = sandbox
        .get::<Function>("environment")?
        .call(state.dialect().globals == Globals::Refused)?;
    let text = source_text(&source.text);
    let chunk = state
        .lua()
        .load(&text[..])
        .set_name(format!("@{path}"))
        .set_mode(ChunkMode::Text)
        .set_environment(environment);
    Ok(match chunk.into_function() {
        Ok(function) => Ok(function),
        Err(mlua::Error::SyntaxError { message, .. }) => Err(message),
        Err(error) => Err(error.to_string()),
    })
}

/// Source text without a byte order mark; a `#!` line is commented out, to keep line numbers.
pub(crate) fn source_text(text: &[u8]) -> Vec<u8> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let comment: &[u8] = if text.starts_with(b"#!") { b"--" } else { b"" };
    [comment, text].concat()
}

/// Runs a file, unless another file that requires it already has.
fn run(state: &mut LuaState, source: &Source) -> mlua::Result<Option<LoadError>> {
    let (failure, stopped) = state.timed(|_, core| {
        let load: Function = core.get::<Table>("loader")?.get("load")?;
        load.call::<Option<Table>>(source.module.as_str())
    });
    let message = match failure {
        Ok(None) => return Ok(None),
        Ok(Some(failure)) => failure.get::<String>("message")?,
        Err(_) if stopped => "loading it took longer than the time limit".to_owned(),
        Err(error) => error.to_string(),
    };
    let abandon: Function = loader(state)?.get("abandon")?;
    abandon.call::<()>(message.as_str())?;
    Ok(Some(LoadError::of_message(source, &message)))
}

/// Adds what a file exports to the listing.
fn add_exports(
    listing: &mut Listing,
    state: &LuaState,
    source: &Source,
    errors: &mut Vec<LoadError>,
) -> mlua::Result<()> {
    let exports: Function = loader(state)?.get("exports")?;
    let runs: Table = state.core().get("runs")?;
    for export in exports.call::<Table>(source.module.as_str())?.sequence_values::<Table>() {
        let export = export?;
        match listing.add(procedure(source, &export)?) {
            Ok(()) => runs.push(export.get::<Function>("run")?)?,
            Err(error) => errors.push(error),
        }
    }
    Ok(())
}

fn procedure(source: &Source, export: &Table) -> mlua::Result<Procedure> {
    let mode = match export.get::<String>("mode")?.as_str() {
        "read" => Mode::Read,
        _ => Mode::Write,
    };
    let route = match export.get::<Option<String>>("method")? {
        Some(method) => Some(Route { method, pattern: export.get("pattern")? }),
        None => None,
    };
    Ok(Procedure {
        name: match export.get::<Option<String>>("name")? {
            Some(name) => name,
            None => format!("{}.{}", source.module, export.get::<String>("field")?),
        },
        mode,
        route,
        hook: match export.get::<Option<String>>("hook")?.as_deref() {
            Some("begin") => Some(Hook::Begin),
            Some("end") => Some(Hook::End),
            _ => None,
        },
        path: source.path.clone(),
        // A function of a library, which may be a procedure as well, has no line: it gives -1.
        line: export.get::<i64>("line")?.try_into().unwrap_or(0),
        is_of_worker: export.get::<Option<bool>>("is_of_worker")?.unwrap_or(false),
    })
}
