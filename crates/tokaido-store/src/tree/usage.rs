//! The room that a store takes, in memory and on disk.

use std::{fs, path::Path};

use crate::Usage;

use super::{base::DATA_FILE, log::LOG_DIRECTORY, runs::RUNS_DIRECTORY, shared::Shared};

pub(super) fn usage(shared: &Shared) -> Usage {
    let tables = shared.visible.tables();
    let memtable_bytes = tables.memtables().map(|table| table.bytes() as u64).sum();
    let all_bytes = shared.visible.held_bytes();
    Usage {
        memtable_bytes,
        // A table may have grown since it was counted.
        held_bytes: all_bytes.saturating_sub(memtable_bytes),
        log_bytes: bytes_in(&shared.durable.directory.join(LOG_DIRECTORY)),
        base_bytes: fs::metadata(shared.durable.directory.join(DATA_FILE))
            .map_or(0, |file| file.len()),
        runs_bytes: bytes_in(&shared.durable.directory.join(RUNS_DIRECTORY)),
    }
}

/// The bytes of the files in a directory. A file that has just been removed counts as zero.
fn bytes_in(directory: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(directory) else { return 0 };
    entries.flatten().filter_map(|entry| entry.metadata().ok()).map(|file| file.len()).sum()
}
