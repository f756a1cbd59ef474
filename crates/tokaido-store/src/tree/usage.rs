//! What a store occupies, in memory and on disk.

use std::{
    fs,
    path::Path,
    sync::{Arc, Weak},
};

use crate::Usage;

use super::{
    base::DATA_FILE,
    log::LOG_DIRECTORY,
    memtable::Memtable,
    shared::{Shared, lock},
};

/// All memtables that somebody still holds.
pub(super) struct Memtables {
    made: Vec<Weak<Memtable>>,
}

impl Memtables {
    pub(super) fn new(first: &Arc<Memtable>) -> Self {
        Self { made: vec![Arc::downgrade(first)] }
    }

    pub(super) fn add(&mut self, memtable: &Arc<Memtable>) {
        self.made.retain(|made| made.strong_count() > 0);
        self.made.push(Arc::downgrade(memtable));
    }

    fn bytes(&self) -> u64 {
        self.made.iter().filter_map(Weak::upgrade).map(|table| table.bytes() as u64).sum()
    }
}

pub(super) fn usage(shared: &Shared) -> Usage {
    let tables = shared.tables();
    let memtable_bytes = tables.each().map(|table| table.bytes() as u64).sum();
    let all_bytes = lock(&shared.memtables).bytes();
    Usage {
        memtable_bytes,
        // A table may have grown since it was counted.
        held_bytes: all_bytes.saturating_sub(memtable_bytes),
        log_bytes: bytes_in(&shared.directory.join(LOG_DIRECTORY)),
        base_bytes: fs::metadata(shared.directory.join(DATA_FILE)).map_or(0, |file| file.len()),
    }
}

/// The bytes of the files in a directory. One that has just been removed counts for nothing.
fn bytes_in(directory: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(directory) else { return 0 };
    entries.flatten().filter_map(|entry| entry.metadata().ok()).map(|file| file.len()).sum()
}
