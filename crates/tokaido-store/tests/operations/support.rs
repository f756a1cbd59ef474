//! Stores to operate on, and their contents.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use tempfile::TempDir;
use tokaido_store::{
    Clock, DatabaseId, NewRecord, ScanRange, Scanner, Store, WriteError, transact,
    tree::{self, TreeStore},
};

#[path = "../common/directory.rs"]
mod directory;

pub(crate) use directory::fast_directory;

/// A clock that stands still, in November 2023.
pub(crate) const NOW_MS: u64 = 1_700_000_000_000;

struct StoppedClock;

impl Clock for StoppedClock {
    fn now_ms(&self) -> u64 {
        NOW_MS
    }
}

pub(crate) fn options() -> tree::Options {
    tree::Options { clock: Arc::new(StoppedClock), size_max: 1 << 30, ..tree::Options::default() }
}

pub(crate) fn open(directory: &Path) -> TreeStore {
    tree::open(directory, options()).unwrap()
}

/// A key that is longer than LMDB accepts, and shares its first 500 bytes with others like it.
pub(crate) fn long_key(n: usize) -> Vec<u8> {
    [&vec![b'k'; 600][..], format!("{n:04}").as_bytes()].concat()
}

pub(crate) fn put(store: &TreeStore, id: DatabaseId, key: &[u8], record: NewRecord<'_>) {
    let mut writer = store.writer().unwrap();
    transact(&mut *writer, |tx| tx.put(id, key, record)).unwrap();
}

/// Fills a new store: every kind of record in the base, and changes to them in the log.
pub(crate) fn fill(directory: &Path) {
    let store = open(directory);
    let ids = ["main", "people", "cleared"].map(|name| store.database(name).unwrap());
    let [main, people, cleared] = ids;
    {
        let mut writer = store.writer().unwrap();
        transact(&mut *writer, |tx| {
            for n in 0..200u32 {
                let key = format!("key:{n:04}");
                tx.put(main, key.as_bytes(), NewRecord::of(format!("value {n}").as_bytes()))?;
                let expires = NOW_MS + u64::from(n) * 1000 + 1;
                let record = NewRecord { flags: n, ..NewRecord::of(b"p").expiring(Some(expires)) };
                tx.put(people, key.as_bytes(), record)?;
                tx.put(cleared, key.as_bytes(), NewRecord::of(b"gone"))?;
            }
            for n in 0..10 {
                tx.put(main, &long_key(n), NewRecord::of(&[b'v'; 20]).expiring(Some(NOW_MS + 9)))?;
            }
            tx.put(main, b"large", NewRecord::of(&vec![b'x'; 20_000]))
        })
        .unwrap();
    }
    store.checkpoint().unwrap();
    let mut writer = store.writer().unwrap();
    for n in 0..20u32 {
        transact(&mut *writer, |tx| {
            tx.put(main, format!("key:{n:04}").as_bytes(), NewRecord::of(b"newer"))?;
            tx.delete(main, format!("key:{:04}", n + 100).as_bytes())?;
            tx.put(people, format!("late:{n}").as_bytes(), NewRecord::of(b"l"))
        })
        .unwrap();
    }
    transact(&mut *writer, |tx| {
        tx.clear(cleared)?;
        tx.put(cleared, b"again", NewRecord::of(b"1").expiring(Some(NOW_MS + 77)))?;
        tx.delete(main, &long_key(3)).map(drop)
    })
    .unwrap();
}

/// Like [`fill`], with runs before the base: changes and deletions in two of them, then changes in the log.
pub(crate) fn fill_with_runs(directory: &Path) {
    fill(directory);
    let options = tree::Options { runs_from_bytes: 0, runs_bytes_min: u64::MAX, ..options() };
    let store = tree::open(directory, options).unwrap();
    let [main, people] = ["main", "people"].map(|name| store.database(name).unwrap());
    let cleared = store.database("cleared").unwrap();
    for run in 0..3u32 {
        for n in 0..12u32 {
            transact(&mut *store.writer().unwrap(), |tx| {
                let key = |n: u32| format!("key:{n:04}").into_bytes();
                tx.put(
                    main,
                    &key(40 + 10 * run + n),
                    NewRecord::of(format!("run {run}").as_bytes()),
                )?;
                tx.delete(main, &key(60 + 10 * run + n))?;
                if n < 3 {
                    tx.put(main, &long_key(10 + n as usize), NewRecord::of(&[b'r'; 700]))?;
                }
                tx.delete(people, &key(20 * run + n))?;
                tx.put(cleared, &key(n), NewRecord::of(b"c"))
            })
            .unwrap();
        }
        if run < 2 {
            transact(&mut *store.writer().unwrap(), |tx| tx.clear(cleared)).unwrap();
            store.checkpoint().unwrap();
        }
    }
}

/// A filled store.
pub(crate) struct Filled {
    directory: TempDir,
}

impl Filled {
    pub(crate) fn new() -> Self {
        let directory = fast_directory();
        fill(&directory.path().join("store"));
        Self { directory }
    }

    pub(crate) fn with_runs() -> Self {
        let directory = fast_directory();
        fill_with_runs(&directory.path().join("store"));
        Self { directory }
    }

    /// The files of the runs, the oldest first.
    pub(crate) fn runs(&self) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(self.path().join("runs")) else { return Vec::new() };
        let mut runs: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        runs.sort();
        runs
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().join("store")
    }

    /// A path beside the store.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// What is beside the store, by name.
    pub(crate) fn neighbours(&self) -> Vec<String> {
        let entries = fs::read_dir(self.directory.path()).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    /// The last segment of the log.
    pub(crate) fn segment(&self) -> PathBuf {
        let entries = fs::read_dir(self.path().join("log")).unwrap();
        entries.map(|entry| entry.unwrap().path()).max().unwrap()
    }
}

/// Database and key → value, flags, expiry.
pub(crate) type Contents = BTreeMap<(String, Vec<u8>), (Vec<u8>, u32, Option<u64>)>;

pub(crate) fn contents(store: &dyn Store) -> Contents {
    let mut contents = Contents::new();
    let mut snapshot = store.snapshot().unwrap();
    for (id, name) in store.databases() {
        let mut scanner = Scanner::new(id, ScanRange::all(), usize::MAX);
        while let Some(entry) = scanner.next(&mut *snapshot).unwrap() {
            let record = entry.record;
            let found = (record.value.to_vec(), record.flags, record.expires_at_ms);
            contents.insert((name.clone(), entry.key.to_vec()), found);
        }
    }
    contents
}

/// The contents of the store in a directory. Opening it may change its files.
pub(crate) fn contents_of(directory: &Path) -> Contents {
    contents(&open(directory))
}

/// Every file below a directory, with its bytes.
pub(crate) fn files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files.extend(self::files(&path)),
            false => drop(files.insert(path.clone(), fs::read(&path).unwrap())),
        }
    }
    files
}

pub(crate) fn copy(from: &Path, to: &Path) {
    for (path, bytes) in files(from) {
        let target = to.join(path.strip_prefix(from).unwrap());
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        fs::write(target, bytes).unwrap();
    }
}

/// Changes a byte of a file.
pub(crate) fn damage(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 0x55;
    fs::write(path, bytes).unwrap();
}

/// Moves `amount` between accounts of two databases, whose sum stays the same.
pub(crate) fn transfer(
    tx: &mut dyn tokaido_store::WriteTransaction,
    ids: [DatabaseId; 2],
    amount: i64,
) -> Result<(), WriteError> {
    use tokaido_store::WriteOperations;
    for (id, change) in ids.into_iter().zip([amount, -amount]) {
        tx.increment(id, b"balance", change)
            .map_err(|error| WriteError::Engine { message: error.to_string() })?;
    }
    Ok(())
}
