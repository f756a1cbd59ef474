//! Stores that were closed with nothing in the log: they are opened without LMDB, until somebody
//! needs more than a few records.

use std::{
    fs, io,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use tempfile::TempDir;
use tokaido_store::{
    DatabaseId, NewRecord, ReadError, ScanRange, Scanner, Snapshot, Store, WriteError, transact,
    tree::{self, DirectoryStorage, LogFile, LogStorage, TreeStore},
};

use crate::support::fast_directory;

/// More than are read before LMDB is opened.
const RECORDS: usize = 3000;
const LARGE_LEN: usize = 100_000;

fn options() -> tree::Options {
    tree::Options { size_max: 1 << 30, log_left_bytes_max: 0, ..tree::Options::default() }
}

fn open(directory: &Path) -> TreeStore {
    tree::open(directory, options()).unwrap()
}

fn key(n: usize) -> String {
    format!("key:{n:05}")
}

/// As long as LMDB does not take it.
fn long_key(n: usize) -> Vec<u8> {
    [&[b'l'; 600][..], key(n).as_bytes()].concat()
}

/// Puts `value` under every key.
fn put_all(store: &TreeStore, main: DatabaseId, value: &str) {
    transact(&mut *store.writer().unwrap(), |tx| {
        for n in 0..RECORDS {
            tx.put(main, key(n).as_bytes(), NewRecord::of(value.as_bytes()))?;
        }
        for n in 0..3 {
            tx.put(main, &long_key(n), NewRecord::of(value.as_bytes()))?;
        }
        tx.put(main, b"large", NewRecord::of(&[b'x'; LARGE_LEN]))
    })
    .unwrap();
}

/// A store that is sealed, and whose LMDB has no lock file: who opens it, makes one.
fn sealed(value: &str) -> TempDir {
    let directory = fast_directory();
    let store = open(directory.path());
    let main = store.database("main").unwrap();
    put_all(&store, main, value);
    drop(store);
    assert!(is_sealed(directory.path()));
    fs::remove_file(directory.path().join("lock.mdb")).unwrap();
    directory
}

fn is_sealed(directory: &Path) -> bool {
    fs::read(directory.join("tokaido.lock")).unwrap().starts_with(b"TOKAIDOS")
}

fn is_lmdb_open(directory: &Path) -> bool {
    directory.join("lock.mdb").exists()
}

fn value_of(snapshot: &mut dyn Snapshot, main: DatabaseId, key: &[u8]) -> Option<String> {
    let record = snapshot.get(main, key).unwrap();
    record.map(|record| String::from_utf8(record.value.to_vec()).unwrap())
}

fn count(snapshot: &mut dyn Snapshot, main: DatabaseId, value: &str) -> usize {
    let mut count = 0;
    let mut scanner = Scanner::new(main, ScanRange::prefix(b"key:"), usize::MAX);
    while let Some(entry) = scanner.next(snapshot).unwrap() {
        count += usize::from(entry.record.value == value.as_bytes());
    }
    count
}

#[test]
fn a_few_records_are_read_without_lmdb() {
    let directory = sealed("old");
    let store = open(directory.path());
    let main = store.find_database("main").unwrap();
    let mut snapshot = store.snapshot().unwrap();
    assert_eq!(value_of(&mut *snapshot, main, key(7).as_bytes()).as_deref(), Some("old"));
    assert_eq!(value_of(&mut *snapshot, main, &long_key(2)).as_deref(), Some("old"));
    assert_eq!(value_of(&mut *snapshot, main, &long_key(3)), None);
    assert_eq!(value_of(&mut *snapshot, main, b"nothing"), None);
    assert!(matches!(snapshot.get(main, b""), Err(ReadError::KeyLength { .. })));
    let other = store.database("other").unwrap();
    assert_eq!(value_of(&mut *snapshot, other, b"nothing"), None);
    assert_eq!(snapshot.statistics(main).unwrap().records, RECORDS as u64 + 4);
    assert_eq!(snapshot.statistics(other).unwrap().records, 0);
    drop((snapshot, store));
    assert!(!is_lmdb_open(directory.path()) && is_sealed(directory.path()));
    assert!(tree::check(directory.path()).unwrap().is_sound());
}

#[test]
fn whatever_needs_lmdb_opens_it() {
    type Need = fn(&TreeStore, DatabaseId);
    let needs: [(&str, Need); 5] = [
        ("many records", |store, main| {
            let mut snapshot = store.snapshot().unwrap();
            for n in 0..RECORDS {
                assert_eq!(value_of(&mut *snapshot, main, key(n).as_bytes()).unwrap(), "old");
            }
        }),
        ("a large one", |store, main| {
            let mut snapshot = store.snapshot().unwrap();
            assert_eq!(snapshot.get(main, b"large").unwrap().unwrap().value.len(), LARGE_LEN);
        }),
        ("a scan", |store, main| {
            assert_eq!(count(&mut *store.snapshot().unwrap(), main, "old"), RECORDS);
        }),
        ("many snapshots", |store, main| {
            let mut snapshots: Vec<_> = (0..40).map(|_| store.snapshot().unwrap()).collect();
            for snapshot in &mut snapshots {
                assert_eq!(value_of(&mut **snapshot, main, key(1).as_bytes()).unwrap(), "old");
            }
        }),
        ("a writer", |store, _| drop(store.writer().unwrap())),
    ];
    for (what, need) in needs {
        let directory = sealed("old");
        let store = open(directory.path());
        let main = store.database("main").unwrap();
        assert!(!is_lmdb_open(directory.path()), "{what}");
        need(&store, main);
        assert!(is_lmdb_open(directory.path()), "{what}");
        drop(store);
        assert!(is_sealed(directory.path()), "{what}");
        assert!(tree::check(directory.path()).unwrap().is_sound(), "{what}");
    }
}

/// Snapshots that LMDB does not know of keep their pages from being used for what comes after.
#[test]
fn a_snapshot_from_before_lmdb_was_opened_stays_what_it_is() {
    let directory = sealed("old");
    let store = open(directory.path());
    let main = store.database("main").unwrap();
    let mut got = store.snapshot().unwrap();
    assert_eq!(value_of(&mut *got, main, key(0).as_bytes()).unwrap(), "old");
    let mut untouched: Vec<_> = (0..3).map(|_| store.snapshot().unwrap()).collect();
    let (dropped, mut renewed) = (store.snapshot().unwrap(), store.snapshot().unwrap());
    for round in 0..10 {
        put_all(&store, main, &format!("new {round}"));
        store.checkpoint().unwrap();
    }
    drop(dropped);
    for n in 0..RECORDS {
        assert_eq!(value_of(&mut *got, main, key(n).as_bytes()).unwrap(), "old");
    }
    for snapshot in &mut untouched {
        assert_eq!(count(&mut **snapshot, main, "old"), RECORDS);
        assert_eq!(value_of(&mut **snapshot, main, &long_key(1)).unwrap(), "old");
    }
    renewed.renew().unwrap();
    assert_eq!(count(&mut *renewed, main, "new 9"), RECORDS);
    // Once they are gone, so are the pages that they kept.
    drop((got, untouched, renewed));
    let bytes = || fs::metadata(directory.path().join("data.mdb")).unwrap().len();
    let before = bytes();
    for round in 0..10 {
        put_all(&store, main, &format!("newer {round}"));
        store.checkpoint().unwrap();
    }
    assert!(bytes() <= before, "{} bytes, {before} before", bytes());
}

/// Records that were read from pages stay where they are while others are read.
#[test]
fn threads_that_read_while_lmdb_is_opened_see_the_same() {
    for _ in 0..20 {
        let directory = sealed("old");
        let store = open(directory.path());
        let main = store.database("main").unwrap();
        let is_done = AtomicBool::new(false);
        thread::scope(|scope| {
            for thread in 0..4 {
                let (store, is_done) = (&store, &is_done);
                scope.spawn(move || {
                    let mut n = thread;
                    while !is_done.load(Ordering::Relaxed) {
                        let mut snapshot = store.snapshot().unwrap();
                        let first = value_of(&mut *snapshot, main, key(n).as_bytes()).unwrap();
                        let last = value_of(&mut *snapshot, main, b"key:02999").unwrap();
                        assert_eq!(first, last, "a torn view");
                        n = (n + 7) % RECORDS;
                    }
                });
            }
            for round in 0..3 {
                put_all(&store, main, &format!("new {round}"));
                store.checkpoint().unwrap();
            }
            is_done.store(true, Ordering::Relaxed);
        });
    }
}

#[test]
fn a_store_of_many_databases_is_sealed_and_keeps_their_names() {
    let directory = fast_directory();
    let name = |n: usize| format!("{n:_>64}").replace('_', "x");
    let store = open(directory.path());
    transact(&mut *store.writer().unwrap(), |tx| {
        for n in 0..200 {
            let id = store.database(&name(n)).expect("there is room");
            tx.put(id, b"n", NewRecord::of(n.to_string().as_bytes()))?;
        }
        Ok::<_, WriteError>(())
    })
    .unwrap();
    drop(store);
    assert!(is_sealed(directory.path()));
    let store = open(directory.path());
    assert_eq!(store.databases().len(), 200);
    let mut snapshot = store.snapshot().unwrap();
    for n in [0, 77, 199] {
        let id = store.find_database(&name(n)).unwrap();
        assert_eq!(value_of(&mut *snapshot, id, b"n").unwrap(), n.to_string());
    }
    drop((snapshot, store));
    // One that comes to be in a later life is in the seal of that.
    let store = open(directory.path());
    let late = store.database("late").unwrap();
    transact(&mut *store.writer().unwrap(), |tx| tx.put(late, b"n", NewRecord::of(b"l"))).unwrap();
    let mut snapshot = store.snapshot().unwrap();
    assert_eq!(value_of(&mut *snapshot, late, b"n").unwrap(), "l");
    drop((snapshot, store));
    let store = open(directory.path());
    let late = store.find_database("late").unwrap();
    assert_eq!(value_of(&mut *store.snapshot().unwrap(), late, b"n").unwrap(), "l");
}

#[test]
fn an_empty_store_is_sealed_too() {
    let directory = fast_directory();
    drop(open(directory.path()));
    assert!(is_sealed(directory.path()));
    let store = open(directory.path());
    let main = store.database("main").unwrap();
    assert_eq!(value_of(&mut *store.snapshot().unwrap(), main, b"k"), None);
    put_all(&store, main, "first");
    drop(store);
    let store = open(directory.path());
    assert_eq!(value_of(&mut *store.snapshot().unwrap(), main, b"key:00001").unwrap(), "first");
}

/// A seal that was put back after the store had been written to, as by a program that knows nothing
/// of seals: nothing that stands in the log is written over, and a restart finds it.
#[test]
fn what_was_written_behind_the_back_of_a_seal_is_kept() {
    let directory = sealed("old");
    let seal = fs::read(directory.path().join("tokaido.lock")).unwrap();
    let unsealing = tree::Options { log_left_bytes_max: 1 << 20, ..options() };
    let store = tree::open(directory.path(), unsealing).unwrap();
    let main = store.database("main").unwrap();
    transact(&mut *store.writer().unwrap(), |tx| tx.put(main, b"late", NewRecord::of(b"here")))
        .unwrap();
    drop(store);
    fs::write(directory.path().join("tokaido.lock"), &seal).unwrap();

    let report = tree::check(directory.path()).unwrap();
    let [finding] = &report.findings[..] else { panic!("{:?}", report.findings) };
    assert!(finding.to_string().starts_with("tokaido.lock: there are transactions"), "{finding}");

    let store = open(directory.path());
    assert_eq!(value_of(&mut *store.snapshot().unwrap(), main, b"late"), None);
    let Err(error) = store.writer() else { panic!("it may write") };
    assert!(matches!(error, WriteError::Poisoned { .. }), "{error}");
    assert!(error.to_string().contains("restart"), "{error}");
    drop(store);
    let store = open(directory.path());
    assert_eq!(value_of(&mut *store.snapshot().unwrap(), main, b"late").unwrap(), "here");
    drop(store);
    assert!(tree::check(directory.path()).unwrap().is_sound());
}

/// A log that takes its time when it is looked at.
struct SlowToLook(DirectoryStorage);

impl LogStorage for SlowToLook {
    fn list(&self) -> io::Result<Vec<u64>> {
        self.0.list()
    }

    fn create(&self, segment: u64) -> io::Result<Box<dyn LogFile>> {
        self.0.create(segment)
    }

    fn open(&self, segment: u64) -> io::Result<Box<dyn LogFile>> {
        self.0.open(segment)
    }

    fn read(&self, segment: u64) -> io::Result<Vec<u8>> {
        self.0.read(segment)
    }

    fn segment_len(&self, segment: u64) -> io::Result<Option<u64>> {
        thread::sleep(Duration::from_millis(1));
        self.0.segment_len(segment)
    }

    fn remove(&self, segment: u64) -> io::Result<()> {
        self.0.remove(segment)
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.0.sync_directory()
    }
}

/// Threads that ask for the writer at the same time, of which one breaks the seal and writes.
#[test]
fn whoever_comes_second_does_not_take_the_log_for_another_program_s() {
    for _ in 0..100 {
        let directory = fast_directory();
        drop(open(directory.path()));
        let log = DirectoryStorage::new(directory.path()).unwrap();
        let log: Option<Arc<dyn LogStorage>> = Some(Arc::new(SlowToLook(log)));
        let store = tree::open(directory.path(), tree::Options { log, ..options() }).unwrap();
        let main = store.database("main").unwrap();
        let write = |n: u8| {
            loop {
                match store.writer() {
                    Err(WriteError::WriterBusy) => thread::yield_now(),
                    Err(error) => panic!("{error}"),
                    Ok(mut writer) => {
                        let record = NewRecord::of(b"v");
                        break transact(&mut *writer, |tx| tx.put(main, &[n], record)).unwrap();
                    }
                }
            }
        };
        thread::scope(|scope| (0..8).for_each(|n| drop(scope.spawn(move || write(n)))));
    }
}

/// The file was taken away from under an open store: nobody makes an empty one in its place.
#[test]
fn a_base_that_is_gone_is_missed_and_not_made_anew() {
    let directory = sealed("old");
    let (data, away) = (directory.path().join("data.mdb"), directory.path().join("away"));
    let store = open(directory.path());
    let main = store.find_database("main").unwrap();
    fs::rename(&data, &away).unwrap();
    let mut snapshot = store.snapshot().unwrap();
    assert_eq!(value_of(&mut *snapshot, main, b"key:00001").unwrap(), "old");
    let error = snapshot.get(main, b"large").unwrap_err();
    assert!(error.to_string().contains("No such file"), "{error}");
    assert!(!data.exists());
    // Once it is back, the same snapshot reads on.
    fs::rename(&away, &data).unwrap();
    snapshot.renew().unwrap();
    assert_eq!(snapshot.get(main, b"large").unwrap().unwrap().value.len(), LARGE_LEN);
}

/// A seal that is of the base's commit, and says what is not so, is broken by who writes: after that
/// a restart goes by what is there.
#[test]
fn a_seal_that_lies_does_not_stay() {
    let directory = sealed("old");
    let lock = directory.path().join("tokaido.lock");
    let mut seal = fs::read(&lock).unwrap();
    // One transaction more, and the sum over it.
    seal[32] += 1;
    let crc = crc32c::crc32c(&seal[20..]);
    seal[16..20].copy_from_slice(&crc.to_le_bytes());
    fs::write(&lock, &seal).unwrap();
    let report = tree::check(directory.path()).unwrap();
    assert!(report.findings[0].to_string().starts_with("tokaido.lock: the seal says"));

    let store = open(directory.path());
    let main = store.find_database("main").unwrap();
    let error = store.snapshot().unwrap().get(main, b"large").map(drop).unwrap_err();
    assert!(error.to_string().contains("tokaido.lock"), "{error}");
    assert!(store.writer().is_err());
    drop(store);
    let store = open(directory.path());
    assert!(store.snapshot().unwrap().get(main, b"large").unwrap().is_some());
    put_all(&store, main, "new");
}

#[test]
fn a_log_that_ends_elsewhere_than_the_seal_says_is_found() {
    let directory = sealed("old");
    let log = directory.path().join("log");
    let segment = fs::read_dir(&log).unwrap().next().unwrap().unwrap().path();
    fs::rename(&segment, log.join("00000000000000000077")).unwrap();
    let report = tree::check(directory.path()).unwrap();
    let found: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
    assert!(found.iter().any(|finding| finding.contains("another segment")), "{found:?}");
}

/// Whatever stands on its pages, a sealed store is read from without a panic.
#[test]
fn damaged_pages_give_an_error_or_another_answer() {
    let directory = sealed("old");
    let data = directory.path().join("data.mdb");
    let whole = fs::read(&data).unwrap();
    let (mut errors, mut answers) = (0, 0);
    // Behind the two meta pages; without those LMDB would be asked, which trusts its pages.
    for at in (2 * 4096..whole.len()).step_by(61) {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        fs::write(&data, &bytes).unwrap();
        let store = open(directory.path());
        let main = store.find_database("main").unwrap();
        let mut snapshot = store.snapshot().unwrap();
        for n in [0, RECORDS / 2, RECORDS - 1] {
            match snapshot.get(main, key(n).as_bytes()) {
                Err(ReadError::Damaged { .. }) => errors += 1,
                Err(error) => panic!("byte {at}: {error}"),
                Ok(_) => answers += 1,
            }
        }
    }
    assert!(errors > 0 && answers > errors, "{errors} errors, {answers} answers");
    assert!(!is_lmdb_open(directory.path()));
}

/// With the base of another commit a seal counts for nothing.
#[test]
fn a_seal_of_another_base_is_not_believed() {
    let directory = sealed("old");
    let seal = fs::read(directory.path().join("tokaido.lock")).unwrap();
    let store = open(directory.path());
    let main = store.database("main").unwrap();
    put_all(&store, main, "new");
    drop(store);
    fs::write(directory.path().join("tokaido.lock"), &seal).unwrap();
    assert!(tree::check(directory.path()).unwrap().is_sound());
    let store = open(directory.path());
    assert_eq!(value_of(&mut *store.snapshot().unwrap(), main, b"key:00001").unwrap(), "new");
    drop(store);
    assert_ne!(fs::read(directory.path().join("tokaido.lock")).unwrap(), seal);
}
