//! The outcome of the last reading of the procedure files.

use tokaido_script::{LoadError, Sources};

use crate::{reload::ReloadError, shared::wall_clock_us};

/// One reading of the procedure files, whether or not it gave a program.
#[derive(Debug, Default)]
pub(crate) struct Loading {
    /// When, in ms since the epoch.
    pub(crate) at_ms: u64,
    /// Why the program from the files is not the one that serves.
    pub(crate) error: Option<String>,
    /// What cannot be loaded of the files.
    pub(crate) errors: Vec<LoadError>,
    /// The files, if they could be read.
    pub(crate) sources: Option<Sources>,
}

impl Loading {
    /// A reading that gave a program, perhaps without some of its files.
    pub(crate) fn done(sources: Option<Sources>, errors: Vec<LoadError>) -> Self {
        Self { at_ms: wall_clock_us() / 1000, error: None, errors, sources }
    }

    /// A reading after which the old program goes on serving.
    pub(crate) fn failed(sources: Option<Sources>, error: &ReloadError) -> Self {
        let errors = match error {
            ReloadError::Broken(errors) => errors.clone(),
            _ => Vec::new(),
        };
        Self { error: Some(error.to_string()), ..Self::done(sources, errors) }
    }

    /// What to tell the caller of a missing procedure, if its file did not load.
    pub(crate) fn why_missing(&self, name: &[u8]) -> Option<String> {
        LoadError::why_missing(&self.errors, str::from_utf8(name).ok()?)
    }

    /// What to tell the visitor of a path that nothing answers, if files whose routes are unknown
    /// did not load. Visitors are not told what is wrong with them.
    pub(crate) fn unknown_routes(&self) -> Option<String> {
        let whole = self.errors.iter().filter(|error| error.procedure.is_none());
        let mut modules: Vec<_> = whole.map(|error| error.module.as_str()).collect();
        modules.dedup();
        match modules[..] {
            [] => None,
            [module] => Some(format!("the procedure file of {module} did not load, see the log")),
            _ => Some(format!(
                "the procedure files of {} did not load, see the log",
                modules.join(", ")
            )),
        }
    }
}
