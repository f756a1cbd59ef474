//! A Lua VM in this process with the procedures of a directory.

use std::{
    io::{self, Write},
    path::Path,
    sync::Arc,
};

use tokaido_script::{Limits, LoadError, SourceLimits, Sources, Vm};
use tokaido_store::Store;

use crate::error::Error;

/// Starts a VM. A file that does not load is reported, and what is wrong with it is given back; the
/// others are there.
pub(crate) fn start_vm(
    store: &Arc<dyn Store>,
    directory: Option<&Path>,
    limits: Limits,
) -> Result<(Vm, Vec<LoadError>), Error> {
    let sources = match directory {
        None => Sources::default(),
        Some(directory) => Sources::read(directory, &["lua"], SourceLimits::default())
            .map_err(|source| Error::Io { what: "cannot read the procedures", source })?,
    };
    let (vm, failed) = Vm::new(store, &sources, limits)?;
    for error in &failed {
        // With standard error gone, a call of what is missing says so again.
        let _ = writeln!(io::stderr(), "tokaido: {error}");
    }
    Ok((vm, failed))
}
