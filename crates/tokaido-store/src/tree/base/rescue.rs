//! Reading on after LMDB has given its environment up.
//!
//! When a meta page cannot be written, LMDB refuses every further transaction of that environment,
//! those that read as well. What was committed before is untouched, so it is opened once more, for
//! reading alone. The checkpoint, which is the one that writes, gives up for good.

use std::{
    path::{Path, PathBuf},
    sync::Mutex,
};

use tokaido_lmdb::{Access, Environment, EnvironmentOptions, LmdbError, ReadTxn};

use crate::mutex::lock;

use super::{format, handle::Base};

/// What a base is opened from again.
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
    /// Begins a read transaction of what is committed now.
    pub(super) fn read(&self) -> Result<ReadTxn, LmdbError> {
        match self.environment.read() {
            Err(error) if error.is_given_up() => self.read_again(error),
            read => read,
        }
    }

    /// Whether nothing can be written to it until it is opened anew.
    pub(in crate::tree) fn is_given_up(&self) -> bool {
        self.environment.read().is_err_and(LmdbError::is_given_up)
    }

    /// As [`read`](Self::read), after LMDB has failed with `error`.
    fn read_again(&self, error: LmdbError) -> Result<ReadTxn, LmdbError> {
        let Rescue { directory, options, environment } = &self.rescue;
        let mut environment = lock(environment);
        if environment.is_none() {
            let slots = self.slots();
            let names: Vec<String> = std::iter::once(format::BASE.to_owned())
                .chain((0..slots.len()).map(format::slot_name))
                .collect();
            // SAFETY: the one that was given up writes no more, and its lock, as the store's, keeps
            // everybody else from writing.
            let mut opened = unsafe { Environment::open(directory, options, Access::ReadStill)? };
            let handles = opened.open_databases(&names)?;
            // They are numbered in the order in which they are opened, here as there.
            if handles[0] != self.directory || handles[1..] != slots {
                return Err(error);
            }
            *environment = Some(opened);
        }
        environment.as_ref().map_or(Err(error), Environment::read)
    }
}
