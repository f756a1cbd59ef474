//! What the store refuses, and that it continues afterwards.

use std::{
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use crate::support::{Engine, TestClock, TreeEngine, fast_directory};
use tokaido_store::{
    DatabaseError, NewRecord, OpenError, ReadError, Store, TransactError, WriteError, limits,
    transact, tree,
};

#[test]
fn keys_and_values_over_their_limits_are_refused() {
    let engine = TreeEngine::new(TestClock::new());
    let store = engine.store();
    let main = store.database("main").unwrap();
    let mut writer = store.writer().unwrap();
    let longest = vec![b'k'; limits::KEY_LEN_MAX];
    transact(&mut *writer, |tx| tx.put(main, &longest, NewRecord::of(b"v"))).unwrap();
    for key in [&b""[..], &[&longest[..], b"k"].concat()] {
        let result = transact(&mut *writer, |tx| tx.put(main, key, NewRecord::of(b"v")));
        let is_refused = matches!(
            result,
            Err(TransactError::Body(WriteError::Read(ReadError::KeyLength { len, .. }))) if len == key.len()
        );
        assert!(is_refused, "{} bytes", key.len());
    }
    let largest = vec![b'v'; limits::VALUE_LEN_MAX];
    transact(&mut *writer, |tx| tx.put(main, b"k", NewRecord::of(&largest))).unwrap();
    let larger = [&largest[..], b"v"].concat();
    let result = transact(&mut *writer, |tx| tx.put(main, b"k", NewRecord::of(&larger)));
    assert!(matches!(result, Err(TransactError::Body(WriteError::ValueLength { .. }))));
    let mut snapshot = store.snapshot().unwrap();
    assert_eq!(snapshot.get(main, b"k").unwrap().unwrap().value.len(), limits::VALUE_LEN_MAX);
    assert_eq!(snapshot.get(main, &longest).unwrap().unwrap().value, b"v");
}

#[test]
fn a_transaction_that_writes_too_much_leaves_nothing() {
    let engine = TreeEngine::new(TestClock::new());
    let store = engine.store();
    let main = store.database("main").unwrap();
    let mut writer = store.writer().unwrap();
    let value = vec![b'v'; 1 << 20];
    let megabytes = tree::TRANSACTION_BYTES_DEFAULT >> 20;
    let result = transact(&mut *writer, |tx| {
        (0..=megabytes)
            .try_for_each(|n| tx.put(main, n.to_string().as_bytes(), NewRecord::of(&value)))
    });
    assert!(matches!(result, Err(TransactError::Body(WriteError::TransactionTooLarge { .. }))));
    let mut snapshot = store.snapshot().unwrap();
    assert_eq!(snapshot.statistics(main).unwrap().records, 0);
}

#[test]
fn there_is_one_writer() {
    let engine = TreeEngine::new(TestClock::new());
    let store = engine.store();
    let writer = store.writer().unwrap();
    assert!(matches!(store.writer(), Err(WriteError::WriterBusy)));
    drop(writer);
    assert!(store.writer().is_ok());
}

#[test]
fn names_are_checked_and_counted() {
    let engine = TreeEngine::new(TestClock::new());
    let store = engine.store();
    assert!(matches!(store.database("a b"), Err(DatabaseError::BadName { .. })));
    let max = tree::DATABASES_DEFAULT;
    for n in 0..max {
        store.database(&n.to_string()).unwrap();
    }
    assert_eq!(store.database("one-more"), Err(DatabaseError::TooMany { max }));
    assert!(store.find_database("7").is_some());
    assert_eq!(store.find_database("one-more"), None);
    assert_eq!(store.databases().len(), max);
}

#[test]
fn every_database_can_be_written_and_cleared_in_one_transaction() {
    // With the elements of collections, each has two trees, and each checkpoint replaces all of
    // them, so that every place for a tree is taken.
    const COUNT: usize = tree::DATABASES_DEFAULT;
    write_and_clear_all(TreeEngine::checkpointing(TestClock::new()), COUNT);
    write_and_clear_all(TreeEngine::with_runs(TestClock::new()), COUNT);
}

fn write_and_clear_all(mut engine: TreeEngine, count: usize) {
    for _ in 0..2 {
        let store = engine.store();
        let internal = store.internal_database().unwrap();
        let mut writer = store.writer().unwrap();
        transact::<_, WriteError>(&mut *writer, |tx| {
            for n in 0..count {
                let id = tx.open_database(&n.to_string(), count)?;
                for _ in 0..3 {
                    tx.put(id, b"k", NewRecord::of(b"v"))?;
                    tx.put(id.elements(), b"12345678e", NewRecord::of(b"v"))?;
                    tx.clear(id)?;
                }
                tx.put(id, b"k", NewRecord::of(n.to_string().as_bytes()))?;
                tx.put(id.elements(), b"12345678e", NewRecord::of(b"v"))?;
            }
            let expires_at_ms = Some(u64::MAX);
            tx.put(internal, b"k", NewRecord { expires_at_ms, ..NewRecord::of(b"v") })?;
            tx.put(internal.elements(), b"12345678e", NewRecord::of(b"v"))
        })
        .unwrap();
        // Begins the next group, and so a checkpoint of this one.
        writer.begin().unwrap();
    }
    // Those elements belong to no record, which a check would rightly report.
    {
        let store = engine.store();
        let mut writer = store.writer().unwrap();
        transact(&mut *writer, |tx| {
            let databases = store.databases().into_iter().map(|(id, _)| id);
            let mut all = databases.chain(store.internal_database());
            all.try_for_each(|id| tx.delete(id.elements(), b"12345678e").map(drop))
        })
        .unwrap();
    }
    engine.reopen();
    let store = engine.store();
    let mut snapshot = store.snapshot().unwrap();
    assert_eq!(store.databases().len(), count);
    for (id, name) in store.databases() {
        assert_eq!(snapshot.get(id, b"k").unwrap().unwrap().value, name.as_bytes());
    }
}

#[test]
fn a_directory_belongs_to_one_store() {
    let directory = tempfile::tempdir().unwrap();
    let first = tree::open(directory.path(), tree::Options::default()).unwrap();
    let second = tree::open(directory.path(), tree::Options::default());
    assert!(matches!(second, Err(OpenError::Locked { .. })));
    drop(first);
    assert!(tree::open(directory.path(), tree::Options::default()).is_ok());
}

#[test]
fn what_is_no_store_is_not_opened() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("data.mdb"), vec![b'x'; 1 << 16]).unwrap();
    let opened = tree::open(directory.path(), tree::Options::default());
    assert!(matches!(opened, Err(OpenError::Damaged { .. })));
    let file = directory.path().join("data.mdb/below-a-file");
    assert!(matches!(tree::open(&file, tree::Options::default()), Err(OpenError::Io { .. })));
}

#[test]
fn a_snapshot_outlives_its_store() {
    let directory = tempfile::tempdir().unwrap();
    let store: Arc<dyn Store> =
        Arc::new(tree::open(directory.path(), tree::Options::default()).unwrap());
    let main = store.database("main").unwrap();
    transact(&mut *store.writer().unwrap(), |tx| tx.put(main, b"k", NewRecord::of(b"v"))).unwrap();
    let mut snapshot = store.snapshot().unwrap();
    drop(store);
    assert_eq!(snapshot.get(main, b"k").unwrap().unwrap().value, b"v");
}

/// Nobody runs checkpoints any more, so a full memtable would stay full.
#[test]
fn a_writer_that_outlives_its_store_is_told_so_and_does_not_wait() {
    let directory = fast_directory();
    // A memtable is full after each group.
    let options = tree::Options { memtable_bytes: 0, ..tree::Options::default() };
    let (sender, receiver) = mpsc::channel();
    let (path, same) = (directory.path().to_owned(), options.clone());
    thread::spawn(move || {
        let store = tree::open(&path, same).unwrap();
        let main = store.database("main").unwrap();
        let mut writer = store.writer().unwrap();
        // A group that has begun is finished.
        writer.begin().unwrap().put(main, b"k", NewRecord::of(b"v")).unwrap();
        drop(store);
        writer.commit().unwrap();
        writer.flush().unwrap();
        let refused = writer.begin().err().map(|error| error.to_string());
        // It holds the directory.
        drop(writer);
        sender.send(refused)
    });
    let refused = receiver.recv_timeout(Duration::from_secs(30)).expect("it waits for nobody");
    let error = refused.expect("the store is closed");
    assert!(error.contains("the store was closed"), "{error}");
    let store = tree::open(directory.path(), options).unwrap();
    let main = store.database("main").unwrap();
    assert_eq!(store.snapshot().unwrap().statistics(main).unwrap().records, 1);
}

/// The cost of a snapshot does not grow with its age: it sees two memtables, and no more.
#[test]
fn a_long_snapshot_holds_two_memtables_at_most() {
    const MEMTABLE_BYTES: u64 = 2 << 20;
    let directory = tempfile::tempdir().unwrap();
    let options = tree::Options {
        memtable_bytes: MEMTABLE_BYTES as usize,
        sync: tree::SyncMode::Os,
        ..tree::Options::default()
    };
    let store = tree::open(directory.path(), options).unwrap();
    let main = store.database("main").unwrap();
    let mut writer = store.writer().unwrap();
    let mut put = |n: u64| {
        transact(&mut *writer, |tx| tx.put(main, &n.to_be_bytes(), NewRecord::of(&[7; 4096])))
            .unwrap();
    };
    (0..100).for_each(&mut put);
    let mut snapshot = store.snapshot().unwrap();
    // Enough for twelve memtables.
    (0..6_000).for_each(&mut put);
    let usage = store.usage();
    assert!(usage.held_bytes > 0, "{usage:?}");
    // Each may exceed its limit by a chunk of memory and a group.
    let most = 2 * (MEMTABLE_BYTES + (2 << 20));
    assert!(usage.held_bytes <= most && usage.memtable_bytes <= most, "{usage:?}");
    assert!(usage.log_bytes > 0 && usage.base_bytes > 0, "{usage:?}");
    assert_eq!(snapshot.statistics(main).unwrap().records, 6_000);
    assert!(snapshot.get(main, &99u64.to_be_bytes()).unwrap().is_some());
    assert!(snapshot.get(main, &100u64.to_be_bytes()).unwrap().is_none());
    snapshot.renew().unwrap();
    drop(writer);
    store.checkpoint().unwrap();
    snapshot.renew().unwrap();
    // The thread that ran the checkpoint may hold its table for a moment longer.
    let mut waits = 0;
    while store.usage().held_bytes > 0 {
        waits += 1;
        assert!(waits < 1000, "{:?}", store.usage());
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_base_that_may_not_grow_says_what_to_raise() {
    fill_up(tree::RUNS_FROM_BYTES_DEFAULT);
    // Runs have room, but are not used as a way around the limit.
    fill_up(0);
}

fn fill_up(runs_from_bytes: u64) {
    let directory = tempfile::tempdir().unwrap();
    let options = |size_max| tree::Options {
        size_max,
        runs_from_bytes,
        runs_bytes_min: 1 << 20,
        memtable_bytes: 1 << 20,
        sync: tree::SyncMode::Os,
        ..tree::Options::default()
    };
    let store = tree::open(directory.path(), options(4 << 20)).unwrap();
    let main = store.database("main").unwrap();
    let mut writer = store.writer().unwrap();
    let mut put = |n: u64| {
        transact(&mut *writer, |tx| tx.put(main, &n.to_be_bytes(), NewRecord::of(&[7; 4096])))
    };
    let refused = (0..4_000).find_map(|n| Some((n, put(n).err()?)));
    let (written, error) = refused.expect("16 MB do not go into 4");
    assert!(error.to_string().contains("raise store_bytes_max"), "{error}");
    drop(writer);
    drop(store);

    let store = tree::open(directory.path(), options(1 << 30)).unwrap();
    let mut snapshot = store.snapshot().unwrap();
    assert_eq!(snapshot.statistics(main).unwrap().records, written);
    let mut writer = store.writer().unwrap();
    transact(&mut *writer, |tx| tx.put(main, b"more", NewRecord::of(b"v"))).unwrap();
}
