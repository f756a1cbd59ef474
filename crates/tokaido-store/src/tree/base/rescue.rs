//! Continuing to read after LMDB has given up its environment.
//!
//! When a meta page cannot be written, LMDB refuses every further transaction of that environment,
//! including reads. What was committed before is untouched, so the file is opened once more,
//! read-only. Checkpoints, which write, are given up for good.

use std::{
    path::{Path, PathBuf},
    sync::Mutex,
};

use tokaido_lmdb::{Access, Environment, EnvironmentOptions, LmdbError, ReadTxn};

use crate::mutex::lock;

use super::{format, handle::Base};

/// What is needed to open the base again.
pub(super) struct Rescue {
    directory: PathBuf,
    options: EnvironmentOptions,
    environment: Mutex<Option<Environment>>,
}

impl Rescue {
    pub(super) fn new(directory: PathBuf, options: EnvironmentOptions) -> Self {
        Self { directory, options, environment: Mutex::new(None) }
    }

    /// The directory of the base.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }
}

impl Base {
    /// Begins a read transaction on the last commit.
    pub(super) fn read(&self) -> Result<ReadTxn, LmdbError> {
        match self.environment.read() {
            Err(error) if error.is_given_up() => self.read_again(error),
            read => read,
        }
    }

    /// Whether nothing can be written to the base until it is opened again.
    pub(in crate::tree) fn is_given_up(&self) -> bool {
        self.environment.read().is_err_and(LmdbError::is_given_up)
    }

    /// Like [`read`](Self::read), after LMDB has failed with `error`.
    fn read_again(&self, error: LmdbError) -> Result<ReadTxn, LmdbError> {
        let Rescue { directory, options, environment } = &self.rescue;
        let mut environment = lock(environment);
        if environment.is_none() {
            let slots = self.slots();
            let names: Vec<String> = std::iter::once(format::BASE.to_owned())
                .chain((0..slots.len()).map(format::slot_name))
                .collect();
            // SAFETY: the environment that was given up writes no more, and its lock, like the
            // store's, keeps everybody else from writing.
            let mut opened = unsafe { Environment::open(directory, options, Access::ReadStill)? };
            let handles = opened.open_databases(&names)?;
            // They are numbered in the order of opening, here as in the first environment.
            if handles[0] != self.directory || handles[1..] != slots {
                return Err(error);
            }
            *environment = Some(opened);
        }
        environment.as_ref().map_or(Err(error), Environment::read)
    }
}
