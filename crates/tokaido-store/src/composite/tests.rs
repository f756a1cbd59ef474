//! Trees, caches and files in one store.

use std::{path::Path, sync::Arc, thread, time::Duration};

use tempfile::TempDir;

use super::*;
use crate::{
    Capabilities, NewRecord, ReadError, ReadTransaction, Store, WriteError, cache,
    cdb::{self, Duplicates, Writer as CdbWriter},
    transact, tree,
};

/// How long a test waits at most for a new file to be noticed. It never takes that long.
const PATIENCE: Duration = Duration::from_secs(30);

fn make_cdb(path: &Path, records: &[(&str, &str)]) {
    let options = cdb::Options { duplicates: Duplicates::Keep, ..cdb::Options::default() };
    let mut writer = CdbWriter::create(path, &options).unwrap();
    for (key, value) in records {
        writer.put(key.as_bytes(), value.as_bytes()).unwrap();
    }
    writer.finish().unwrap();
}

fn tree_in(directory: &TempDir) -> Box<dyn Store> {
    let options = tree::Options { size_max: 1 << 30, ..tree::Options::default() };
    Box::new(tree::open(&directory.path().join("tree"), options).unwrap())
}

fn cache_mount(name: &str) -> Mount {
    let options = cache::Options { bytes_max: 1 << 20, ..cache::Options::default() };
    Mount { name: name.to_owned(), engine: MountEngine::Cache(options) }
}

fn cdb_mount(name: &str, path: &Path) -> Mount {
    Mount { name: name.to_owned(), engine: MountEngine::Cdb(path.to_owned()) }
}

/// A tree with a cache `hot` and a file `ports`, which has a key twice.
fn composite(directory: &TempDir) -> CompositeStore {
    let path = directory.path().join("ports.cdb");
    make_cdb(&path, &[("ssh", "22"), ("http", "80"), ("http", "8080")]);
    let mounts = vec![cache_mount("hot"), cdb_mount("ports", &path)];
    CompositeStore::new(tree_in(directory), mounts).unwrap()
}

fn value(tx: &mut dyn ReadTransaction, store: &dyn Store, name: &str, key: &str) -> Option<String> {
    let id = store.find_database(name)?;
    let record = tx.get(id, key.as_bytes()).unwrap()?;
    Some(String::from_utf8(record.value.to_vec()).unwrap())
}

#[test]
fn one_transaction_reaches_all_engines() {
    let directory = tempfile::tempdir().unwrap();
    let store = composite(&directory);
    let (main, hot) = (store.database("main").unwrap(), store.database("hot").unwrap());
    let mut writer = store.writer().unwrap();
    transact::<_, WriteError>(&mut *writer, |tx| {
        tx.put(main, b"k", NewRecord::of(b"tree"))?;
        tx.put(hot, b"k", NewRecord::of(b"cache"))
    })
    .unwrap();
    let snapshot = &mut *store.snapshot().unwrap();
    assert_eq!(value(snapshot, &store, "main", "k").as_deref(), Some("tree"));
    assert_eq!(value(snapshot, &store, "hot", "k").as_deref(), Some("cache"));
    assert_eq!(value(snapshot, &store, "ports", "http").as_deref(), Some("80"));
    assert_eq!(value(snapshot, &store, "ports", "k"), None);
    let names: Vec<String> = store.databases().into_iter().map(|(_, name)| name).collect();
    assert_eq!(names, ["main", "hot", "ports"]);
    assert_eq!(store.capabilities(main), Capabilities::TREE);
    assert_eq!(store.capabilities(hot), Capabilities::CACHE);
    assert_eq!(store.capabilities(store.database("ports").unwrap()), Capabilities::CDB);
}

#[test]
fn a_rollback_leaves_the_cache_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let store = composite(&directory);
    let (main, hot) = (store.database("main").unwrap(), store.database("hot").unwrap());
    let mut writer = store.writer().unwrap();
    let mut before = store.snapshot().unwrap();
    let transaction = writer.begin().unwrap();
    transaction.put(main, b"k", NewRecord::of(b"tree")).unwrap();
    transaction.put(hot, b"k", NewRecord::of(b"cache")).unwrap();
    // Visible at once, even to an older snapshot.
    assert_eq!(value(&mut *before, &store, "hot", "k").as_deref(), Some("cache"));
    writer.rollback().unwrap();
    let snapshot = &mut *store.snapshot().unwrap();
    assert_eq!(value(snapshot, &store, "main", "k"), None);
    assert_eq!(value(snapshot, &store, "hot", "k").as_deref(), Some("cache"));
}

#[test]
fn what_an_engine_cannot_do_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let store = composite(&directory);
    let ids = ["main", "hot", "ports"].map(|name| store.database(name).unwrap());
    let [main, hot, ports] = ids;
    let mut writer = store.writer().unwrap();
    let transaction = writer.begin().unwrap();
    let refused = transaction.put(ports, b"k", NewRecord::of(b"v"));
    assert!(matches!(refused, Err(WriteError::ReadOnly)));
    assert!(matches!(transaction.delete(ports, b"k"), Err(WriteError::ReadOnly)));
    assert!(matches!(transaction.clear(ports), Err(WriteError::ReadOnly)));
    for unordered in [hot, ports] {
        let sought =
            transaction.seek(unordered, std::ops::Bound::Unbounded, crate::Direction::Forward);
        assert!(matches!(sought, Err(ReadError::Unordered)));
    }
    assert!(matches!(transaction.page(main, 0, 1, &mut |_| {}), Err(ReadError::NoPages)));
}

#[test]
fn pages_and_duplicates_come_in_the_order_of_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let store = composite(&directory);
    let ports = store.database("ports").unwrap();
    let mut snapshot = store.snapshot().unwrap();
    let (mut cursor, mut seen) = (0, Vec::new());
    loop {
        let next = snapshot
            .page(ports, cursor, 2, &mut |entry| seen.push(entry.record.value.to_vec()))
            .unwrap();
        let Some(next) = next else { break };
        assert!(next < 1 << 52);
        cursor = next;
    }
    assert_eq!(seen, [b"22".to_vec(), b"80".to_vec(), b"8080".to_vec()]);
    let mut all = Vec::new();
    snapshot.get_all(ports, b"http", &mut |record| all.push(record.value.to_vec())).unwrap();
    assert_eq!(all, [b"80".to_vec(), b"8080".to_vec()]);
    assert_eq!(snapshot.statistics(ports).unwrap().records, 3);
    let lost = snapshot.page(ports, cursor ^ 1 << 40, 2, &mut |_| {});
    assert!(matches!(lost, Err(ReadError::CursorLost)));
}

#[test]
fn the_expired_leave_a_cache_with_the_trees() {
    let directory = tempfile::tempdir().unwrap();
    let store = composite(&directory);
    let hot = store.database("hot").unwrap();
    let mut writer = store.writer().unwrap();
    transact::<_, WriteError>(&mut *writer, |tx| {
        tx.put(hot, b"k", NewRecord::of(b"v").expiring(Some(1)))
    })
    .unwrap();
    let mut snapshot = store.snapshot().unwrap();
    assert_eq!(snapshot.statistics(hot).unwrap().records, 1);
    writer.reclaim(10).unwrap();
    writer.flush().unwrap();
    assert_eq!(snapshot.statistics(hot).unwrap().records, 0);
}

#[test]
fn names_are_one_space() {
    let directory = tempfile::tempdir().unwrap();
    let tree = tree_in(&directory);
    let taken = tree.database("taken").unwrap();
    tree.database("registered").unwrap();
    let mut writer = tree.writer().unwrap();
    transact::<_, WriteError>(&mut *writer, |tx| tx.put(taken, b"k", NewRecord::of(b"v"))).unwrap();
    drop(writer);
    // A name that was only registered gives way.
    let tree = CompositeStore::new(tree, vec![cache_mount("registered")]).unwrap();
    let names: Vec<String> = tree.databases().into_iter().map(|(_, name)| name).collect();
    assert_eq!(names, ["taken", "registered"]);
    let refused = |mounts| CompositeStore::new(tree_in(&tempfile::tempdir().unwrap()), mounts);
    assert!(matches!(
        CompositeStore::new(Box::new(tree), vec![cache_mount("taken")]),
        Err(MountError::Taken { records: 1, .. })
    ));
    assert!(matches!(refused(vec![cache_mount("a b")]), Err(MountError::Name(_))));
    let twice = vec![cache_mount("a"), cache_mount("a")];
    assert!(matches!(refused(twice), Err(MountError::Twice { .. })));
    let many = (0..=crate::limits::MOUNTS_MAX).map(|i| cache_mount(&i.to_string())).collect();
    assert!(matches!(refused(many), Err(MountError::TooMany { .. })));
    let nowhere = vec![cdb_mount("a", Path::new("/nowhere/a.cdb"))];
    assert!(matches!(refused(nowhere), Err(MountError::Cdb { .. })));
}

/// Waits until a fresh snapshot shows `expected`.
fn wait_for(store: &CompositeStore, name: &str, key: &str, expected: &str) {
    let started = std::time::Instant::now();
    while value(&mut *store.snapshot().unwrap(), store, name, key).as_deref() != Some(expected) {
        assert!(started.elapsed() < PATIENCE, "{expected} does not come");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_replaced_file_is_served_and_old_snapshots_keep_the_old_one() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.cdb");
    make_cdb(&path, &[("k", "old"), ("gone", "1")]);
    let store = CompositeStore::new(tree_in(&directory), vec![cdb_mount("a", &path)]).unwrap();
    let mut old = store.snapshot().unwrap();
    make_cdb(&path, &[("k", "new")]);
    wait_for(&store, "a", "k", "new");
    assert_eq!(value(&mut *old, &store, "a", "k").as_deref(), Some("old"));
    assert_eq!(value(&mut *old, &store, "a", "gone").as_deref(), Some("1"));
    old.renew().unwrap();
    assert_eq!(value(&mut *old, &store, "a", "gone"), None);
    old.release();
    make_cdb(&path, &[("k", "newer")]);
    wait_for(&store, "a", "k", "newer");
}

#[test]
fn a_damaged_or_missing_file_leaves_the_old_one() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.cdb");
    make_cdb(&path, &[("k", "old"), ("other", "1")]);
    let store = CompositeStore::new(tree_in(&directory), vec![cdb_mount("a", &path)]).unwrap();
    let mut damaged = std::fs::read(&path).unwrap();
    // The length of the first key: the header is valid, but the record extends past the file.
    damaged[2048..2052].copy_from_slice(&u32::MAX.to_le_bytes());
    let beside = directory.path().join("b.cdb");
    std::fs::write(&beside, &damaged).unwrap();
    let refused =
        CompositeStore::new(tree_in(&tempfile::tempdir().unwrap()), vec![cdb_mount("a", &beside)]);
    assert!(matches!(refused, Err(MountError::Cdb { .. })));
    std::fs::rename(&beside, &path).unwrap();
    thread::sleep(Duration::from_millis(300));
    assert_eq!(value(&mut *store.snapshot().unwrap(), &store, "a", "k").as_deref(), Some("old"));
    std::fs::remove_file(&path).unwrap();
    thread::sleep(Duration::from_millis(300));
    assert_eq!(value(&mut *store.snapshot().unwrap(), &store, "a", "k").as_deref(), Some("old"));
    make_cdb(&path, &[("k", "new")]);
    wait_for(&store, "a", "k", "new");
}

#[test]
fn readers_see_one_file_or_the_other_while_it_is_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.cdb");
    let make = |round: usize| {
        let round = round.to_string();
        make_cdb(&path, &[("first", &round), ("filler", &"x".repeat(100_000)), ("last", &round)]);
    };
    make(0);
    let store = CompositeStore::new(tree_in(&directory), vec![cdb_mount("a", &path)]).unwrap();
    let store = Arc::new(store);
    let readers: Vec<_> = (0..2)
        .map(|_| {
            let store = Arc::clone(&store);
            thread::spawn(move || {
                let mut snapshot = store.snapshot().unwrap();
                let mut seen = 0;
                while seen < 20 {
                    snapshot.renew().unwrap();
                    let first = value(&mut *snapshot, &*store, "a", "first").unwrap();
                    thread::yield_now();
                    assert_eq!(value(&mut *snapshot, &*store, "a", "last").unwrap(), first);
                    seen = first.parse().unwrap();
                }
            })
        })
        .collect();
    for round in 1..=20 {
        make(round);
        thread::sleep(Duration::from_millis(20));
    }
    readers.into_iter().for_each(|reader| reader.join().unwrap());
}

#[test]
fn files_are_looked_at_as_often_as_was_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.cdb");
    make_cdb(&path, &[("k", "old")]);
    let options = Options { look_interval: Duration::from_secs(3600), ..Options::default() };
    let mounts = vec![cdb_mount("a", &path)];
    let store = CompositeStore::with(tree_in(&directory), mounts, options).unwrap();
    make_cdb(&path, &[("k", "new")]);
    // By default it would have been checked by then.
    thread::sleep(4 * LOOK_INTERVAL_DEFAULT);
    let snapshot = &mut *store.snapshot().unwrap();
    assert_eq!(value(snapshot, &store, "a", "k").as_deref(), Some("old"));
}

#[test]
fn a_sweep_looks_at_as_many_records_as_was_asked_for() {
    let left_by = |sweep_records_max| {
        let directory = tempfile::tempdir().unwrap();
        let options = Options { sweep_records_max, ..Options::default() };
        let mounts = vec![cache_mount("hot")];
        let store = CompositeStore::with(tree_in(&directory), mounts, options).unwrap();
        let hot = store.cache(store.database("hot").unwrap()).unwrap();
        for n in 0..2000u32 {
            // Long ago, so that all of them have expired.
            let record = NewRecord::of(b"v").expiring(Some(1));
            hot.set(&n.to_be_bytes(), record).unwrap();
        }
        store.writer().unwrap().reclaim(1).unwrap();
        hot.statistics().records
    };
    assert_eq!(left_by(1 << 20), 0);
    assert!((1900..2000).contains(&left_by(8)), "{}", left_by(8));
}
