//! Checks on a store that must hold for arbitrary bytes in its files.

use std::{fs, ops::Bound, path::Path, sync::Arc, sync::OnceLock};

use tempfile::TempDir;

use crate::{Direction, NewRecord, OpenError, Store};

use super::{
    Options, TreeStore,
    base::DATA_FILE,
    log::fuzzing::{Memory, log_of},
    open,
};

pub use super::{
    base::fuzzing::check_base,
    log::fuzzing::{check_log, valid_sums},
    runs::fuzzing::check_run,
};

/// The file of an empty base, and the number of its store.
struct Empty {
    base: Vec<u8>,
    store: u64,
}

fn directory() -> TempDir {
    let made = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
    made.expect("a place for files")
}

fn open_with(
    directory: &Path,
    log: &Memory,
    memtable_bytes: usize,
) -> Result<TreeStore, OpenError> {
    let log = Some(Arc::new(log.clone()) as _);
    let options = Options { log, memtable_bytes, size_max: 1 << 28, ..Options::default() };
    open(directory, Options { checkpoint_pages: 1, ..options })
}

fn empty() -> &'static Empty {
    static EMPTY: OnceLock<Empty> = OnceLock::new();
    EMPTY.get_or_init(|| {
        let (directory, log) = (directory(), Memory::default());
        let store = open_with(directory.path(), &log, usize::MAX).expect("a new store");
        let number = store.shared.base.store;
        drop(store);
        let base = fs::read(directory.path().join(DATA_FILE)).expect("a base");
        Empty { base, store: number }
    })
}

/// Takes any bytes as the first segment's frames: the store is refused or can be used.
pub fn check_store(bytes: &[u8]) {
    let Empty { base, store } = empty();
    let directory = directory();
    fs::write(directory.path().join(DATA_FILE), base).expect("room for a base");
    let log = log_of(*store, &valid_sums(bytes));
    let store = match open_with(directory.path(), &log, usize::MAX) {
        Ok(store) => store,
        Err(OpenError::Damaged { .. }) => return,
        Err(error) => panic!("{error}"),
    };
    read(&store);
    write(&store);
    drop(store);
    // With a checkpoint for each group, so that everything goes into the base.
    let store = open_with(directory.path(), &log, 0).expect("it was just written");
    read(&store);
    for _ in 0..3 {
        write(&store);
    }
    drop(store);
    let store = open_with(directory.path(), &log, usize::MAX).expect("it was just written");
    read(&store);
    let main = store.database("main").expect("there is room");
    let mut snapshot = store.snapshot().expect("there is room");
    let found = snapshot.get(main, b"key").expect("it was written");
    assert_eq!(found.map(|record| record.value.to_vec()), Some(b"value".to_vec()));
}

/// Reads all records of all databases, and compares their number with the statistics.
fn read(store: &TreeStore) {
    let mut snapshot = store.snapshot().expect("there is room");
    for (database, _) in store.databases() {
        let statistics = snapshot.statistics(database).expect("records that can be read");
        let (mut count, mut from) = (0, Bound::Unbounded);
        while let Some(entry) = snapshot
            .seek(database, from.as_ref().map(Vec::as_slice), Direction::Forward)
            .expect("records that can be read")
        {
            count += 1;
            from = Bound::Excluded(entry.key.to_vec());
        }
        // Expired records are counted until they are removed.
        assert!(count <= statistics.records, "more records than are counted");
    }
}

fn write(store: &TreeStore) {
    // All names may be taken, though hardly by chance.
    let main = store.database("main").expect("there is room");
    let mut writer = store.writer().expect("there is none yet");
    writer.reclaim(1000).expect("an index that can be read");
    let transaction = writer.begin().expect("nothing has failed");
    transaction.put(main, b"key", NewRecord::of(b"value")).expect("a small record");
    writer.commit().expect("a small transaction");
    writer.flush().expect("memory does not fail");
}
