//! The handle of an embedding program: threads that share it, and what they are told.

use std::{
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    thread,
    time::Duration,
};

use tokaido_store::{
    CommitError, Direction, Embedded, NewRecord, ScanRange, TransactError, WriteError,
    WriteOperations, open, open_with,
    tree::{DirectoryStorage, LogFile, LogStorage, Options},
};

type Failure = TransactError<WriteError>;

/// A log whose syncs take a while, are counted, and fail when told to.
struct SlowLog {
    storage: DirectoryStorage,
    syncs: Arc<AtomicUsize>,
    is_broken: Arc<AtomicBool>,
}

struct SlowFile {
    file: Box<dyn LogFile>,
    /// What was written since the last sync. It is not in the file yet, so that it is lost with a
    /// failed sync, and a false acknowledgement shows.
    unsynced: Mutex<Vec<(u64, Vec<u8>)>>,
    syncs: Arc<AtomicUsize>,
    is_broken: Arc<AtomicBool>,
}

impl SlowLog {
    fn new(directory: &Path) -> Self {
        let storage = DirectoryStorage::new(directory).unwrap();
        Self { storage, syncs: Arc::default(), is_broken: Arc::default() }
    }

    fn slow(&self, file: Box<dyn LogFile>) -> Box<dyn LogFile> {
        let (syncs, is_broken) = (Arc::clone(&self.syncs), Arc::clone(&self.is_broken));
        Box::new(SlowFile { file, unsynced: Mutex::default(), syncs, is_broken })
    }
}

impl LogStorage for SlowLog {
    fn list(&self) -> io::Result<Vec<u64>> {
        self.storage.list()
    }
    fn create(&self, segment: u64) -> io::Result<Box<dyn LogFile>> {
        Ok(self.slow(self.storage.create(segment)?))
    }
    fn open(&self, segment: u64) -> io::Result<Box<dyn LogFile>> {
        Ok(self.slow(self.storage.open(segment)?))
    }
    fn read(&self, segment: u64) -> io::Result<Vec<u8>> {
        self.storage.read(segment)
    }
    fn remove(&self, segment: u64) -> io::Result<()> {
        self.storage.remove(segment)
    }
    fn sync_directory(&self) -> io::Result<()> {
        self.storage.sync_directory()
    }
}

impl LogFile for SlowFile {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.unsynced.lock().unwrap().push((offset, bytes.to_vec()));
        Ok(())
    }
    fn sync(&self) -> io::Result<()> {
        self.syncs.fetch_add(1, SeqCst);
        thread::sleep(Duration::from_millis(2));
        if self.is_broken.load(SeqCst) {
            return Err(io::Error::other("the disk is gone"));
        }
        for (offset, bytes) in self.unsynced.lock().unwrap().drain(..) {
            self.file.write_at(&bytes, offset)?;
        }
        self.file.sync()
    }
    fn truncate(&self, len: u64) -> io::Result<()> {
        self.file.truncate(len)
    }
}

fn on_slow_log(directory: &Path) -> (Embedded, Arc<AtomicUsize>, Arc<AtomicBool>) {
    let log = SlowLog::new(directory);
    let (syncs, is_broken) = (Arc::clone(&log.syncs), Arc::clone(&log.is_broken));
    let options = Options { log: Some(Arc::new(log)), ..Options::default() };
    (open_with(directory, options).unwrap(), syncs, is_broken)
}

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
        assert_eq!(store.remove_expired(10).unwrap(), 1);
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
    let put = |key: &[u8], end: &dyn Fn() -> Result<(), &'static str>| {
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
        // Reading within is fine, and does not see what is not committed.
        tx.put(main.id(), b"outer", NewRecord::of(b"v"))?;
        assert_eq!(main.get("outer")?, None);
        Ok::<(), WriteError>(())
    });
    outer.unwrap();
    assert!(main.get("outer").unwrap().is_some());
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
