//! Opening stores, many times over and in memory.

use std::{path::Path, time::Duration};

use tokaido_store::{
    OpenError,
    tree::{self, TreeStore},
};

#[path = "../common/directory.rs"]
mod directory;

pub(crate) use directory::fast_directory;

/// Opens a store. A child that another test is about to start has, for a moment, all files of
/// this process open, and with them the locks of stores that were closed since.
pub(crate) fn open(directory: &Path, options: &tree::Options) -> Result<TreeStore, OpenError> {
    const ATTEMPTS_MAX: usize = 1000;
    for _ in 0..ATTEMPTS_MAX {
        match tree::open(directory, options.clone()) {
            Err(OpenError::Locked { .. }) => std::thread::sleep(Duration::from_millis(5)),
            opened => return opened,
        }
    }
    tree::open(directory, options.clone())
}
