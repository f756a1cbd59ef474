//! Loads procedure files into an engine, and lists what they export.

use std::collections::HashSet;

use mlua::{Function, Table, chunk::ChunkMode};

use crate::{LoadError, Mode, Procedure, Route, Source, Sources, VmError, engine::Engine};

/// Names of modules that are the product's own.
const RESERVED: [&str; 2] = ["tokaido", "bit"];

/// Loads every file; those with errors are left out and reported.
pub(crate) fn load(
    engine: &mut Engine,
    sources: &Sources,
) -> Result<(Vec<Procedure>, Vec<LoadError>), VmError> {
    load_all(engine, sources).map_err(|error| VmError(error.to_string()))
}

fn load_all(
    engine: &mut Engine,
    sources: &Sources,
) -> mlua::Result<(Vec<Procedure>, Vec<LoadError>)> {
    let mut errors = Vec::new();
    for source in sources.files() {
        if let Err(error) = define(engine, source)? {
            errors.push(error);
        }
    }
    let mut listing = Listing::default();
    for source in sources.files() {
        if errors.iter().any(|error| error.path == source.path) {
            continue;
        }
        match run(engine, source)? {
            Some(error) => errors.push(error),
            None => listing.add_exports(engine, source, &mut errors)?,
        }
    }
    errors.sort_by(|a, b| a.path.cmp(&b.path));
    Ok((listing.procedures, errors))
}

fn loader(engine: &Engine) -> mlua::Result<Table> {
    engine.core().get("loader")
}

/// Compiles a file and makes it known to `require`.
fn define(engine: &Engine, source: &Source) -> mlua::Result<Result<(), LoadError>> {
    let path = source.path.display().to_string();
    let first = source.module.split('.').next().unwrap_or_default();
    let compiled = if RESERVED.contains(&first) {
        Err(format!("the name {first} is tokaido's own; give the file another one"))
    } else {
        compile(engine, source, &path)?
    };
    match compiled {
        Ok(chunk) => {
            let define: Function = loader(engine)?.get("define")?;
            define.call::<()>((source.module.as_str(), path, chunk))?;
            Ok(Ok(()))
        }
        Err(message) => {
            let define: Function = loader(engine)?.get("define_broken")?;
            define.call::<()>((source.module.as_str(), path, message.as_str()))?;
            Ok(Err(LoadError::of_message(source, &message)))
        }
    }
}

fn compile(engine: &Engine, source: &Source, path: &str) -> mlua::Result<Result<Function, String>> {
    let sandbox: Table = engine.core().get("sandbox")?;
    let environment: Table = sandbox.get::<Function>("environment")?.call(true)?;
    let text = source_text(&source.text);
    let chunk = engine
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

/// Source text without what editors and shells put before it; the lines keep their numbers.
pub(crate) fn source_text(text: &[u8]) -> Vec<u8> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let comment: &[u8] = if text.starts_with(b"#!") { b"--" } else { b"" };
    [comment, text].concat()
}

/// Runs a file, unless another that requires it has.
fn run(engine: &mut Engine, source: &Source) -> mlua::Result<Option<LoadError>> {
    let (failure, stopped) = engine.timed(|_, core| {
        let load: Function = core.get::<Table>("loader")?.get("load")?;
        load.call::<Option<Table>>(source.module.as_str())
    });
    let message = match failure {
        Ok(None) => return Ok(None),
        Ok(Some(failure)) => failure.get::<String>("message")?,
        Err(_) if stopped => "loading it took longer than the time limit".to_owned(),
        Err(error) => error.to_string(),
    };
    let abandon: Function = loader(engine)?.get("abandon")?;
    abandon.call::<()>(message.as_str())?;
    Ok(Some(LoadError::of_message(source, &message)))
}

/// The procedures found so far.
#[derive(Default)]
struct Listing {
    procedures: Vec<Procedure>,
    /// Methods and patterns without the names of parameters: what may be taken only once.
    routes: HashSet<(String, String)>,
}

impl Listing {
    fn add_exports(
        &mut self,
        engine: &Engine,
        source: &Source,
        errors: &mut Vec<LoadError>,
    ) -> mlua::Result<()> {
        let exports: Function = loader(engine)?.get("exports")?;
        let runs: Table = engine.core().get("runs")?;
        for export in exports.call::<Table>(source.module.as_str())?.sequence_values::<Table>() {
            let export = export?;
            let procedure = procedure(source, &export)?;
            if let Some(route) = &procedure.route
                && !self.routes.insert((route.method.clone(), shape(&route.pattern)))
            {
                errors.push(LoadError {
                    path: source.path.clone(),
                    line: Some(procedure.line),
                    message: format!("{} {} is taken already", route.method, route.pattern),
                });
                continue;
            }
            runs.push(export.get::<Function>("run")?)?;
            self.procedures.push(procedure);
        }
        Ok(())
    }
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
        name: format!("{}.{}", source.module, export.get::<String>("field")?),
        mode,
        route,
        path: source.path.clone(),
        line: export.get("line")?,
    })
}

fn shape(pattern: &str) -> String {
    let segment = |segment: &str| match segment.as_bytes().first() {
        Some(b':') => ":".to_owned(),
        Some(b'*') => "*".to_owned(),
        _ => segment.to_owned(),
    };
    pattern.split('/').map(segment).collect::<Vec<_>>().join("/")
}
