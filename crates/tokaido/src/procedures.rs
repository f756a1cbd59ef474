//! The procedures of a directory, in this process.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use tokaido_script::{Dialect, Limits, LoadError, Lua, Runtime, SourceLimits, Sources, Vm, start};
use tokaido_server::languages_beside_lua;
use tokaido_store::Store;

use crate::error::Error;

/// Starts a VM of any dialect for scripts, which may require the files. A file that does not load
/// is reported, and its error is returned; the others are available.
pub(crate) fn start_vm_of(
    dialect: &'static Dialect,
    store: &Arc<dyn Store>,
    directories: &[PathBuf],
    limits: Limits,
) -> Result<(Vm, Vec<LoadError>), Error> {
    let sources = read_all(directories, &["lua"])?;
    let (vm, failed) = Vm::of_dialect(dialect, store, &sources, limits)?;
    report(&failed);
    Ok((vm, failed))
}

/// Starts a VM for lines of the shell, which may require the files. Load errors are not reported
/// again, since the caller's own procedures have reported them.
pub(crate) fn start_lua_of_lines(
    store: &Arc<dyn Store>,
    directory: Option<&Path>,
) -> Result<Vm, Error> {
    let sources = read_if_any(directory, &["lua"])?;
    Ok(Vm::of_dialect(&Dialect::NATIVE, store, &sources, Limits::default())?.0)
}

/// The same for Ruby; `interrupt` stops it.
#[cfg(feature = "ruby")]
pub(crate) fn start_ruby_of_lines(
    store: &Arc<dyn Store>,
    directory: Option<&Path>,
    interrupt: tokaido_script::Interrupt,
) -> Result<tokaido_ruby::RubyVm, Error> {
    let sources = read_if_any(directory, &["rb"])?;
    Ok(tokaido_ruby::RubyVm::for_lines(store, &sources, interrupt)?)
}

/// Starts a Ruby VM for scripts, which may require the files.
#[cfg(feature = "ruby")]
pub(crate) fn start_ruby(
    store: &Arc<dyn Store>,
    directories: &[PathBuf],
    limits: Limits,
) -> Result<tokaido_ruby::RubyVm, Error> {
    let sources = read_all(directories, &["rb"])?;
    let (vm, failed) = tokaido_ruby::RubyVm::new(store, &sources, limits)?;
    report(&failed);
    Ok(vm)
}

/// Starts the procedures of every language and dialect. Load errors are reported in the same way.
pub(crate) fn start_all(
    store: &Arc<dyn Store>,
    directory: Option<&Path>,
) -> Result<(Box<dyn Runtime>, Vec<LoadError>), Error> {
    let languages = [vec![Arc::new(Lua::default()) as _], languages_beside_lua(None)].concat();
    let extensions: Vec<_> = languages.iter().map(|language| language.extension()).collect();
    let sources = read_if_any(directory, &extensions)?;
    let (runtime, failed) = start(&languages, store, &sources, Limits::default())?;
    report(&failed);
    Ok((runtime, failed))
}

/// The files of several directories; of two with the same name, the one in the first directory counts.
fn read_all(directories: &[PathBuf], extensions: &[&str]) -> Result<Sources, Error> {
    let mut all = Sources::default();
    for directory in directories.iter().rev() {
        let sources = read_if_any(Some(directory), extensions)?;
        sources.files().iter().for_each(|source| all.add(source.clone()));
    }
    Ok(all)
}

fn read_if_any(directory: Option<&Path>, extensions: &[&str]) -> Result<Sources, Error> {
    let Some(directory) = directory else { return Ok(Sources::default()) };
    Sources::read(directory, extensions, SourceLimits::default())
        .map_err(|source| Error::Io { what: "cannot read the procedures", source })
}

fn report(failed: &[LoadError]) {
    for error in failed {
        // If standard error is closed, calling a missing procedure reports it again.
        let _ = writeln!(io::stderr(), "tokaido: {error}");
    }
}
