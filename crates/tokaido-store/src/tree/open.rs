//! Opening a store: the lock, the base, the log, the databases.

use std::{
    collections::BTreeSet,
    hash::BuildHasher,
    io,
    path::{self, Path},
    sync::Arc,
};

use crate::{DatabaseId, OpenError, ReadError, WriteError, limits, record};

use super::{
    DirectoryStorage, LogStorage, Options, SyncMode, TreeStore,
    base::{Base, BaseContents, BaseError, BaseOptions, BaseView, format::NO_TREE},
    catalog::{self, CATALOG_TREE, CatalogEntry, EXPIRY_TREE, FIRST_TREE, TreeMap, read_catalog},
    checkpoint::remove_segments,
    checkpointer::start_checkpointer,
    durable::Durable,
    expiry, files,
    lock::{LOCK_FILE, LockError, StoreLock},
    log::{LogEnd, LogPlace, Operation, Recovered, RecoveryError, operations, recover},
    memtable::Memtable,
    merge_pace::MergePace,
    names::Names,
    pace::Pace,
    runs::{RunDirectory, RunError, Runs},
    shared::Shared,
    signal::Signal,
    statistics::{Changes, Statistics},
    tables::Tables,
    upkeep_requests::UpkeepRequests,
    view::View,
    visible::Visible,
    writer_state::WriterState,
};

/// Views of the base that the store itself uses: that of the writer, the next one when it follows a
/// checkpoint, one for counting, and one of the base before a checkpoint.
const OWN_VIEWS: u32 = 4;

/// Whether `directory` has a store, so that [`open`] would not make one.
#[must_use]
pub fn exists(directory: &Path) -> bool {
    directory.join(LOCK_FILE).is_file()
}

/// Opens the store in `directory`, and makes both if they do not exist.
///
/// The time it takes does not depend on the size of the store, but on the log since the last
/// checkpoint, which [`Options::memtable_bytes`] bounds. Closing the store, which is dropping it,
/// leaves little of it.
///
/// # Errors
/// See [`OpenError`].
pub fn open(directory: &Path, options: Options) -> Result<TreeStore, OpenError> {
    let io = OpenError::io(directory);
    // Files are opened later, too, when the process may have another working directory.
    let absolute = path::absolute(directory).map_err(&io)?;
    let opening = Opening { directory, path: &absolute, options: options.within_limits() };
    let lock = opening.lock()?;
    let found = opening.find(&lock)?;
    let shared = Arc::new(opening.share(found, lock)?);
    let syncs_in_background = matches!(shared.options.sync, SyncMode::Interval(_));
    if shared.options.starts_checkpointer || syncs_in_background {
        start_checkpointer(&shared).map_err(io)?;
    }
    Ok(TreeStore { shared })
}

struct Opening<'d> {
    /// As given by the user.
    directory: &'d Path,
    /// The same as an absolute path.
    path: &'d Path,
    options: Options,
}

/// The results of an opening.
struct Found {
    base: Arc<Base>,
    contents: BaseContents,
    storage: Arc<dyn LogStorage>,
    recovered: Recovered,
    replay: Replay,
    run_directory: RunDirectory,
    runs: Arc<Runs>,
}

impl Opening<'_> {
    fn io(&self, source: io::Error) -> OpenError {
        OpenError::io(self.directory)(source)
    }

    fn base_error(&self, error: BaseError) -> OpenError {
        match error {
            BaseError::Lmdb(error) => match error.system() {
                Some(code) => self.io(io::Error::from_raw_os_error(code)),
                None => self.damaged(&error),
            },
            BaseError::Io(error) => self.io(error),
            BaseError::Version(found) => OpenError::version(self.directory, found),
            BaseError::Damaged(what) => self.damaged(&what),
            BaseError::Run(RunError::Io { source, .. }) => self.io(source),
            BaseError::Run(damaged) => self.damaged(&damaged),
            BaseError::Read(error) => self.damaged(&error),
        }
    }

    fn damaged(&self, what: &dyn ToString) -> OpenError {
        OpenError::damaged(self.directory, what)
    }

    /// Locks the directory, and makes it if it does not exist.
    fn lock(&self) -> Result<StoreLock, OpenError> {
        let locked = match StoreLock::take(self.path) {
            Err(LockError::Io(error)) if error.kind() == io::ErrorKind::NotFound => {
                files::create_directories(self.path).map_err(|error| self.io(error))?;
                StoreLock::take(self.path)
            }
            locked => locked,
        };
        locked.map_err(|error| error.of_opening(self.directory))
    }

    fn storage(&self) -> Result<Arc<dyn LogStorage>, OpenError> {
        match &self.options.log {
            Some(storage) => Ok(Arc::clone(storage)),
            None => Ok(Arc::new(DirectoryStorage::new(self.path).map_err(|error| self.io(error))?)),
        }
    }

    /// Opens the base, and reads the log into a memtable.
    fn find(&self, lock: &StoreLock) -> Result<Found, OpenError> {
        // A random number, like a hash seed: it distinguishes the files of different stores.
        let new_store = || foldhash::quality::RandomState::default().hash_one(self.path);
        let Options { size_max, snapshots_max, databases_max, .. } = self.options;
        let views_max = snapshots_max.saturating_add(OWN_VIEWS);
        let options = BaseOptions { size_max, views_max, databases_max };
        let open = |options| Base::open(self.path, lock, options, new_store);
        let (mut base, contents) = open(options).map_err(|error| self.base_error(error))?;
        base.follow_size(self.options.memory_bytes);
        let run_directory = RunDirectory::new(self.path, contents.runs.next);
        let runs = run_directory.open(base.store, &contents.runs.entries);
        let runs = Arc::new(runs.map_err(|error| self.base_error(error.into()))?);
        if base.is_large() {
            runs.iter().for_each(|run| run.expect_random_reads());
        }
        self.remove_runs(&base, &contents, &run_directory)?;
        let last_tree = runs.last_tree().map_err(|error| self.damaged(&error))?;
        let storage = self.storage()?;
        let mut replay = Replay::new(&contents, last_tree);
        let recovered = recover(&*storage, base.store, contents.sequence, |sequence, bytes| {
            replay.transaction(sequence, bytes)
        });
        let mut recovered = recovered.map_err(|error| match error {
            RecoveryError::Io(error) => self.io(error),
            damaged @ RecoveryError::Damaged { .. } => self.damaged(&damaged),
            RecoveryError::Version(found) => OpenError::log_version(self.directory, found),
        })?;
        // Numbers continue after the one that the base names, also if no segment is left, as in a
        // backup: a reader takes older segments for unnecessary.
        recovered.next_segment = recovered.next_segment.max(contents.log_from);
        let keyspaces_max = contents.records(CATALOG_TREE) + replay.catalog.len() as u64;
        if keyspaces_max > databases_max as u64 {
            // LMDB allows one environment per file in a process.
            drop(base);
            let opened = open(options.with_all_databases());
            (base, _) = opened.map_err(|error| self.base_error(error))?;
            base.follow_size(self.options.memory_bytes);
        }
        let base = Arc::new(base);
        Ok(Found { base, contents, storage, recovered, replay, run_directory, runs })
    }

    /// Removes runs that the base does not list: those that were merged or not finished. If a
    /// process was killed, its last commit may be only in the operating system's memory, and the
    /// one before it lists other runs; so the base is committed once more before that.
    fn remove_runs(
        &self,
        base: &Base,
        contents: &BaseContents,
        directory: &RunDirectory,
    ) -> Result<(), OpenError> {
        let needless =
            directory.needless(&contents.runs.entries).map_err(|error| self.io(error))?;
        if !needless.is_empty() {
            let durable = base.make_durable(contents.sequence);
            durable.map_err(|error| self.base_error(error.into()))?;
        }
        needless.into_iter().for_each(|number| directory.remove(number));
        Ok(())
    }

    /// Makes the store from what was found.
    fn share(self, found: Found, lock: StoreLock) -> Result<Shared, OpenError> {
        let Found { base, contents, storage, recovered, replay, run_directory, runs } = found;
        let Replay { memtable, changes, next_tree, catalog } = replay;
        let active = Arc::clone(memtable.table());
        let tables = Tables { active: Arc::clone(&active), frozen: None, runs: Arc::clone(&runs) };
        let (log, synced) = self.make_durable(&base, &contents, &*storage, &recovered)?;
        let (entries, view) = self.catalog(&base, &tables, &catalog)?;
        let next_tree = entries.iter().map(|entry| entry.tree + 1).fold(next_tree, u32::max);
        let sequence = recovered.last_sequence;
        let from = self.options.estimated_from_records;
        let statistics = Statistics::new(contents, runs, active, changes, from);
        let trees = TreeMap::of(&entries);
        let state = WriterState {
            memtable,
            log,
            sequence,
            next_tree,
            trees: trees.clone(),
            base: view,
            follower: None,
        };
        let directory = self.path.to_owned();
        Ok(Shared {
            clock: Arc::clone(&self.options.clock),
            options: self.options,
            names: Names::new(&entries),
            visible: Visible::new(Arc::clone(&base), tables, statistics, sequence, trees),
            durable: Durable::new(directory, storage, base.store, synced, state, lock),
            signal: Signal::default(),
            pace: Pace::default(),
            runs: run_directory,
            merging: MergePace::default(),
            observers: Arc::default(),
            upkeep_requests: UpkeepRequests::default(),
            base,
        })
    }

    /// Makes sure that what was found stays, since readers see it from now on, and later writes
    /// depend on it. Where that is certain already, it writes and syncs nothing. Returns the end of
    /// the log, and the last transaction that is known to be synced.
    fn make_durable(
        &self,
        base: &Base,
        contents: &BaseContents,
        storage: &dyn LogStorage,
        recovered: &Recovered,
    ) -> Result<(LogEnd, u64), OpenError> {
        let place = LogPlace { directory: self.path, storage, store: base.store };
        let mut log = LogEnd::of(recovered, self.options.log_growth_bytes);
        let last = recovered.last_sequence;
        if last == contents.sequence && recovered.bytes > 0 {
            // A checkpoint was interrupted before it removed the log. A power failure may bring
            // back what is removed now, so it has to be intact.
            log.make_durable(place).map_err(|error| self.io(error.into()))?;
            base.make_durable(last).map_err(|error| self.base_error(error.into()))?;
            remove_segments(self.path, storage, recovered.next_segment);
            return Ok((log.without_segments(), last));
        }
        if self.options.sync == SyncMode::Os {
            // This mode promises no more than the operating system; a checkpoint makes it durable.
            return Ok((log, recovered.durable_sequence));
        }
        log.make_found_durable(place, last).map_err(|error| self.io(error))?;
        Ok((log, last))
    }

    /// The catalog, and the view through which it was read.
    fn catalog(
        &self,
        base: &Arc<Base>,
        tables: &Tables,
        written: &BTreeSet<DatabaseId>,
    ) -> Result<(Vec<CatalogEntry>, BaseView), OpenError> {
        let read = || {
            let mut base = BaseView::new(Arc::clone(base))?;
            base.renew()?;
            let view = View::new(Arc::new(tables.clone()), base, u64::MAX);
            Ok((read_catalog(&view, written)?, view.release()))
        };
        read().map_err(|error: ReadError| self.damaged(&error))
    }
}

/// A memtable that is being filled from the log.
struct Replay {
    memtable: super::memtable::MemtableWriter,
    changes: Changes,
    next_tree: u32,
    /// The keyspaces with entries of the catalog in it.
    catalog: BTreeSet<DatabaseId>,
}

impl Replay {
    /// `last_tree` is the last tree that the runs have entries of; it may no longer be in use.
    fn new(contents: &BaseContents, last_tree: Option<u32>) -> Self {
        let trees = contents.trees.iter().map(|(tree, _)| *tree).chain(last_tree);
        let next_tree = trees.map(|tree| tree + 1).fold(FIRST_TREE, u32::max);
        let (memtable, catalog) = (Memtable::create(0), BTreeSet::new());
        Self { memtable, changes: Changes::default(), next_tree, catalog }
    }

    fn transaction(&mut self, sequence: u64, bytes: &[u8]) -> Result<(), String> {
        for operation in operations(bytes) {
            let operation = operation.ok_or("a transaction does not hold what it says")?;
            self.operation(sequence, &operation).map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    fn operation(&mut self, sequence: u64, operation: &Operation<'_>) -> Result<(), WriteError> {
        let Operation { tree, key, record } = *operation;
        check_operation(operation)?;
        self.next_tree = self.next_tree.max(tree + 1);
        if tree == CATALOG_TREE {
            self.catalog.extend(catalog::parse_key(key));
        }
        let parts = record.map(|record| [&[][..], record]);
        self.changes.write(&mut self.memtable, tree, key, parts, sequence)?;
        Ok(())
    }
}

/// Whether an operation can be carried out at all, and its record can be read: a log with correct
/// checksums may still come from somewhere else.
pub(super) fn check_operation(operation: &Operation<'_>) -> Result<(), ReadError> {
    let Operation { tree, key, record } = *operation;
    check_key(tree, key)?;
    if tree == NO_TREE {
        return Err(ReadError::damaged("a tree has a number that none can have"));
    }
    let value = record.map(record::decode).transpose()?.map(|record| record.value);
    let is_entry = |value| catalog::parse(key, value).is_some();
    if tree == catalog::CATALOG_TREE && !value.is_none_or(is_entry) {
        return Err(ReadError::damaged("the catalog"));
    }
    Ok(())
}

/// Whether a tree can have a key.
pub(super) fn check_key(tree: u32, key: &[u8]) -> Result<(), ReadError> {
    let head_len = if tree == EXPIRY_TREE { expiry::ENTRY_HEAD_LEN } else { 0 };
    let max = head_len + limits::ELEMENT_HEAD_LEN_MAX + limits::KEY_LEN_MAX;
    match (1..=max).contains(&key.len()) {
        true => Ok(()),
        false => Err(ReadError::KeyLength { len: key.len(), max }),
    }
}
