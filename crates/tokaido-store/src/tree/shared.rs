//! What snapshots, the writer and the checkpoint share.

use std::{
    io,
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
    thread::JoinHandle,
};

use crate::{Clock, ReadError, WriteError};

use super::{
    LogFile, LogStorage,
    accounts::Accounts,
    base::{Base, BaseView, DATA_FILE},
    catalog::{Names, TreeMap, read_catalog},
    check::survey_base,
    checkpoint::Signal,
    files,
    lock::StoreLock,
    log::LogPlace,
    memtable::Memtable,
    options::Options,
    seal::Seal,
    usage::Memtables,
    view::View,
    writer::Seat,
};

/// The memtables that readers look into, newest first.
pub(super) struct Tables {
    pub(super) active: Arc<Memtable>,
    pub(super) frozen: Option<Arc<Memtable>>,
}

impl Tables {
    pub(super) fn each(&self) -> impl Iterator<Item = &Memtable> {
        std::iter::once(&*self.active).chain(self.frozen.as_deref())
    }
}

/// What belongs together at one moment.
pub(super) struct Present {
    pub(super) tables: Arc<Tables>,
    pub(super) tables_version: u64,
    /// The last transaction that is published.
    pub(super) sequence: u64,
}

pub(super) struct Shared {
    pub(super) base: Arc<Base>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) options: Options,
    pub(super) names: Names,
    /// The last transaction that opening has found.
    found: u64,
    /// The trees of the databases as of that.
    found_trees: TreeMap,
    pub(super) storage: Arc<dyn LogStorage>,
    tables: RwLock<Arc<Tables>>,
    pub(super) memtables: Mutex<Memtables>,
    /// Grows whenever `tables` changes.
    tables_version: AtomicU64,
    /// The last transaction that snapshots see.
    published: AtomicU64,
    /// The last transaction that changed the catalog.
    catalog_changed: AtomicU64,
    pub(super) accounts: Mutex<Accounts>,
    /// The segment that was last written to, for syncing it in the background.
    pub(super) unsynced: Mutex<Option<Arc<dyn LogFile>>>,
    /// The last transaction that was synced.
    pub(super) durable: AtomicU64,
    pub(super) signal: Signal,
    /// The thread that runs checkpoints, once there was one to run.
    pub(super) keeper: Mutex<Option<JoinHandle<()>>>,
    /// Given to the writer while there is one.
    seat: Mutex<Option<Seat>>,
    /// The failure after which it is unknown what is on disk.
    poison: Mutex<Option<String>>,
    pub(super) directory: PathBuf,
    /// Locked, so that no other process opens the directory; unlocked when closed.
    lock: StoreLock,
}

/// What opening a store has found and made.
pub(super) struct Parts {
    pub(super) base: Arc<Base>,
    pub(super) options: Options,
    pub(super) names: Names,
    pub(super) trees: TreeMap,
    pub(super) storage: Arc<dyn LogStorage>,
    pub(super) tables: Arc<Tables>,
    pub(super) accounts: Accounts,
    pub(super) seat: Seat,
    /// The last transaction that is known to be synced.
    pub(super) durable: u64,
    pub(super) directory: PathBuf,
    pub(super) lock: StoreLock,
}

/// With less room than this, in bytes, a disk counts as full.
const DISK_ROOM_MIN: u64 = 64 << 10;

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What the mutexes of this engine guard is replaced as a whole, so a panic leaves it whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    pub(super) fn new(parts: Parts) -> Self {
        let sequence = parts.seat.sequence;
        Self {
            base: parts.base,
            clock: Arc::clone(&parts.options.clock),
            options: parts.options,
            names: parts.names,
            found: sequence,
            found_trees: parts.trees,
            storage: parts.storage,
            memtables: Mutex::new(Memtables::new(&parts.tables.active)),
            tables: RwLock::new(parts.tables),
            tables_version: AtomicU64::new(0),
            published: AtomicU64::new(sequence),
            catalog_changed: AtomicU64::new(sequence),
            accounts: Mutex::new(parts.accounts),
            unsynced: Mutex::new(None),
            durable: AtomicU64::new(parts.durable),
            signal: Signal::default(),
            keeper: Mutex::new(None),
            seat: Mutex::new(Some(parts.seat)),
            poison: Mutex::new(None),
            directory: parts.directory,
            lock: parts.lock,
        }
    }

    pub(super) fn tables(&self) -> Arc<Tables> {
        Arc::clone(&self.tables.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn tables_version(&self) -> u64 {
        self.tables_version.load(Ordering::SeqCst)
    }

    pub(super) fn set_tables(&self, tables: Tables) {
        *self.tables.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(tables);
        self.tables_version.fetch_add(1, Ordering::SeqCst);
    }

    pub(super) fn published(&self) -> u64 {
        self.published.load(Ordering::SeqCst)
    }

    /// Lets snapshots see the transactions up to `sequence`.
    pub(super) fn publish(&self, sequence: u64, is_catalog_changed: bool) {
        if is_catalog_changed {
            self.catalog_changed.store(sequence, Ordering::SeqCst);
        }
        self.published.store(sequence, Ordering::SeqCst);
    }

    /// The last transaction that opening has found.
    pub(super) fn found(&self) -> u64 {
        self.found
    }

    /// The trees of the databases in a view of what is published. Most often they are as they were
    /// when the store was opened, and need not be read.
    pub(super) fn trees(&self, view: &View) -> Result<TreeMap, ReadError> {
        match self.catalog_changed() == self.found {
            true => Ok(self.found_trees.clone()),
            false => TreeMap::read(view),
        }
    }

    pub(super) fn catalog_changed(&self) -> u64 {
        self.catalog_changed.load(Ordering::SeqCst)
    }

    /// A new view of the tables and the base as they are now, which sees versions up to
    /// `sequence`.
    pub(super) fn view(&self, sequence: u64) -> Result<View, ReadError> {
        let mut base = BaseView::new(Arc::clone(&self.base));
        let Present { tables, .. } = self.renew(&mut base)?;
        Ok(View::new(tables, base, sequence))
    }

    /// What is published now, if the tables are still those of `tables_version`, and with them the
    /// base.
    pub(super) fn published_in(&self, tables_version: u64) -> Option<u64> {
        // In this order: a new table is in place before anything in it is published.
        let sequence = self.published();
        (self.tables_version() == tables_version).then_some(sequence)
    }

    /// Brings a view of the base to the newest checkpoint, and tells what belongs to it.
    ///
    /// The tables, the sequence and the base are read one after the other, and belong together if
    /// the tables have not changed meanwhile: whatever is published goes into the newest table,
    /// and a checkpoint changes the tables after the base.
    pub(super) fn renew(&self, base: &mut BaseView) -> Result<Present, ReadError> {
        loop {
            let tables_version = self.tables_version();
            let tables = self.tables();
            let sequence = self.published();
            base.renew()?;
            if tables_version == self.tables_version() {
                return Ok(Present { tables, tables_version, sequence });
            }
        }
    }

    pub(super) fn poison(&self, why: &str) {
        tracing::error!(why, "the store refuses writes until it is restarted");
        lock(&self.poison).get_or_insert_with(|| why.to_owned());
    }

    pub(super) fn check_poison(&self) -> Result<(), WriteError> {
        match &*lock(&self.poison) {
            None => Ok(()),
            Some(why) => Err(WriteError::Poisoned { why: why.clone() }),
        }
    }

    /// To be called before anything is written to the base or the log: opens LMDB, so that whoever
    /// writes learns early if it cannot be opened, and breaks the seal.
    pub(super) fn prepare_to_write(&self) -> Result<(), WriteError> {
        let opened = self.base.open_lmdb().map_err(ReadError::from);
        // Whatever it has said: without it, a restart reads what is there.
        self.break_seal()?;
        Ok(opened?)
    }

    fn break_seal(&self) -> Result<(), WriteError> {
        if !self.lock.seal.is_sealed() {
            return Ok(());
        }
        // Who comes second finds it broken, and the log possibly written to.
        let seat = lock(&self.seat);
        if !self.lock.seal.is_sealed() {
            return Ok(());
        }
        let Some(seat) = &*seat else { return Err(WriteError::WriterBusy) };
        let is_log_empty = seat.log.is_empty_in(&*self.storage);
        if let Err(error) = self.lock.seal.break_open() {
            return Err(self.poisoned(&format!("its seal could not be broken: {error}")));
        }
        match is_log_empty {
            Ok(true) => Ok(()),
            Ok(false) => Err(self.poisoned(
                "a program that knows nothing of its seal has written to the log of this store",
            )),
            Err(error) => Err(self.poisoned(&format!("its log could not be looked at: {error}"))),
        }
    }

    /// Refuses this write, and all that follow.
    fn poisoned(&self, why: &str) -> WriteError {
        self.poison(why);
        WriteError::Poisoned { why: why.to_owned() }
    }

    pub(super) fn take_seat(&self) -> Option<Seat> {
        lock(&self.seat).take()
    }

    /// Bytes of the log that an opening would read. Nothing while there is a writer.
    pub(super) fn log_bytes(&self) -> u64 {
        lock(&self.seat).as_ref().map_or(0, |seat| seat.log.bytes())
    }

    pub(super) fn give_seat_back(&self, seat: Seat) {
        *lock(&self.seat) = Some(seat);
    }

    pub(super) fn log_place(&self) -> LogPlace<'_> {
        LogPlace { directory: &self.directory, storage: &*self.storage, store: self.base.store() }
    }

    /// Leaves the log as the next opening has the least to do with it, unless a writer is left,
    /// or it is unknown what is on disk.
    pub(super) fn close_log(&self) {
        if self.check_poison().is_err() {
            return;
        }
        let mut seat = lock(&self.seat);
        let Some(seat) = &mut *seat else { return };
        let is_durable = self.durable.load(Ordering::SeqCst) >= seat.sequence;
        let closed = seat.log.close(self.log_place(), is_durable.then_some(seat.sequence));
        if let Err(error) = closed {
            tracing::warn!(%error, "the log could not be closed; opening it will take longer");
        } else if let Err(error) = self.seal(seat) {
            tracing::warn!(%error, "the store could not be sealed; opening it will take longer");
        }
    }

    /// Seals the store, if the base holds everything.
    fn seal(&self, seat: &mut Seat) -> io::Result<()> {
        // If it is sealed, nothing was written.
        if self.lock.seal.is_sealed() || seat.log.empty_segment().is_none() {
            return Ok(());
        }
        let base = survey_base(&self.directory.join(DATA_FILE))?;
        if base.sequence != seat.sequence || base.store != self.base.store() {
            return Ok(());
        }
        let databases = self.view(u64::MAX).and_then(|view| read_catalog(&view));
        let databases = databases.map_err(io::Error::other)?;
        let Some(segment) = seat.log.seal(self.log_place())? else { return Ok(()) };
        self.lock.seal.set(&Seal { base, segment, databases })
    }

    pub(super) fn is_disk_full(&self) -> bool {
        files::room(&self.directory).is_ok_and(|room| room < DISK_ROOM_MIN)
    }
}
