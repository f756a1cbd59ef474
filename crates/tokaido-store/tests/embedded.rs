//! The handle for embedding programs: threads that share it, and what they are told.

#[path = "common/slow_log.rs"]
mod slow_log;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, atomic::Ordering::SeqCst, mpsc},
    thread,
    time::Duration,
};

use tokaido_store::{
    Capabilities, CommitError, CommitNumber, DatabaseError, DatabaseId, Direction, Embedded,
    NewRecord, ReadError, ScanRange, Snapshot, Store, TransactError, WriteError, WriteOperations,
    WriteTransaction, Writer, open,
};

use crate::slow_log::on_slow_log;

type Failure = TransactError<WriteError>;

#[test]
fn what_was_put_is_there_after_a_reopening() {
    let directory = tempfile::tempdir().unwrap();
    {
        let store = open(directory.path()).unwrap();
        let stations = store.database("stations").unwrap();
        stations.put("03", "Kanagawa").unwrap();
        stations.put("01", "Shinagawa").unwrap();
        stations.put("02", "Kawasaki").unwrap();
        assert!(stations.delete("03").unwrap());
        assert!(!stations.delete("03").unwrap());
        stations.put_for("04", "gone at once", Duration::ZERO).unwrap();
        stations.put_for("05", "Totsuka", Duration::from_secs(3600)).unwrap();
        assert_eq!(store.reclaim(10).unwrap(), 1);
    }
    let store = open(directory.path()).unwrap();
    let stations = store.database("stations").unwrap();
    assert_eq!(stations.get("02").unwrap().as_deref(), Some(&b"Kawasaki"[..]));
    assert_eq!(stations.get("04").unwrap(), None);
    assert_eq!(stations.statistics().unwrap().records, 3);
    let keys = |range| stations.scan(range).unwrap().map(|entry| entry.unwrap().0).collect();
    let found: Vec<Vec<u8>> =
        keys(ScanRange { direction: Direction::Backward, ..ScanRange::all() });
    assert_eq!(found, [b"05", b"02", b"01"]);
    let found: Vec<Vec<u8>> = keys(ScanRange::prefix(b"02"));
    assert_eq!(found, [b"02"]);
}

#[test]
fn threads_take_turns_and_share_syncs() {
    const THREADS: usize = 8;
    const EACH: usize = 25;
    let directory = tempfile::tempdir().unwrap();
    let (store, syncs, _) = on_slow_log(directory.path());
    let hits = store.database("hits").unwrap();
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..EACH {
                    store.transact(|tx| tx.increment(hits.id(), b"all", 1)).unwrap();
                }
            });
        }
    });
    assert_eq!(hits.get("all").unwrap().unwrap(), (THREADS * EACH).to_string().as_bytes());
    let syncs = syncs.load(SeqCst);
    assert!(syncs < THREADS * EACH / 2, "{syncs} syncs for {} commits", THREADS * EACH);
}

#[test]
fn a_failed_sync_is_told_to_all_whom_it_covers() {
    let directory = tempfile::tempdir().unwrap();
    let acknowledged = Mutex::new(Vec::new());
    {
        let (store, _, is_broken) = on_slow_log(directory.path());
        let main = store.database("main").unwrap();
        // The segment of the log exists from now on: if it cannot be begun, nothing is in doubt.
        main.put("first", "v").unwrap();
        thread::scope(|scope| {
            for thread in 0..8 {
                let (main, acknowledged) = (&main, &acknowledged);
                scope.spawn(move || {
                    for n in 0.. {
                        let key = format!("{thread}/{n}");
                        match main.put(&key, "v") {
                            Ok(()) => acknowledged.lock().unwrap().push(key),
                            Err(TransactError::Commit(CommitError::Undetermined { .. }))
                            | Err(TransactError::Write(WriteError::Poisoned { .. })) => break,
                            Err(error) => panic!("{error}"),
                        }
                    }
                });
            }
            thread::sleep(Duration::from_millis(30));
            is_broken.store(true, SeqCst);
        });
        assert!(matches!(main.put("late", "v"), Err(TransactError::Write(_))));
    }
    let main = open(directory.path()).unwrap().database("main").unwrap();
    for key in acknowledged.into_inner().unwrap() {
        assert!(main.get(&key).unwrap().is_some(), "{key} was acknowledged");
    }
}

#[test]
fn an_error_or_a_panic_takes_back_its_own_transaction_and_no_other() {
    let directory = tempfile::tempdir().unwrap();
    let (store, _, _) = on_slow_log(directory.path());
    let main = store.database("main").unwrap();
    let put = |key: &[u8], end: &(dyn Fn() -> Result<(), &'static str> + Sync)| {
        store.transact(|tx| {
            tx.put(main.id(), key, NewRecord::of(b"v")).unwrap();
            end()
        })
    };
    thread::scope(|scope| {
        for thread in 0..6 {
            scope.spawn(move || {
                for n in 0..20 {
                    let key = format!("{thread}/{n}").into_bytes();
                    match thread % 3 {
                        0 => put(&key, &|| Ok(())).unwrap(),
                        1 => assert!(matches!(
                            put(&key, &|| Err("no")),
                            Err(TransactError::Body("no"))
                        )),
                        _ => {
                            let ran = catch_unwind(AssertUnwindSafe(|| {
                                put(&key, &|| std::panic::resume_unwind(Box::new("no")))
                            }));
                            assert!(ran.is_err());
                        }
                    }
                }
            });
        }
    });
    assert_eq!(main.statistics().unwrap().records, 40);
    assert_eq!(main.scan(ScanRange::prefix(b"0/")).unwrap().count(), 20);
    assert_eq!(main.scan(ScanRange::prefix(b"3/")).unwrap().count(), 20);
}

#[test]
fn a_transaction_within_another_is_refused_and_not_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path()).unwrap();
    let main = store.database("main").unwrap();
    let outer = store.transact(|tx| {
        let inner = main.put("inner", "v");
        assert!(matches!(inner, Err(TransactError::Write(WriteError::WriterBusy))), "{inner:?}");
        // Reading inside is fine, and does not see uncommitted changes.
        tx.put(main.id(), b"outer", NewRecord::of(b"v"))?;
        assert_eq!(main.get("outer")?, None);
        Ok::<(), WriteError>(())
    });
    outer.unwrap();
    assert!(main.get("outer").unwrap().is_some());
}

#[test]
fn a_store_that_is_held_by_another_writer_is_told_to_all() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path()).unwrap();
    let main = store.database("main").unwrap();
    let held = store.store().writer().unwrap();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let refused = main.put("k", "v");
                let is_busy = matches!(refused, Err(TransactError::Write(WriteError::WriterBusy)));
                assert!(is_busy, "{refused:?}");
            });
        }
    });
    drop(held);
    main.put("k", "v").unwrap();
}

/// Faults that no writer should have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Trouble {
    PanicInFlush,
    FailToRollBack,
}

struct TroubledWriter(Box<dyn Writer>, Trouble);

impl Writer for TroubledWriter {
    fn begin(&mut self) -> Result<&mut dyn WriteTransaction, WriteError> {
        self.0.begin()
    }
    fn transaction(&mut self) -> &mut dyn WriteTransaction {
        self.0.transaction()
    }
    fn commit(&mut self) -> Result<CommitNumber, CommitError> {
        self.0.commit()
    }
    fn rollback(&mut self) -> Result<(), CommitError> {
        self.0.rollback()?;
        if self.1 == Trouble::FailToRollBack {
            return Err(CommitError::Failed { message: "the group is lost".to_owned() });
        }
        Ok(())
    }
    fn flush(&mut self) -> Result<(), CommitError> {
        // Others should be waiting by now.
        thread::sleep(Duration::from_millis(2));
        if self.1 == Trouble::PanicInFlush {
            std::panic::resume_unwind(Box::new("a defect"));
        }
        self.0.flush()
    }
}

struct TroubledStore(Arc<dyn Store>, Trouble);

impl Store for TroubledStore {
    fn database(&self, name: &str) -> Result<DatabaseId, DatabaseError> {
        self.0.database(name)
    }
    fn find_database(&self, name: &str) -> Option<DatabaseId> {
        self.0.find_database(name)
    }
    fn databases(&self) -> Vec<(DatabaseId, String)> {
        self.0.databases()
    }
    fn capabilities(&self, database: DatabaseId) -> Capabilities {
        self.0.capabilities(database)
    }
    fn snapshot(&self) -> Result<Box<dyn Snapshot>, ReadError> {
        self.0.snapshot()
    }
    fn writer(&self) -> Result<Box<dyn Writer>, WriteError> {
        Ok(Box::new(TroubledWriter(self.0.writer()?, self.1)))
    }
}

#[test]
fn a_panic_of_the_engine_leaves_nobody_waiting() {
    let directory = tempfile::tempdir().unwrap();
    let real = Arc::clone(open(directory.path()).unwrap().store());
    let store = Embedded::new(Arc::new(TroubledStore(Arc::clone(&real), Trouble::PanicInFlush)));
    let main = store.database("main").unwrap();
    thread::scope(|scope| {
        for n in 0..8 {
            let main = &main;
            scope.spawn(move || {
                let put = main.put(format!("{n}"), "v");
                let is_told =
                    matches!(&put, Err(TransactError::Commit(CommitError::Undetermined { .. })));
                assert!(is_told, "{put:?}");
            });
        }
    });
    // What was not flushed has not happened, and the store can be used.
    let main = Embedded::new(real).database("main").unwrap();
    main.put("k", "v").unwrap();
    assert_eq!(main.statistics().unwrap().records, 1);
}

#[test]
fn who_is_told_of_a_lost_group_has_put_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let real = Arc::clone(open(directory.path()).unwrap().store());
    let store = Embedded::new(Arc::new(TroubledStore(real, Trouble::FailToRollBack)));
    let main = store.database("main").unwrap();
    // A leader is held up until a put and then a refusal wait behind it: these form a group.
    // Threads may start late, so this is repeated until it happens.
    for kept in 0..100 {
        let key = format!("{kept}");
        let (holding, held) = mpsc::channel::<()>();
        let is_kept = thread::scope(|scope| {
            let (store, main, key) = (&store, &main, &key);
            let hold = move || held.recv().map_err(|_| "go on");
            scope.spawn(move || {
                let mut hold = Some(hold);
                store.transact(|_| hold.take().map_or(Ok(()), |hold| hold())).unwrap_err();
            });
            thread::sleep(Duration::from_millis(10));
            let put = scope.spawn(move || main.put(key, "v"));
            thread::sleep(Duration::from_millis(10));
            let refusal = scope.spawn(move || store.transact(|_| Err::<(), _>("no")));
            thread::sleep(Duration::from_millis(10));
            drop(holding);
            let refused = refusal.join().unwrap();
            assert!(matches!(refused, Err(TransactError::Commit(_))), "{refused:?}");
            put.join().unwrap().is_ok()
        });
        assert_eq!(main.get(&key).unwrap().is_some(), is_kept, "{key}");
        assert_eq!(main.statistics().unwrap().records, kept + u64::from(is_kept));
        if !is_kept {
            return;
        }
    }
    panic!("no group was lost: nothing was tried");
}

#[test]
fn a_snapshot_stays_while_others_write() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path()).unwrap();
    let main = store.database("main").unwrap();
    main.put("k", "before").unwrap();
    let mut snapshot = store.snapshot().unwrap();
    main.put("k", "after").unwrap();
    assert_eq!(snapshot.get(main.id(), b"k").unwrap().unwrap().value, b"before");
    snapshot.renew().unwrap();
    assert_eq!(snapshot.get(main.id(), b"k").unwrap().unwrap().value, b"after");
}

#[test]
fn a_key_that_cannot_be_is_an_error_and_the_next_call_works() -> Result<(), Failure> {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path()).unwrap();
    let main = store.database("main").unwrap();
    assert!(matches!(main.put("", "v"), Err(TransactError::Body(WriteError::Read(_)))));
    assert!(main.get([0; 5000]).is_err());
    assert!(store.database("no/name").is_err());
    main.put("k", "v")?;
    assert!(open(directory.path()).is_err(), "the directory is held");
    Ok(())
}
