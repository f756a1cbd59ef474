//! What a writer does besides transactions: failures, and resting.

use std::{thread, time::Duration};

use crate::{
    GroupWriter, NewRecord, Store, WriteError, WriteTransaction, Writer, transact,
    transact_unflushed,
    tree::{
        self, Options, SyncMode, TreeStore, base::format::NO_TREE, catalog::EXPIRY_TREE, expiry,
        writer_state::WriterState,
    },
};

use super::{Instant, REST, TIDIED_BYTES_MIN, TreeWriter};

/// Not a valid record.
const NO_RECORD: [&[u8]; 2] = [b"\xff", b""];

impl WriterState {
    fn write(&mut self, tree: u32, key: &[u8], parts: [&[u8]; 2]) {
        self.memtable.write(tree, key, Some(parts), self.sequence, |_| {});
    }
}

/// Changes the writer's state, bypassing all checks.
fn tamper(store: &TreeStore, tamper: impl FnOnce(&mut WriterState)) {
    let mut state = store.shared.durable.take_writer_state().unwrap();
    tamper(&mut state);
    store.shared.durable.give_writer_state_back(state);
}

#[test]
fn a_checkpoint_after_which_nothing_is_written_says_so_to_who_asked_for_it() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options { size_max: 1 << 30, ..Options::default() };
    let store = tree::open(directory.path(), options).unwrap();
    let main = store.database("main").unwrap();
    let mut writer = store.writer().unwrap();
    transact(&mut *writer, |tx| tx.put(main, b"k", NewRecord::of(b"v"))).unwrap();
    drop(writer);
    tamper(&store, |state| state.write(EXPIRY_TREE, b"k", NO_RECORD));
    let error = store.checkpoint().unwrap_err();
    assert!(matches!(error, WriteError::Poisoned { .. }), "{error}");
}

#[test]
fn a_sweep_that_fails_fails_alone() {
    let directory = tempfile::tempdir().unwrap();
    let store = tree::open(directory.path(), Options::default()).unwrap();
    let main = store.database("main").unwrap();
    let put = |tx: &mut dyn WriteTransaction| tx.put(main, b"k", NewRecord::of(b"v"));
    transact(&mut *store.writer().unwrap(), put).unwrap();
    tamper(&store, |state| {
        let tree = state.trees.get(main).unwrap();
        state.write(tree, b"damaged", NO_RECORD);
        state.write(EXPIRY_TREE, &expiry::key(1, main, b"damaged"), NO_RECORD);
    });
    let mut writer = GroupWriter::new(store.writer().unwrap());
    transact_unflushed(&mut writer, |tx| tx.put(main, b"l", NewRecord::of(b"v"))).unwrap();
    let error = transact_unflushed(&mut writer, |tx| tx.reclaim(10)).unwrap_err();
    assert!(error.to_string().contains("damaged"), "{error}");
    writer.end_group().unwrap();
    assert!(store.snapshot().unwrap().get(main, b"l").unwrap().is_some());
}

#[test]
fn when_the_numbers_of_trees_are_used_up_nothing_is_cleared() {
    let directory = tempfile::tempdir().unwrap();
    let store = tree::open(directory.path(), Options::default()).unwrap();
    let main = store.database("main").unwrap();
    let mut writer = store.writer().unwrap();
    transact(&mut *writer, |tx| tx.put(main, b"k", NewRecord::of(b"v"))).unwrap();
    drop(writer);
    tamper(&store, |state| state.next_tree = NO_TREE - 1);
    let mut writer = store.writer().unwrap();
    transact(&mut *writer, |tx| tx.clear(main)).unwrap();
    transact(&mut *writer, |tx| tx.put(main, b"k", NewRecord::of(b"v"))).unwrap();
    let error = transact(&mut *writer, |tx| tx.clear(main)).unwrap_err();
    assert!(error.to_string().contains("open the store again"), "{error}");
    assert!(store.snapshot().unwrap().get(main, b"k").unwrap().is_some());
}

#[test]
fn what_was_written_goes_into_the_base_once_the_writer_rests() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options { sync: SyncMode::Os, size_max: 1 << 30, ..Options::default() };
    let store = tree::open(directory.path(), options).unwrap();
    let main = store.database("main").unwrap();
    let mut writer = TreeWriter::take(&store.shared).unwrap();
    let bytes = || store.shared.visible.tables().active.bytes();
    let put = |tx: &mut dyn WriteTransaction, n: u32| {
        tx.put(main, &n.to_be_bytes(), NewRecord::of(&[0; 1_000]))
    };
    transact(&mut writer, |tx| (0..10_000).try_for_each(|n| put(tx, n))).unwrap();
    // It has just written.
    writer.tidy().unwrap();
    writer.tidy().unwrap();
    assert!(bytes() > TIDIED_BYTES_MIN);
    writer.resting.since = Instant::now() - REST;
    // It writes again.
    transact(&mut writer, |tx| put(tx, 0)).unwrap();
    writer.tidy().unwrap();
    assert!(bytes() > TIDIED_BYTES_MIN);
    writer.resting.since = Instant::now() - REST;
    writer.tidy().unwrap();
    assert!(bytes() < TIDIED_BYTES_MIN, "{} bytes", bytes());
    // Waits for the checkpoint, and finds nothing left to do.
    writer.checkpoint(0).unwrap();
    let view = &writer.open_transaction().view;
    assert!(view.tables.frozen.is_none() && view.base.sequence() == 2);
}

#[test]
fn runs_go_into_the_base_sooner_once_the_writer_rests() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options {
        sync: SyncMode::Os,
        size_max: 1 << 30,
        runs_from_bytes: 1,
        runs_bytes_min: 1,
        ..Options::default()
    };
    let store = tree::open(directory.path(), options).unwrap();
    let main = store.database("main").unwrap();
    let mut writer = TreeWriter::take(&store.shared).unwrap();
    let put = |writer: &mut TreeWriter, count: u32| {
        transact(writer, |tx| {
            (0..count).try_for_each(|n| tx.put(main, &n.to_be_bytes(), NewRecord::of(&[1; 1_000])))
        })
        .unwrap();
    };
    let runs = || store.shared.visible.tables().runs.len();
    put(&mut writer, 40_000);
    writer.checkpoint(0).unwrap();
    assert_eq!(runs(), 0);
    // Between an eighth of the base and a third of it.
    put(&mut writer, 3_000);
    writer.checkpoint(0).unwrap();
    assert_eq!(runs(), 1);
    put(&mut writer, 4_500);
    writer.tidy().unwrap();
    writer.resting.since = Instant::now() - REST;
    writer.tidy().unwrap();
    let is_merged = (0..10_000).any(|_| {
        thread::sleep(Duration::from_millis(1));
        writer.checkpoint(0).unwrap();
        runs() == 0
    });
    assert!(is_merged, "{} runs", runs());
}

#[test]
fn estimated_totals_are_counted_once_the_writer_rests() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options {
        sync: SyncMode::Os,
        size_max: 1 << 30,
        runs_from_bytes: 1,
        runs_bytes_min: u64::MAX,
        estimated_from_records: 1,
        memory_bytes: Some(1),
        ..Options::default()
    };
    let store = tree::open(directory.path(), options).unwrap();
    let main = store.database("main").unwrap();
    let mut writer = TreeWriter::take(&store.shared).unwrap();
    let put = |writer: &mut TreeWriter, keys: std::ops::Range<u32>| {
        transact(writer, |tx| {
            keys.clone().try_for_each(|n| tx.put(main, &n.to_be_bytes(), NewRecord::of(b"")))
        })
        .unwrap();
    };
    put(&mut writer, 0..50_000);
    writer.checkpoint(0).unwrap();
    put(&mut writer, 40_000..70_000);
    writer.checkpoint(0).unwrap();
    assert!(store.shared.visible.has_estimates());
    // So little is no reason for a checkpoint, but estimates are.
    put(&mut writer, 70_000..70_001);
    writer.tidy().unwrap();
    writer.resting.since = Instant::now() - REST;
    writer.tidy().unwrap();
    let is_counted = (0..60_000).any(|_| {
        thread::sleep(Duration::from_millis(1));
        !store.shared.visible.has_estimates()
    });
    assert!(is_counted);
    assert_eq!(store.snapshot().unwrap().statistics(main).unwrap().records, 70_001);
}

#[test]
fn what_cannot_go_into_the_base_at_rest_is_said_once() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options { sync: SyncMode::Os, size_max: 1 << 30, ..Options::default() };
    let store = tree::open(directory.path(), options).unwrap();
    let main = store.database("main").unwrap();
    let mut writer = TreeWriter::take(&store.shared).unwrap();
    transact(&mut writer, |tx| {
        (0..10_000u32).try_for_each(|n| tx.put(main, &n.to_be_bytes(), NewRecord::of(&[0; 1_000])))
    })
    .unwrap();
    writer.tidy().unwrap();
    store.shared.durable.poison("the disk is gone");
    writer.resting.since = Instant::now() - REST;
    assert!(writer.tidy().is_err());
    for _ in 0..2 {
        writer.resting.since = Instant::now() - REST;
        writer.tidy().unwrap();
    }
}

#[test]
fn a_memtable_that_nothing_was_written_to_stays_at_rest() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options {
        memtable_bytes: 24 << 20,
        sync: SyncMode::Os,
        size_max: 1 << 30,
        ..Options::default()
    };
    let store = tree::open(directory.path(), options).unwrap();
    let main = store.database("main").unwrap();
    let mut writer = TreeWriter::take(&store.shared).unwrap();
    transact(&mut writer, |tx| {
        (0..300_000u32).try_for_each(|n| tx.put(main, &n.to_be_bytes(), NewRecord::of(b"")))
    })
    .unwrap();
    // The next memtable takes over, and the checkpoint of the full one ends.
    writer.begin().unwrap();
    writer.rollback().unwrap();
    writer.checkpoint(0).unwrap();
    let (active, version) =
        (store.shared.visible.tables().active.clone(), store.shared.visible.tables_version());
    assert!(active.len() == 0 && active.bytes() >= TIDIED_BYTES_MIN, "{} bytes", active.bytes());
    writer.tidy().unwrap();
    writer.resting.since = Instant::now() - REST;
    writer.tidy().unwrap();
    assert_eq!(store.shared.visible.tables_version(), version);
}

#[test]
fn a_memtable_after_one_that_held_far_too_much_is_not_full_from_the_start() {
    const MEMTABLE_BYTES: usize = 2 << 20;
    let directory = tempfile::tempdir().unwrap();
    let options = Options {
        memtable_bytes: MEMTABLE_BYTES,
        sync: SyncMode::Os,
        size_max: 1 << 30,
        ..Options::default()
    };
    let store = tree::open(directory.path(), options).unwrap();
    let main = store.database("main").unwrap();
    let mut writer = store.writer().unwrap();
    transact(&mut *writer, |tx| {
        (0..100_000u32).try_for_each(|n| tx.put(main, &n.to_be_bytes(), NewRecord::of(b"")))
    })
    .unwrap();
    let bytes = || store.shared.visible.tables().active.bytes();
    assert!(bytes() > 2 * MEMTABLE_BYTES, "{} bytes", bytes());
    writer.begin().unwrap();
    assert!(bytes() < MEMTABLE_BYTES, "{} bytes", bytes());
}
