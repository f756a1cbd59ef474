//! The base as the engine holds it: opening it in LMDB, and the handles that its users share.

use std::{
    fs, io,
    path::Path,
    sync::{
        PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
    },
};

use tokaido_lmdb::{
    Access, Dbi, Environment, EnvironmentOptions, Insert, LmdbError, Step, Txn, WriteTxn,
};

use crate::{
    ReadError, limits,
    tree::{
        files,
        lock::{CommitLock, StoreLock},
        runs::{RunError, RunList},
    },
};

use super::{
    DATA_FILE,
    format::{self, Total, TreeEntry},
    memory, remove_copy,
    rescue::Rescue,
};

/// The contents of a base as a whole.
pub(in crate::tree) struct BaseContents {
    /// The last transaction in it.
    pub sequence: u64,
    /// The first log segment that may hold later transactions; 0 if the base names none.
    pub log_from: u64,
    /// Its trees, and what base and runs together have of each.
    pub trees: Vec<(u32, Total)>,
    /// The runs layered before it.
    pub runs: RunList,
}

impl BaseContents {
    /// The number of records in a tree.
    pub(in crate::tree) fn records(&self, tree: u32) -> u64 {
        let found = self.trees.iter().find(|(number, _)| *number == tree);
        found.map_or(0, |(_, total)| total.sum.records)
    }
}

/// The base cannot be opened, or a checkpoint cannot be written; it is unchanged then.
#[derive(Debug, thiserror::Error)]
pub(in crate::tree) enum BaseError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Lmdb(#[from] LmdbError),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error("it has the unknown version {0}")]
    Version(u32),
    #[error("the base is damaged: {0}")]
    Damaged(&'static str),
}

impl BaseError {
    /// What the user can do before trying again.
    pub(in crate::tree) fn remedy(&self) -> &'static str {
        match self {
            Self::Lmdb(error) if error.is_map_full() => {
                "raise store_bytes_max (size_max of a Rust program's options) and restart"
            }
            _ => "free some space",
        }
    }

    /// Whether there was no room, so that trying again later may help.
    pub(in crate::tree) fn is_full(&self) -> bool {
        match self {
            Self::Lmdb(error) => error.is_full(),
            Self::Io(error) => files::is_full(error),
            _ => false,
        }
    }
}

/// How to open a base.
#[derive(Clone, Copy)]
pub(in crate::tree) struct BaseOptions {
    /// Maximum number of bytes of its file.
    pub size_max: usize,
    /// Maximum number of views at one time.
    pub views_max: u32,
    /// Maximum number of databases of the store. LMDB keeps a place for each of their trees, in the
    /// environment and in every read transaction; with places for 8,192 databases, opening and closing
    /// takes three times as long as with places for 256.
    pub databases_max: usize,
}

impl BaseOptions {
    /// For a store that has, or had, more databases than it may be given.
    pub(in crate::tree) fn with_all_databases(self) -> Self {
        Self { databases_max: limits::DATABASES_MAX, ..self }
    }

    /// Room for the slots, the directory, and the lookup of the name after the last slot. Each
    /// database may have two trees, as may the internal database; the catalog and the expiry index
    /// have one each. A checkpoint drops old trees before it creates new ones.
    fn environment(self) -> EnvironmentOptions {
        let slots = 2 * (self.databases_max + 1) + 2;
        EnvironmentOptions {
            map_size: self.size_max,
            readers_max: self.views_max,
            databases_max: slots as u32 + 2,
        }
    }
}

pub(in crate::tree) struct Base {
    pub(super) environment: Environment,
    pub(super) directory: Dbi,
    /// The slots that views may use.
    pub(super) slots: RwLock<Vec<Dbi>>,
    /// A random number, the same in all files of a store.
    pub(in crate::tree) store: u64,
    pub(super) rescue: Rescue,
    pub(in crate::tree) commits: CommitLock,
    /// Whether the base did not fit into memory at the last look.
    is_large: AtomicBool,
}

/// A base of more than 1 / `MEMORY_PART` of the memory does not fit: other things need room, too.
const MEMORY_PART: u64 = 2;

/// A base of at most this size fits into any machine. Asking how much memory there is takes longer than opening it.
const SMALL_BYTES_MAX: u64 = 128 << 20;

/// The directory where a new base is made.
const NEW_DIRECTORY: &str = "base.new";

/// Makes an empty base, durably and atomically: LMDB leaves the first pages of a new file unsynced,
/// and a file whose first pages were torn by a power failure is no longer an LMDB file.
fn create(path: &Path, options: &EnvironmentOptions, store: u64) -> Result<(), BaseError> {
    let place = path.join(NEW_DIRECTORY);
    fs::create_dir(&place)?;
    // SAFETY: nobody else knows of the directory, which was just made.
    let environment = unsafe { Environment::open(&place, options, Access::Write)? };
    let mut txn = environment.write()?;
    let directory = txn.create_database(format::BASE)?;
    put(&mut txn, directory, format::FORMAT_KEY, &format::VERSION_WITHOUT_RUNS.to_le_bytes())?;
    put(&mut txn, directory, format::STORE_KEY, &store.to_le_bytes())?;
    txn.commit()?;
    drop(environment);
    fs::rename(place.join(DATA_FILE), path.join(DATA_FILE))?;
    files::sync_directory(path)?;
    fs::remove_dir_all(&place)?;
    Ok(())
}

impl Base {
    /// Opens the base in the directory `path`, or makes an empty one for a new store, with the
    /// number that `new_store` returns. The caller keeps the lock as long as the base.
    pub(in crate::tree) fn open(
        path: &Path,
        _lock: &StoreLock,
        options: BaseOptions,
        new_store: impl FnOnce() -> u64,
    ) -> Result<(Self, BaseContents), BaseError> {
        let unfinished = path.join(NEW_DIRECTORY);
        if unfinished.exists() {
            fs::remove_dir_all(unfinished)?;
        }
        if !path.join(DATA_FILE).exists() {
            create(path, &options.environment(), new_store())?;
        }
        match Self::open_existing(path, options.environment()) {
            Err(BaseError::Lmdb(error)) if error.is_databases_full() => {
                Self::open_existing(path, options.with_all_databases().environment())
            }
            opened => opened,
        }
    }

    fn open_existing(
        path: &Path,
        options: EnvironmentOptions,
    ) -> Result<(Self, BaseContents), BaseError> {
        remove_copy(path)?;
        // SAFETY: the store's lock, which `open` was shown, keeps others out, in this process, too.
        let environment = unsafe { Environment::open(path, &options, Access::Write)? };
        let mut txn = environment.write()?;
        let directory = txn.find_database(format::BASE)?;
        let directory = directory
            .ok_or(BaseError::Damaged("data.mdb is empty, or of another program than this"))?;
        let version = number::<4>(&txn, directory, format::FORMAT_KEY)?;
        match version.map(u32::from_le_bytes) {
            Some(version) if format::is_known(version) => {}
            Some(version) => return Err(BaseError::Version(version)),
            None => return Err(BaseError::Damaged("it has no version")),
        }
        let store = number::<8>(&txn, directory, format::STORE_KEY)?;
        let store = u64::from_le_bytes(store.ok_or(BaseError::Damaged("it has no number"))?);
        let mut slots = Vec::new();
        while let Some(dbi) = txn.find_database(&format::slot_name(slots.len()))? {
            slots.push(dbi);
        }
        let sequence = number::<8>(&txn, directory, format::SEQUENCE_KEY)?;
        let sequence = sequence.map_or(0, u64::from_le_bytes);
        let log_from = number::<8>(&txn, directory, format::LOG_KEY)?.map_or(0, u64::from_le_bytes);
        let trees = read_trees(&txn, directory)?;
        if trees.iter().any(|(_, entry)| entry.slot as usize >= slots.len()) {
            return Err(BaseError::Damaged("a tree without a slot"));
        }
        if trees.iter().any(|(tree, _)| *tree == format::NO_TREE) {
            return Err(BaseError::Damaged("a tree has a number that none can have"));
        }
        let runs = read_runs(&txn, directory)?;
        let trees = match runs.entries.is_empty() {
            true => {
                let exact =
                    |(tree, entry): (u32, TreeEntry)| (tree, Total::exact(entry.statistics));
                trees.into_iter().map(exact).collect()
            }
            false => read_totals(&txn, directory)?,
        };
        txn.commit()?;
        let slots = RwLock::new(slots);
        let rescue = Rescue::new(path.to_owned(), options);
        let commits = CommitLock::of(path)?;
        let is_large = AtomicBool::new(false);
        let base = Self { environment, directory, slots, store, rescue, commits, is_large };
        Ok((base, BaseContents { sequence, log_from, trees, runs }))
    }

    /// Keeps read-ahead on while the whole base fits into memory, where it soon is then, and turns
    /// it off once the base is larger, since pages read ahead would replace ones that are needed. `memory_bytes` is how
    /// much memory there is, if that is not what the system says.
    pub(in crate::tree) fn follow_size(&self, memory_bytes: Option<u64>) {
        let Ok(file) = fs::metadata(self.rescue.directory().join(DATA_FILE)) else { return };
        let is_larger = |memory: u64| file.len() > memory / MEMORY_PART;
        let is_large = match memory_bytes {
            Some(memory) => is_larger(memory),
            None => file.len() > SMALL_BYTES_MAX && memory::bytes_max().is_some_and(is_larger),
        };
        if self.is_large.swap(is_large, Ordering::Relaxed) == is_large {
            return;
        }
        if let Err(error) = self.environment.set_read_ahead(!is_large) {
            tracing::warn!(%error, "the system could not be told how the base is read");
        }
    }

    /// Whether the base does not fit into memory.
    pub(in crate::tree) fn is_large(&self) -> bool {
        self.is_large.load(Ordering::Relaxed)
    }

    /// Commits the content once more, up to transaction `sequence`. If a process was killed in the
    /// middle of a commit, its last pages may be only in the operating system's memory.
    pub(in crate::tree) fn make_durable(&self, sequence: u64) -> Result<(), LmdbError> {
        let mut txn = self.environment.write()?;
        put(&mut txn, self.directory, format::SEQUENCE_KEY, &sequence.to_le_bytes())?;
        txn.commit()
    }

    /// Releases the pages that killed backups still hold: nobody else ever would.
    pub(in crate::tree) fn forget_dead_readers(&self) -> Result<(), LmdbError> {
        self.environment.forget_dead_readers()
    }

    pub(super) fn slots(&self) -> Vec<Dbi> {
        self.slots.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The entries of all trees.
pub(super) fn read_trees(txn: &Txn, directory: Dbi) -> Result<Vec<(u32, TreeEntry)>, BaseError> {
    let mut trees = Vec::new();
    let mut found = txn.step(directory, Step::AtOrAfter(format::TREE_PREFIX))?;
    while let Some((key, value)) = found {
        let Some(tree) = format::parse_tree_key(key) else { break };
        let entry = TreeEntry::decode(value).ok_or(BaseError::Damaged("a tree's entry"))?;
        trees.push((tree, entry));
        found = txn.step(directory, Step::Next)?;
    }
    Ok(trees)
}

/// The runs layered before the base.
pub(super) fn read_runs(txn: &Txn, directory: Dbi) -> Result<RunList, BaseError> {
    let Some(stored) = txn.find(directory, format::RUNS_KEY)? else {
        return Ok(RunList::default());
    };
    RunList::decode(stored).ok_or(BaseError::Damaged("the list of runs"))
}

/// The totals of base and runs together, if there are runs.
pub(super) fn read_totals(txn: &Txn, directory: Dbi) -> Result<Vec<(u32, Total)>, BaseError> {
    let mut totals = Vec::new();
    let mut found = txn.step(directory, Step::AtOrAfter(format::TOTAL_PREFIX))?;
    while let Some((key, value)) = found {
        let Some(tree) = format::parse_total_key(key) else { break };
        let total = Total::decode(value).ok_or(BaseError::Damaged("a tree's total"))?;
        totals.push((tree, total));
        found = txn.step(directory, Step::Next)?;
    }
    Ok(totals)
}

/// A number of `N` bytes.
pub(super) fn number<const N: usize>(
    txn: &Txn,
    directory: Dbi,
    key: &[u8],
) -> Result<Option<[u8; N]>, BaseError> {
    let stored = txn.find(directory, key)?;
    let number = stored.map(|bytes| bytes.try_into()).transpose();
    number.map_err(|_| BaseError::Damaged("a number of a wrong length"))
}

pub(super) fn put(
    txn: &mut WriteTxn,
    directory: Dbi,
    key: &[u8],
    bytes: &[u8],
) -> Result<(), LmdbError> {
    let room = match txn.insert(directory, key, bytes.len())? {
        Insert::Vacant(room) => room,
        Insert::Occupied(entry) => entry.overwrite(bytes.len())?,
    };
    room.copy_from_slice(bytes);
    Ok(())
}
