//! A backup is a store as of one moment, whatever happens meanwhile; it is restored as it was.

use std::{
    fs, io,
    os::unix::fs::PermissionsExt,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64, Ordering},
    },
    thread,
};

use tokaido_store::{
    NewRecord, Store, WriteError, counter, transact,
    tree::{self, CheckError, LogFile, LogStorage, UpkeepError},
};

use crate::support::{
    Contents, Filled, contents, contents_of, damage, files, open, options, put, transfer,
};

#[test]
fn a_backup_holds_what_the_store_holds_in_use_or_not() {
    let filled = Filled::new();
    tree::backup(&filled.path(), &filled.beside("still")).unwrap();
    let store = open(&filled.path());
    store.backup(&filled.beside("live")).unwrap();
    let expected = contents(&store);
    assert_eq!(expected.len(), 190 + 220 + 1);
    for name in ["still", "live"] {
        let copy = filled.beside(name);
        assert!(tree::check(&copy).unwrap().is_sound(), "{name}");
        assert!(contents_of(&copy) == expected, "{name}");
    }
    let mut names = filled.neighbours();
    names.sort();
    assert_eq!(names, ["live", "still", "store"]);
}

#[test]
fn what_the_base_has_taken_in_is_not_in_the_log_of_a_backup() {
    let filled = Filled::new();
    let store = open(&filled.path());
    store.checkpoint().unwrap();
    let report = store.backup(&filled.beside("copy")).unwrap();
    let copy = filled.beside("copy");
    assert_eq!(fs::read_dir(copy.join("log")).unwrap().count(), 0);
    let bytes: usize = files(&copy).values().map(Vec::len).sum();
    assert_eq!((report.bytes, report.sequence), (bytes as u64, 22));
}

#[test]
fn a_backup_is_refused_where_it_cannot_be_made() {
    let filled = Filled::new();
    let (store, copy) = (filled.path(), filled.beside("copy"));
    assert!(matches!(tree::backup(&store, &store), Err(UpkeepError::Exists { .. })));
    assert!(matches!(
        tree::backup(&copy, &copy),
        Err(UpkeepError::Check(CheckError::NoStore { .. }))
    ));
    let nowhere = filled.beside("no/where");
    assert!(matches!(tree::backup(&store, &nowhere), Err(UpkeepError::Io { .. })));
    let opened = open(&store);
    assert!(matches!(tree::backup(&store, &copy), Err(UpkeepError::OpenHere { .. })));
    drop(opened);
    let compacting = fs::File::open(&store).unwrap();
    compacting.try_lock().unwrap();
    assert!(matches!(tree::backup(&store, &copy), Err(UpkeepError::Compacting { .. })));
    assert_eq!(filled.neighbours(), ["store"]);
}

#[test]
fn a_backup_that_is_given_up_leaves_nothing() {
    let filled = Filled::new();
    let store = open(&filled.path());
    let error = store.copier().backup(&filled.beside("copy"), &AtomicBool::new(true)).unwrap_err();
    assert!(matches!(error, UpkeepError::Stopped { .. }), "{error}");
    assert_eq!(filled.neighbours(), ["store"]);
}

#[test]
fn a_damaged_store_has_no_backup() {
    let filled = Filled::new();
    damage(&filled.segment(), 48 + 41);
    let error = tree::backup(&filled.path(), &filled.beside("copy")).unwrap_err();
    assert!(matches!(error, UpkeepError::Damaged { .. }), "{error}");
    assert_eq!(filled.neighbours(), ["store"]);
}

#[test]
fn what_others_may_not_read_of_a_store_they_may_not_read_of_its_copies() {
    let filled = Filled::new();
    tree::backup(&filled.path(), &filled.beside("copy")).unwrap();
    tree::restore(&filled.beside("copy"), &filled.beside("restored")).unwrap();
    tree::compact(&filled.path(), options()).unwrap();
    for name in ["store", "copy", "restored"] {
        for path in
            files(&filled.beside(name)).keys().filter(|path| !path.ends_with("tokaido.lock"))
        {
            let mode = fs::metadata(path).unwrap().permissions().mode();
            assert_eq!(mode & 0o007, 0, "{}", path.display());
        }
    }
}

/// Makes backups beside a writer that moves amounts between two databases, and counts.
fn back_up_beside_a_writer(memtable_bytes: usize) {
    let filled = Filled::new();
    let options = tree::Options { memtable_bytes, sync: tree::SyncMode::Os, ..options() };
    let options = tree::Options { checkpoint_pages: 1, ..options };
    let store = tree::open(&filled.path(), options).unwrap();
    let ids = ["left", "right"].map(|name| store.database(name).unwrap());
    let acknowledged = AtomicI64::new(0);
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut writer = store.writer().unwrap();
            for n in 1.. {
                transact(&mut *writer, |tx| {
                    transfer(tx, ids, n)?;
                    tx.put(ids[0], format!("{}", n % 200).as_bytes(), NewRecord::of(&[b'x'; 300]))?;
                    tx.put(ids[0], b"count", NewRecord::of(n.to_string().as_bytes()))
                })
                .unwrap();
                acknowledged.store(n, Ordering::SeqCst);
                if is_done.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        // Also if an assertion fails: the scope waits for the writer.
        let _stop = SetOnDrop(&is_done);
        for n in 0..10 {
            let before = acknowledged.load(Ordering::SeqCst);
            let copy = filled.beside(&format!("{n}"));
            store.backup(&copy).unwrap();
            let counted = check_ledger(&copy);
            assert!(counted >= before, "{before} were acknowledged, {counted} are there");
        }
    });
}

struct SetOnDrop<'f>(&'f AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Checks the sum and returns how many transactions there are.
fn check_ledger(copy: &Path) -> i64 {
    let report = tree::check(copy).unwrap();
    assert!(report.is_sound(), "{:?}", report.findings);
    let found: Contents = contents_of(copy);
    let number = |database: &str, key: &[u8]| {
        let found = found.get(&(database.to_owned(), key.to_vec()));
        found.map_or(0, |(value, ..)| counter::parse(value).unwrap())
    };
    let count = number("left", b"count");
    assert_eq!(number("left", b"balance"), count * (count + 1) / 2);
    assert_eq!(number("left", b"balance") + number("right", b"balance"), 0);
    count
}

#[test]
fn a_backup_beside_a_writer_is_of_one_moment() {
    back_up_beside_a_writer(4 << 20);
}

#[test]
fn a_backup_beside_checkpoints_is_of_one_moment() {
    back_up_beside_a_writer(200_000);
}

/// A log that cannot be read while `is_broken` is set.
struct Broken {
    inner: tree::DirectoryStorage,
    is_broken: AtomicBool,
}

impl LogStorage for Broken {
    fn list(&self) -> io::Result<Vec<u64>> {
        self.inner.list()
    }
    fn create(&self, segment: u64) -> io::Result<Box<dyn LogFile>> {
        self.inner.create(segment)
    }
    fn open(&self, segment: u64) -> io::Result<Box<dyn LogFile>> {
        self.inner.open(segment)
    }
    fn read(&self, segment: u64) -> io::Result<Vec<u8>> {
        match self.is_broken.load(Ordering::SeqCst) {
            true => Err(io::Error::other("the disk is broken")),
            false => self.inner.read(segment),
        }
    }
    fn remove(&self, segment: u64) -> io::Result<()> {
        self.inner.remove(segment)
    }
    fn sync_directory(&self) -> io::Result<()> {
        self.inner.sync_directory()
    }
}

#[test]
fn a_backup_that_fails_leaves_nothing_and_the_store_goes_on() {
    let filled = Filled::new();
    let inner = tree::DirectoryStorage::new(&filled.path()).unwrap();
    let broken = Arc::new(Broken { inner, is_broken: AtomicBool::new(false) });
    let options = tree::Options { log: Some(broken.clone()), ..options() };
    let store = tree::open(&filled.path(), options).unwrap();
    broken.is_broken.store(true, Ordering::SeqCst);
    let error = store.backup(&filled.beside("copy")).unwrap_err();
    assert!(matches!(error, UpkeepError::Io { .. }), "{error}");
    assert_eq!(filled.neighbours(), ["store"]);
    put(&store, store.database("main").unwrap(), b"k", NewRecord::of(b"v"));
    broken.is_broken.store(false, Ordering::SeqCst);
    store.backup(&filled.beside("copy")).unwrap();
    assert!(contents_of(&filled.beside("copy")) == contents(&store));
}

#[test]
fn a_restored_store_is_what_it_was() {
    let filled = Filled::new();
    let copy = filled.beside("copy");
    tree::backup(&filled.path(), &copy).unwrap();
    let before = files(&copy);
    fs::create_dir(filled.beside("empty")).unwrap();
    for name in ["empty", "absent"] {
        let restored = filled.beside(name);
        assert!(tree::restore(&copy, &restored).unwrap().is_sound());
        let store = open(&restored);
        put(&store, store.database("main").unwrap(), b"later", NewRecord::of(b"1"));
        let mut expected = contents_of(&filled.path());
        let later = (b"1".to_vec(), 0, None);
        expected.insert(("main".to_owned(), b"later".to_vec()), later);
        assert!(contents(&store) == expected);
    }
    assert!(files(&copy) == before, "the backup is as it was");
}

#[test]
fn nothing_is_restored_over_something_or_from_something_damaged() {
    let filled = Filled::new();
    let (store, copy) = (filled.path(), filled.beside("copy"));
    tree::backup(&store, &copy).unwrap();
    assert!(matches!(tree::restore(&copy, &store), Err(UpkeepError::Occupied { .. })));
    let file = filled.beside("file");
    fs::write(&file, "").unwrap();
    assert!(matches!(tree::restore(&copy, &file), Err(UpkeepError::Occupied { .. })));
    let target = filled.beside("target");
    let opened = open(&copy);
    assert!(matches!(tree::restore(&copy, &target), Err(UpkeepError::Check(_))));
    drop(opened);
    damage(&copy.join("data.mdb"), 3 * 4096 + 10);
    let error = tree::restore(&copy, &target).unwrap_err();
    assert!(matches!(error, UpkeepError::Damaged { .. }), "{error}");
    assert!(!target.exists());
}

#[test]
fn a_writer_and_a_checkpoint_exclude_each_other() {
    let filled = Filled::new();
    let store = open(&filled.path());
    let writer = store.writer().unwrap();
    assert!(matches!(store.checkpoint(), Err(WriteError::WriterBusy)));
    drop(writer);
    store.checkpoint().unwrap();
    store.checkpoint().unwrap();
    assert_eq!(tree_log_transactions(&filled, store), 0);
}

fn tree_log_transactions(filled: &Filled, store: tree::TreeStore) -> u64 {
    drop(store);
    tree::check(&filled.path()).unwrap().log.transactions
}
