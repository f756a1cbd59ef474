//! What observers are told: a replica built from it equals the store, whatever fails or is undone.

use std::{
    collections::BTreeMap,
    io,
    ops::{Bound, ControlFlow},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
};

use proptest::prelude::*;
use tokaido_store::{
    CommitNumber, DatabaseId, Direction, NewRecord, Observer, Record, Store, TransactionChanges,
    What, WriteTransaction, Writer, transact,
    tree::{self, DirectoryStorage, LogFile, LogStorage},
};

use crate::{
    collections::{DATABASES, Model, Write, apply, write},
    support::{Engine, TestClock, TreeEngine, fast_directory},
};

#[derive(Clone, Debug)]
enum Action {
    Transaction { writes: Vec<(usize, Write)>, is_committed: bool },
    Flush { does_fail: bool },
    DropWriter,
    Reclaim,
    PassTime { ms: u64 },
}

fn action() -> impl Strategy<Value = Action> {
    let writes = prop::collection::vec((0..DATABASES.len(), write()), 0..8);
    prop_oneof![
        10 => (writes, prop::bool::weighted(0.7))
            .prop_map(|(writes, is_committed)| Action::Transaction { writes, is_committed }),
        5 => prop::bool::weighted(0.2).prop_map(|does_fail| Action::Flush { does_fail }),
        1 => Just(Action::DropWriter),
        2 => Just(Action::Reclaim),
        2 => (1u64..40).prop_map(|ms| Action::PassTime { ms }),
    ]
}

/// Which calls of the log fail.
#[derive(Default)]
struct Faults {
    writes: AtomicBool,
    syncs: AtomicBool,
}

fn fault(is_on: &AtomicBool) -> io::Result<()> {
    if is_on.load(SeqCst) { Err(io::Error::other("the disk is gone")) } else { Ok(()) }
}

struct FaultyLog(DirectoryStorage, Arc<Faults>);

struct FaultyFile(Box<dyn LogFile>, Arc<Faults>);

impl LogStorage for FaultyLog {
    fn list(&self) -> io::Result<Vec<u64>> {
        self.0.list()
    }
    fn create(&self, segment: u64) -> io::Result<Box<dyn LogFile>> {
        Ok(Box::new(FaultyFile(self.0.create(segment)?, Arc::clone(&self.1))))
    }
    fn open(&self, segment: u64) -> io::Result<Box<dyn LogFile>> {
        Ok(Box::new(FaultyFile(self.0.open(segment)?, Arc::clone(&self.1))))
    }
    fn read(&self, segment: u64) -> io::Result<Vec<u8>> {
        self.0.read(segment)
    }
    fn remove(&self, segment: u64) -> io::Result<()> {
        self.0.remove(segment)
    }
    fn sync_directory(&self) -> io::Result<()> {
        self.0.sync_directory()
    }
}

impl LogFile for FaultyFile {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        fault(&self.1.writes)?;
        self.0.write_at(bytes, offset)
    }
    fn sync(&self) -> io::Result<()> {
        fault(&self.1.syncs)?;
        self.0.sync()
    }
    fn truncate(&self, len: u64) -> io::Result<()> {
        self.0.truncate(len)
    }
}

/// A record without the number of its transaction.
type Kept = (NewRecord<'static>, Vec<u8>);

fn kept(record: &Record<'_>) -> Kept {
    (record.with_same_value(&[]), record.value.to_vec())
}

#[derive(Default)]
struct Replica {
    records: BTreeMap<DatabaseId, BTreeMap<Vec<u8>, Kept>>,
    last: CommitNumber,
}

/// A failed assertion poisons the mutex, so that the comparison fails, too.
#[derive(Default)]
struct Follower(Mutex<Replica>);

impl Observer for Follower {
    fn published(&self, group: &[TransactionChanges<'_>]) {
        let mut replica = self.0.lock().unwrap();
        for TransactionChanges { number, changes } in group {
            assert_eq!(*number, replica.last + 1, "each comes once, in order");
            replica.last = *number;
            let before = replica.records.clone();
            for change in changes {
                let records = replica.records.entry(change.database).or_default();
                match change.what {
                    What::Cleared => records.clear(),
                    What::Moved { from } => {
                        *records = before.get(&from).cloned().unwrap_or_default();
                    }
                    What::Put { key, record } => {
                        assert_eq!(record.version, *number);
                        records.insert(key.to_vec(), kept(&record));
                    }
                    What::Deleted { key } => drop(records.remove(key)),
                    What::Reclaimed { key } => {
                        assert!(records.remove(key).is_some(), "it was there");
                    }
                }
            }
        }
    }
}

/// Compares the replica with what is published, except for expired records.
fn check(store: &dyn Store, follower: &Follower) -> Result<(), TestCaseError> {
    let replica = follower.0.lock().unwrap();
    let mut snapshot = store.snapshot().unwrap();
    let now_ms = snapshot.now_ms();
    for (id, _) in store.databases() {
        for keyspace in [id, id.elements()] {
            let mut expected = BTreeMap::new();
            snapshot
                .scan(
                    keyspace,
                    Bound::Unbounded,
                    Bound::Unbounded,
                    Direction::Forward,
                    &mut |entry| {
                        expected.insert(entry.key.to_vec(), kept(&entry.record));
                        ControlFlow::Continue(())
                    },
                )
                .unwrap();
            let mut found = replica.records.get(&keyspace).cloned().unwrap_or_default();
            found.retain(|_, (record, _)| record.expires_at_ms.is_none_or(|at| now_ms < at));
            prop_assert_eq!(found, expected);
        }
    }
    Ok(())
}

fn run(memtable_bytes: usize, last_fails: bool, actions: &[Action]) -> Result<(), TestCaseError> {
    let (directory, clock) = (fast_directory(), TestClock::new());
    let faults = Arc::new(Faults::default());
    let log = FaultyLog(DirectoryStorage::new(directory.path()).unwrap(), Arc::clone(&faults));
    let options = tree::Options {
        clock: clock.clone(),
        log: Some(Arc::new(log)),
        memtable_bytes,
        checkpoint_pages: 1,
        size_max: 1 << 30,
        ..tree::Options::default()
    };
    let store = tree::open(directory.path(), options).unwrap();
    let ids = DATABASES.map(|name| store.database(name).unwrap());
    let mut writer: Box<dyn Writer> = store.writer().unwrap();
    // Nobody is told of this: at the end, the databases exist and are empty.
    let put = |tx: &mut dyn WriteTransaction, id| tx.put(id, b"k", NewRecord::of(b"v"));
    transact(&mut *writer, |tx| ids.into_iter().try_for_each(|id| put(tx, id))).unwrap();
    transact(&mut *writer, |tx| ids.into_iter().try_for_each(|id| tx.clear(id))).unwrap();
    let follower = Arc::new(Follower::default());
    follower.0.lock().unwrap().last = 2;
    let _guard = store.observe(follower.clone()).unwrap();
    let (mut durable, mut committed) = (Model::new(), Model::new());
    for action in actions {
        match action {
            Action::Transaction { writes, is_committed } => {
                let mut model = committed.clone();
                let tx = writer.begin().unwrap();
                for (db, write) in writes {
                    apply(tx, &mut model, *db, ids[*db], write);
                }
                if *is_committed {
                    writer.commit().unwrap();
                    committed = model;
                } else {
                    writer.rollback().unwrap();
                }
            }
            Action::Flush { does_fail } => {
                faults.writes.store(*does_fail, SeqCst);
                match writer.flush() {
                    Ok(()) => durable = committed.clone(),
                    Err(_) => committed = durable.clone(),
                }
                faults.writes.store(false, SeqCst);
                check(&store, &follower)?;
            }
            Action::DropWriter => {
                drop(writer);
                writer = store.writer().unwrap();
                committed = durable.clone();
            }
            Action::Reclaim => drop(writer.reclaim(7).unwrap()),
            Action::PassTime { ms } => clock.pass(*ms),
        }
    }
    faults.syncs.store(last_fails, SeqCst);
    let _ = writer.flush();
    check(&store, &follower)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn a_replica_of_what_is_told_is_the_store(
        memtable_bytes in prop_oneof![Just(0), Just(1 << 20)],
        last_fails: bool,
        actions in prop::collection::vec(action(), 1..40),
    ) {
        run(memtable_bytes, last_fails, &actions)?;
    }
}

/// Counts what it is told, and panics.
#[derive(Default)]
struct Panicking(AtomicUsize);

impl Observer for Panicking {
    fn published(&self, group: &[TransactionChanges<'_>]) {
        self.0.fetch_add(group.len(), SeqCst);
        panic!("an observer has a fault");
    }
}

#[test]
fn an_observer_that_panics_fails_no_commit_and_is_told_until_its_guard_goes() {
    let directory = fast_directory();
    let store = tree::open(directory.path(), tree::Options::default()).unwrap();
    let main = store.database("main").unwrap();
    let mut writer = store.writer().unwrap();
    let mut put = |key: &[u8]| {
        transact(&mut *writer, |tx| tx.put(main, key, NewRecord::of(b"v"))).unwrap();
    };
    let (first, second) = (Arc::new(Panicking::default()), Arc::new(Panicking::default()));
    put(b"before");
    let first_guard = store.observe(first.clone());
    let second_guard = store.observe(second.clone());
    put(b"a");
    drop(first_guard);
    put(b"b");
    drop(second_guard);
    put(b"after");
    assert_eq!((first.0.load(SeqCst), second.0.load(SeqCst)), (1, 2));
    assert!(store.snapshot().unwrap().get(main, b"b").unwrap().is_some());
}

/// Records what it is told, as text.
#[derive(Default)]
struct Notes(Mutex<Vec<String>>);

impl Observer for Notes {
    fn published(&self, group: &[TransactionChanges<'_>]) {
        let changes = group.iter().flat_map(|transaction| &transaction.changes);
        let what = changes.map(|change| match change.what {
            What::Cleared => "cleared".to_owned(),
            What::Moved { from } => format!("moved from {from:?}"),
            What::Put { key, .. } => format!("put {}", key.escape_ascii()),
            What::Deleted { key } => format!("deleted {}", key.escape_ascii()),
            What::Reclaimed { key } => format!("reclaimed {}", key.escape_ascii()),
        });
        self.0.lock().unwrap().extend(what);
    }
}

#[test]
fn an_observer_knows_of_databases_that_changed_while_nobody_observed() {
    let engine = TreeEngine::new(TestClock::new());
    let store = engine.store();
    let [main, late] = ["main", "late"].map(|name| store.database(name).unwrap());
    let put = |id| {
        transact(&mut *store.writer().unwrap(), |tx| tx.put(id, b"k", NewRecord::of(b""))).unwrap();
    };
    let notes = Arc::new(Notes::default());
    let guard = store.observe(notes.clone());
    put(main);
    drop(guard);
    transact(&mut *store.writer().unwrap(), |tx| tx.clear(main)).unwrap();
    put(late);
    let _guard = store.observe(notes.clone());
    put(main);
    put(late);
    assert_eq!(*notes.0.lock().unwrap(), ["put k"; 3]);
}

#[test]
fn what_the_store_removes_is_told_from_what_somebody_deletes() {
    let clock = TestClock::new();
    let engine = TreeEngine::new(clock.clone());
    let store = engine.store();
    let main = store.database("main").unwrap();
    let notes = Arc::new(Notes::default());
    let _guard = store.observe(notes.clone());
    let mut writer = store.writer().unwrap();
    transact(&mut *writer, |tx| {
        tx.put(main, b"deleted", NewRecord::of(b""))?;
        tx.put(main, b"expired", NewRecord::of(b"").expiring(Some(tx.now_ms() + 1)))
    })
    .unwrap();
    clock.pass(2);
    transact(&mut *writer, |tx| tx.delete(main, b"deleted")).unwrap();
    assert_eq!(writer.reclaim(10).unwrap(), 1);
    transact(&mut *writer, |tx| tx.clear(main)).unwrap();
    let told = notes.0.lock().unwrap();
    assert_eq!(
        *told,
        ["put deleted", "put expired", "deleted deleted", "reclaimed expired", "cleared"]
    );
}
