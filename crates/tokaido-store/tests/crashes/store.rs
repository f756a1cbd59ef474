//! Opening stores, many times over and in memory.

use std::{path::Path, time::Duration};

use tokaido_store::{
    OpenError,
    tree::{self, CheckError, CheckReport, TreeStore},
};

#[path = "../common/directory.rs"]
mod directory;

pub(crate) use directory::fast_directory;

/// A child that another test is starting has all files of this process open for a moment, and
/// with them the locks of stores closed since. So attempts that meet a lock are repeated.
fn past_locks<T, E>(
    mut work: impl FnMut() -> Result<T, E>,
    is_locked: impl Fn(&E) -> bool,
) -> Result<T, E> {
    const ATTEMPTS_MAX: usize = 1000;
    for _ in 0..ATTEMPTS_MAX {
        match work() {
            Err(error) if is_locked(&error) => std::thread::sleep(Duration::from_millis(5)),
            done => return done,
        }
    }
    work()
}

/// Opens a store.
pub(crate) fn open(directory: &Path, options: &tree::Options) -> Result<TreeStore, OpenError> {
    let open = || tree::open(directory, options.clone());
    past_locks(open, |error| matches!(error, OpenError::Locked { .. }))
}

/// Checks a store.
pub(crate) fn check(directory: &Path) -> Result<CheckReport, CheckError> {
    past_locks(|| tree::check(directory), |error| matches!(error, CheckError::Held { .. }))
}
