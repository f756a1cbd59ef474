//! Opening a store: the lock, the base, the log, the databases.

use std::{hash::BuildHasher, io, path::Path, sync::Arc};

use crate::{OpenError, ReadError, WriteError, limits, record};

use super::{
    DirectoryStorage, LogStorage, Options, SyncMode, TreeStore,
    accounts::{Accounts, Changes},
    base::{
        Base, BaseContents, BaseOpenError, BaseOptions, BaseView, FORMAT_VERSION, LmdbError,
        format::NO_TREE,
    },
    catalog::{self, EXPIRY_TREE, FIRST_TREE, Names, read_catalog},
    checkpoint, compact, expiry, files,
    lock::{LOCK_FILE, LockError, StoreLock},
    log::{LogEnd, LogPlace, Operation, Recovered, RecoveryError, operations, recover},
    memtable::Memtable,
    shared::{Parts, Shared, Tables},
    view::View,
    writer::Seat,
};

/// Whether `directory` has a store, so that [`open`] would not make one.
#[must_use]
pub fn exists(directory: &Path) -> bool {
    directory.join(LOCK_FILE).is_file()
}

/// Opens the store in `directory`, and makes both if they are not there.
///
/// The time it takes does not depend on what the store holds, but on the log since the last
/// checkpoint, which [`Options::memtable_bytes`] bounds. Closing the store, which is dropping it,
/// leaves little of it.
///
/// # Errors
/// See [`OpenError`].
pub fn open(directory: &Path, options: Options) -> Result<TreeStore, OpenError> {
    let opening = Opening { directory };
    files::create_directories(directory).map_err(|error| opening.io(error))?;
    let lock = opening.lock()?;
    compact::remove_leftovers(directory).map_err(|error| opening.io(error))?;
    let (base, contents) = opening.base(&options)?;
    let storage = match &options.log {
        Some(storage) => Arc::clone(storage),
        None => Arc::new(DirectoryStorage::new(directory).map_err(|error| opening.io(error))?),
    };
    let base = Arc::new(base);
    let shared = opening.recover(base, contents, storage, options, lock)?;
    let shared = Arc::new(shared);
    if let SyncMode::Interval(_) = shared.options.sync {
        checkpoint::start_keeper(&shared).map_err(|error| opening.io(error))?;
    }
    Ok(TreeStore::new(shared))
}

struct Opening<'d> {
    directory: &'d Path,
}

impl Opening<'_> {
    fn io(&self, source: io::Error) -> OpenError {
        OpenError::Io { directory: self.directory.to_owned(), source }
    }

    fn lmdb(&self, error: LmdbError) -> OpenError {
        match error.system() {
            Some(code) => self.io(io::Error::from_raw_os_error(code)),
            None => self.damaged(&error),
        }
    }

    fn damaged(&self, what: &dyn ToString) -> OpenError {
        OpenError::Damaged { directory: self.directory.to_owned(), what: what.to_string() }
    }

    fn version(&self, found: u32) -> OpenError {
        let directory = self.directory.to_owned();
        OpenError::Version { directory, found, known: FORMAT_VERSION }
    }

    fn lock(&self) -> Result<StoreLock, OpenError> {
        StoreLock::take(self.directory).map_err(|error| match error {
            LockError::Held => OpenError::Locked { directory: self.directory.to_owned() },
            LockError::Io(error) => self.io(error),
        })
    }

    fn base(&self, options: &Options) -> Result<(Base, BaseContents), OpenError> {
        let options = BaseOptions { size_max: options.size_max, views_max: options.snapshots_max };
        // A random number, as hash seeds are: it tells the files of stores apart.
        let new_store = foldhash::quality::RandomState::default().hash_one(self.directory);
        Base::open(self.directory, &options, new_store).map_err(|error| match error {
            BaseOpenError::Lmdb(error) => self.lmdb(error),
            BaseOpenError::Io(error) => self.io(error),
            BaseOpenError::Version(found) => self.version(found),
            BaseOpenError::Damaged(what) => self.damaged(&what),
        })
    }

    /// Reads the log into a memtable.
    fn recover(
        &self,
        base: Arc<Base>,
        contents: BaseContents,
        storage: Arc<dyn LogStorage>,
        options: Options,
        lock: StoreLock,
    ) -> Result<Shared, OpenError> {
        let mut replay = Replay::new(&contents);
        let recovered = recover(&*storage, base.store(), contents.sequence, |sequence, bytes| {
            replay.transaction(sequence, bytes)
        });
        let recovered = recovered.map_err(|error| match error {
            RecoveryError::Io(error) => self.io(error),
            RecoveryError::Damaged(what) => self.damaged(&what),
            RecoveryError::Version(found) => self.version(found),
        })?;
        let Replay { memtable, changes, next_tree } = replay;
        let active = Arc::clone(memtable.table());
        let tables = Arc::new(Tables { active: Arc::clone(&active), frozen: None });
        let (log, durable) = self.settle(&base, &contents, &*storage, &options, &recovered)?;
        let entries = self.catalog(&base, &tables)?;
        let next_tree = entries.iter().map(|entry| entry.tree + 1).fold(next_tree, u32::max);
        let sequence = recovered.last_sequence;
        let seat = Seat { memtable, log, sequence, next_tree, trees: None };
        let accounts = Accounts::new(contents, active, changes);
        let names = Names::new(&entries);
        let directory = self.directory.to_owned();
        Ok(Shared::new(Parts {
            base,
            options,
            names,
            storage,
            tables,
            accounts,
            seat,
            durable,
            directory,
            lock,
        }))
    }

    /// Makes sure that what was found stays, since readers see it from now on, and later writes
    /// count on it. Where that is sure already it writes and syncs nothing. Gives the end of
    /// the log, and the last transaction that is known to be synced.
    fn settle(
        &self,
        base: &Base,
        contents: &BaseContents,
        storage: &dyn LogStorage,
        options: &Options,
        recovered: &Recovered,
    ) -> Result<(LogEnd, u64), OpenError> {
        let place = LogPlace { directory: self.directory, storage, store: base.store() };
        let mut log = LogEnd::of(recovered, options.log_growth_bytes);
        let last = recovered.last_sequence;
        if last == contents.sequence && recovered.bytes > 0 {
            // A checkpoint was interrupted before it removed the log. The power may bring back
            // what is removed now, so it has to be sound.
            log.settle(place).map_err(|error| self.io(error.into()))?;
            base.make_durable(last).map_err(|error| self.lmdb(error))?;
            checkpoint::remove_segments(self.directory, storage, recovered.next_segment);
            return Ok((log.without_segments(), last));
        }
        if options.sync == SyncMode::Os {
            // Nobody was promised more than the system keeps; a checkpoint makes it durable.
            return Ok((log, recovered.durable_sequence));
        }
        log.settle_found(place, last).map_err(|error| self.io(error))?;
        Ok((log, last))
    }

    fn catalog(
        &self,
        base: &Arc<Base>,
        tables: &Arc<Tables>,
    ) -> Result<Vec<catalog::CatalogEntry>, OpenError> {
        let read = || {
            let mut base = BaseView::new(Arc::clone(base))?;
            base.renew()?;
            read_catalog(&View::new(Arc::clone(tables), base, u64::MAX))
        };
        read().map_err(|error: ReadError| self.damaged(&error))
    }
}

/// A memtable that is being filled from the log.
struct Replay {
    memtable: super::memtable::MemtableWriter,
    changes: Changes,
    next_tree: u32,
}

impl Replay {
    fn new(contents: &BaseContents) -> Self {
        let next_tree = contents.trees.iter().map(|(tree, _)| tree + 1).fold(FIRST_TREE, u32::max);
        Self { memtable: Memtable::create(0), changes: Changes::default(), next_tree }
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
        let parts = record.map(|record| [&[][..], record]);
        self.changes.write(&mut self.memtable, tree, key, parts, sequence)?;
        Ok(())
    }
}

/// Whether an operation can be carried out at all, and what it writes be read: a log whose sums are
/// right may still come from somebody else.
pub(super) fn check_operation(operation: &Operation<'_>) -> Result<(), ReadError> {
    let Operation { tree, key, record } = *operation;
    check_key(tree, key)?;
    if tree == NO_TREE {
        return Err(ReadError::Damaged {
            what: "a tree has a number that none can have".to_owned(),
        });
    }
    let value = record.map(record::decode).transpose()?.map(|record| record.value);
    let is_entry = |value| catalog::parse(key, value).is_some();
    if tree == catalog::CATALOG_TREE && !value.is_none_or(is_entry) {
        return Err(ReadError::Damaged { what: "the catalog".to_owned() });
    }
    Ok(())
}

/// Whether a tree can have a key.
pub(super) fn check_key(tree: u32, key: &[u8]) -> Result<(), ReadError> {
    let head_len = if tree == EXPIRY_TREE { expiry::ENTRY_HEAD_LEN } else { 0 };
    let max = head_len + limits::KEY_LEN_MAX;
    match (1..=max).contains(&key.len()) {
        true => Ok(()),
        false => Err(ReadError::KeyLength { len: key.len(), max }),
    }
}
