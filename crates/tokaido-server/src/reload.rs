//! Reload: the procedure files are read again, and the program is swapped as a whole.

use std::{
    fmt, io,
    sync::{Arc, PoisonError},
};

use tokaido_script::{LoadError, RuntimeError, Sources};

use crate::{config::Config, loading::Loading, program::Program, service::Service};

/// The program was not replaced: the old one goes on serving.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReloadError {
    /// There is nothing to read.
    #[error(
        "the server has no procedures; start it with the option procedures, a directory, or with scripts"
    )]
    NoDirectory,
    /// The files cannot be read.
    #[error(transparent)]
    Sources(#[from] SourcesError),
    /// Some file is broken.
    #[error("the program is as before, since not all of its files can be loaded:{}", Lines(.0))]
    Broken(Vec<LoadError>),
    /// A language cannot start.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
}

/// The procedure files cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the procedures: {source}; check the options procedures and scripts")]
pub struct SourcesError {
    /// The system's error, with the path that it concerns.
    pub source: io::Error,
}

/// The errors, each on its own line.
pub(crate) struct Lines<'e>(pub(crate) &'e [LoadError]);

impl fmt::Display for Lines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|error| write!(f, "\n{error}"))
    }
}

/// Reads the procedure files; `None` if none are configured.
pub(crate) fn read_sources(
    config: &Config,
    extensions: &[&str],
) -> Result<Option<Sources>, SourcesError> {
    let places = config.source_places();
    if places.is_empty() {
        return Ok(None);
    }
    let read = Sources::read_places(&places, extensions, config.source_limits());
    Ok(Some(read.map_err(|source| SourcesError { source })?))
}

impl Service {
    /// Replaces the program that serves by the one in the files. Takes as long as loading the files
    /// does; each thread then makes its own runtime before its next request.
    pub(crate) fn reload(&self) -> Result<Arc<Program>, ReloadError> {
        // One at a time, so that the files that were read last win.
        let _reloading = self.reloading.lock().unwrap_or_else(PoisonError::into_inner);
        self.load_again(self.read_sources())
    }

    /// Reloads if the files are not those that were read last, whatever the outcome was.
    pub(crate) fn reload_if_changed(&self) {
        let _reloading = self.reloading.lock().unwrap_or_else(PoisonError::into_inner);
        let read = self.read_sources();
        let last = self.shared.program.loading();
        let is_same = match (&read, &last.sources) {
            (Ok(sources), Some(last)) => sources.same_as(last),
            _ => false,
        };
        if !is_same {
            // Errors are logged.
            let _ = self.load_again(read);
        }
    }

    fn read_sources(&self) -> Result<Sources, ReloadError> {
        let sources = read_sources(&self.config, &self.loader.extensions())?;
        sources.ok_or(ReloadError::NoDirectory)
    }

    fn load_again(&self, read: Result<Sources, ReloadError>) -> Result<Arc<Program>, ReloadError> {
        let sources = read.as_ref().ok().cloned();
        let result = read.and_then(|sources| self.swap(sources));
        self.shared.program.set_loading(match &result {
            Ok(_) => Loading::done(sources, Vec::new()),
            Err(error) => Loading::failed(sources, error),
        });
        match &result {
            Ok(program) => {
                let (generation, procedures) = (program.generation(), program.procedures().len());
                tracing::info!(generation, procedures, "reloaded the procedures");
                self.tell_hidden_functions(program);
            }
            Err(error) => tracing::error!(%error, "cannot reload the procedures"),
        }
        result
    }

    /// Logs functions that clients have loaded and whose names procedures have, too: FCALL finds the procedures.
    fn tell_hidden_functions(&self, program: &Program) {
        let functions = &self.shared.functions;
        let libraries = self
            .shared
            .store()
            .snapshot()
            .map_err(Into::into)
            .and_then(|mut snapshot| functions.read(&mut *snapshot, &Arc::default()));
        match libraries {
            Ok(libraries) => {
                for name in libraries.hidden_by(program) {
                    tracing::error!(
                        name,
                        "a procedure hides the function that a client has loaded"
                    );
                }
            }
            Err(error) => tracing::error!(%error, "cannot compare procedures with functions"),
        }
    }

    fn swap(&self, sources: Sources) -> Result<Arc<Program>, ReloadError> {
        let (program, errors) = self.loader.load(sources)?;
        if errors.is_empty() {
            Ok(self.shared.program.replace(program))
        } else {
            Err(ReloadError::Broken(errors))
        }
    }
}
