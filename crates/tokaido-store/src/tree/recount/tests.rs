//! Estimates: how close they are, and when they become exact again.

use std::{collections::BTreeMap, path::Path};

use crate::{
    DatabaseId, DatabaseStatistics, NewRecord, Store, WriteTransaction, transact,
    tree::{self, Options, SyncMode, TreeStore, checkpointer::Checkpointer},
};

/// A store with a large tree, and what it holds: numbers of keys, and lengths of values.
struct Large {
    store: TreeStore,
    main: DatabaseId,
    model: BTreeMap<u32, usize>,
}

fn options() -> Options {
    Options {
        sync: SyncMode::Os,
        size_max: 1 << 30,
        runs_from_bytes: 1,
        runs_bytes_min: u64::MAX,
        estimated_from_records: 1000,
        ..Options::default()
    }
}

/// Options for a store that does not fit into memory.
fn without_memory() -> Options {
    Options { memory_bytes: Some(1), ..options() }
}

impl Large {
    /// A store of 50,000 records in the base.
    fn new(directory: &Path, options: Options) -> Self {
        let store = tree::open(directory, options).unwrap();
        let main = store.database("main").unwrap();
        let mut large = Self { store, main, model: BTreeMap::new() };
        large.put((0..50_000).map(|n| 2 * n));
        large.store.checkpoint().unwrap();
        large
    }

    fn put(&mut self, keys: impl Iterator<Item = u32>) {
        self.write(keys, |tx, main, key, len| {
            let value = [0; 100];
            tx.put(main, &key.to_be_bytes(), NewRecord::of(&value[..len])).unwrap();
            true
        });
    }

    fn delete(&mut self, keys: impl Iterator<Item = u32>) {
        self.write(keys, |tx, main, key, _| {
            tx.delete(main, &key.to_be_bytes()).unwrap();
            false
        });
    }

    fn write(
        &mut self,
        keys: impl Iterator<Item = u32>,
        write: fn(&mut dyn WriteTransaction, DatabaseId, u32, usize) -> bool,
    ) {
        let keys: Vec<u32> = keys.collect();
        let mut writer = self.store.writer().unwrap();
        let (main, model) = (self.main, &mut self.model);
        transact(&mut *writer, |tx| {
            for key in keys.iter().copied() {
                let len = key as usize * 7 % 100;
                match write(tx, main, key, len) {
                    true => model.insert(key, len),
                    false => model.remove(&key),
                };
            }
            Ok::<_, crate::WriteError>(())
        })
        .unwrap();
    }

    fn exact(&self) -> DatabaseStatistics {
        let mut sum = DatabaseStatistics::default();
        self.model.values().for_each(|len| sum.add(DatabaseStatistics::of_record(4, *len)));
        sum
    }

    /// What a reader is told.
    fn told(&self) -> DatabaseStatistics {
        self.store.snapshot().unwrap().statistics(self.main).unwrap()
    }

    /// Asserts that a reader is told about what there is.
    fn assert_close(&self) {
        let (told, exact) = (self.told(), self.exact());
        let is_close = |told: u64, exact: u64| told.abs_diff(exact) <= exact / 20;
        assert!(
            is_close(told.records, exact.records)
                && is_close(told.key_bytes, exact.key_bytes)
                && is_close(told.value_bytes, exact.value_bytes),
            "{told:?} instead of {exact:?}"
        );
    }

    fn has_estimates(&self) -> bool {
        self.store.shared.visible.has_estimates()
    }
}

#[test]
fn readers_estimate_what_was_written_since_the_last_checkpoint() {
    let directory = tempfile::tempdir().unwrap();
    let mut large = Large::new(directory.path(), options());
    assert_eq!(large.told(), large.exact());
    large.put(40_000..70_000);
    large.delete((0..30_000).map(|n| 3 * n));
    large.assert_close();
    assert_ne!(large.told(), large.exact(), "nothing was estimated");
    let mut snapshot = large.store.snapshot().unwrap();
    assert_eq!(snapshot.exact_statistics(large.main).unwrap(), large.exact());
    let mut writer = large.store.writer().unwrap();
    let in_transaction = writer.begin().unwrap().statistics(large.main).unwrap();
    assert_eq!(in_transaction, large.exact());
    drop((writer, snapshot));
    large.store.checkpoint().unwrap();
    assert!(!large.has_estimates());
    assert_eq!(large.told(), large.exact());
}

#[test]
fn runs_of_a_store_larger_than_memory_are_estimated_until_they_are_counted() {
    let directory = tempfile::tempdir().unwrap();
    let mut large = Large::new(directory.path(), without_memory());
    for run in 0..5 {
        large.put((20_000 * run..20_000 * (run + 1)).map(|n| n * 7_773 % 200_000));
        large.delete((0..5_000).map(|n| n * 31 * (run + 1)));
        large.assert_close();
        large.store.checkpoint().unwrap();
        large.assert_close();
    }
    assert!(large.has_estimates());
    // They survive a restart, and a check knows that they are estimates.
    let Large { store, main, model } = large;
    drop(store);
    let report = tree::check(directory.path()).unwrap();
    assert!(report.is_sound(), "{:?}", report.findings);
    let store = tree::open(directory.path(), without_memory()).unwrap();
    let mut large = Large { store, main, model };
    assert!(large.has_estimates());
    large.assert_close();
    assert!(Checkpointer::new(&large.store.shared).recount().unwrap());
    assert!(!large.has_estimates());
    assert_eq!(large.told(), large.exact());
    // New estimates come on top.
    large.put((0..20_000).map(|n| n * 5));
    large.store.checkpoint().unwrap();
    assert!(large.has_estimates());
    large.assert_close();
}

#[test]
fn runs_of_a_store_that_is_written_to_fast_are_estimated() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options { memtable_bytes: 1 << 20, ..options() };
    let mut large = Large::new(directory.path(), options);
    // So few runs are not joined, and the checkpointer is idle when they are counted.
    for part in 0..5 {
        large.put((40_000 * part..40_000 * (part + 1)).map(|n| n * 7_773 % 200_000));
        large.assert_close();
    }
    large.store.checkpoint().unwrap();
    assert!(large.has_estimates());
    assert!(Checkpointer::new(&large.store.shared).recount().unwrap());
    assert_eq!(large.told(), large.exact());
    large.put(100_000..120_000);
    large.store.checkpoint().unwrap();
    assert!(!large.has_estimates(), "somebody asked for a checkpoint and had the time");
    assert_eq!(large.told(), large.exact());
}

#[test]
fn a_merge_makes_totals_exact() {
    let directory = tempfile::tempdir().unwrap();
    let mut large = Large::new(directory.path(), without_memory());
    large.put((0..40_000).map(|n| n * 3));
    large.store.checkpoint().unwrap();
    assert!(large.has_estimates());
    large.store.merge_runs().unwrap();
    assert!(!large.has_estimates());
    assert_eq!(large.told(), large.exact());
    drop(large.store);
    let report = tree::check(directory.path()).unwrap();
    assert!(report.is_sound() && report.runs.runs == 0, "{:?}", report.findings);
}

#[test]
fn small_trees_are_exact_however_little_memory_there_is() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options { estimated_from_records: 1_000_000, ..without_memory() };
    let mut large = Large::new(directory.path(), options);
    large.put((0..40_000).map(|n| n * 3));
    assert_eq!(large.told(), large.exact());
    large.store.checkpoint().unwrap();
    assert!(!large.has_estimates());
    assert_eq!(large.told(), large.exact());
}
