//! An in-memory store, to test procedures against: a `BTreeMap` per database, a clock that the test
//! sets, and a copy of everything as the snapshot and for rollback. Collections are packed, and cannot grow
//! beyond that.

use std::{
    collections::BTreeMap,
    ops::Bound,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering},
    },
};

use tokaido_store::{
    Capabilities, CommitError, CommitNumber, DatabaseError, DatabaseId, DatabaseStatistics,
    Direction, Entry, Kind, NewRecord, ReadError, ReadTransaction, Record, Snapshot, Store,
    WriteError, WriteTransaction, Writer, limits,
};

/// Where every clock starts, in ms since the epoch.
pub const START_MS: u64 = 1_800_000_000_000;

#[derive(Clone, Debug)]
struct Stored {
    value: Vec<u8>,
    flags: u32,
    expires_at_ms: Option<u64>,
    version: CommitNumber,
    kind: Kind,
}

impl Stored {
    fn record(&self) -> Record<'_> {
        Record {
            flags: self.flags,
            expires_at_ms: self.expires_at_ms,
            kind: self.kind,
            ..Record::of(&self.value, self.version)
        }
    }
}

/// Enough for all tests.
const DATABASES_MAX: usize = 1024;

type Databases = Vec<BTreeMap<Vec<u8>, Stored>>;

struct Shared {
    names: Mutex<Vec<String>>,
    committed: Mutex<Arc<Databases>>,
    now_ms: AtomicU64,
    commits: AtomicU64,
    dropped: AtomicU64,
    /// How many of the next commits conflict with another transaction.
    collisions: AtomicU64,
}

/// The store. Clones share the same data.
#[derive(Clone)]
pub struct MemoryStore(Arc<Shared>);

impl MemoryStore {
    /// An empty store at [`START_MS`].
    pub fn new() -> Self {
        Self(Arc::new(Shared {
            names: Mutex::new(Vec::new()),
            committed: Mutex::new(Arc::new(vec![BTreeMap::new(); DATABASES_MAX])),
            now_ms: AtomicU64::new(START_MS),
            commits: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            collisions: AtomicU64::new(0),
        }))
    }

    /// Makes that many commits conflict, each of which takes a millisecond.
    pub fn collide(&self, times: u64) {
        self.0.collisions.store(times, Ordering::Relaxed);
    }

    /// Advances the clock.
    pub fn advance(&self, ms: u64) {
        self.0.now_ms.fetch_add(ms, Ordering::Relaxed);
    }

    fn names(&self) -> MutexGuard<'_, Vec<String>> {
        self.0.names.lock().unwrap()
    }

    fn view(&self) -> MemoryTransaction {
        MemoryTransaction {
            databases: Arc::clone(&self.0.committed.lock().unwrap()),
            now_ms: self.0.now_ms.load(Ordering::Relaxed),
            number: self.0.commits.load(Ordering::Relaxed) + 1,
            store: self.clone(),
        }
    }
}

impl Store for MemoryStore {
    fn database(&self, name: &str) -> Result<DatabaseId, DatabaseError> {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"_-.".contains(&b);
        if name.is_empty() || name.len() > limits::DATABASE_NAME_LEN_MAX || !name.bytes().all(plain)
        {
            return Err(DatabaseError::BadName { name: name.to_owned() });
        }
        if let Some(id) = self.find_database(name) {
            return Ok(id);
        }
        let mut names = self.names();
        if names.len() == DATABASES_MAX {
            return Err(DatabaseError::TooMany { max: DATABASES_MAX });
        }
        names.push(name.to_owned());
        Ok(DatabaseId::from_index(names.len() - 1))
    }

    fn find_database(&self, name: &str) -> Option<DatabaseId> {
        self.names().iter().position(|other| other == name).map(DatabaseId::from_index)
    }

    fn databases(&self) -> Vec<(DatabaseId, String)> {
        let names = self.names();
        names
            .iter()
            .enumerate()
            .map(|(i, name)| (DatabaseId::from_index(i), name.clone()))
            .collect()
    }

    fn databases_dropped(&self) -> u64 {
        self.0.dropped.load(Ordering::SeqCst)
    }

    fn capabilities(&self, _: DatabaseId) -> Capabilities {
        Capabilities { name: "memory", ..Capabilities::TREE }
    }

    fn snapshot(&self) -> Result<Box<dyn Snapshot>, ReadError> {
        Ok(Box::new(MemorySnapshot { view: self.view(), store: self.clone() }))
    }

    fn writer(&self) -> Result<Box<dyn Writer>, WriteError> {
        Ok(Box::new(MemoryWriter { store: self.clone(), open: None }))
    }
}

/// A view of all databases, and for a writer the copy that it changes.
struct MemoryTransaction {
    databases: Arc<Databases>,
    now_ms: u64,
    number: CommitNumber,
    store: MemoryStore,
}

impl MemoryTransaction {
    fn live(&self, database: DatabaseId, key: &[u8]) -> Result<Option<&Stored>, ReadError> {
        check_key(key)?;
        let found = self.databases[database.index()].get(key);
        Ok(found.filter(|stored| stored.record().is_live(self.now_ms)))
    }
}

fn check_key(key: &[u8]) -> Result<(), ReadError> {
    if key.is_empty() || key.len() > limits::KEY_LEN_MAX {
        return Err(ReadError::KeyLength { len: key.len(), max: limits::KEY_LEN_MAX });
    }
    Ok(())
}

impl ReadTransaction for MemoryTransaction {
    fn now_ms(&self) -> u64 {
        self.now_ms
    }

    fn get<'t>(
        &'t mut self,
        database: DatabaseId,
        key: &[u8],
    ) -> Result<Option<Record<'t>>, ReadError> {
        Ok(self.live(database, key)?.map(Stored::record))
    }

    fn seek<'t>(
        &'t mut self,
        database: DatabaseId,
        from: Bound<&[u8]>,
        direction: Direction,
    ) -> Result<Option<Entry<'t>>, ReadError> {
        if let Bound::Included(key) | Bound::Excluded(key) = from {
            check_key(key)?;
        }
        let now_ms = self.now_ms;
        let live = |(_, stored): &(&Vec<u8>, &Stored)| stored.record().is_live(now_ms);
        let map = &self.databases[database.index()];
        let found = match direction {
            Direction::Forward => map.range::<[u8], _>((from, Bound::Unbounded)).find(live),
            Direction::Backward => map.range::<[u8], _>((Bound::Unbounded, from)).rev().find(live),
        };
        Ok(found.map(|(key, stored)| Entry { key, record: stored.record() }))
    }

    fn statistics(&mut self, database: DatabaseId) -> Result<DatabaseStatistics, ReadError> {
        let map = &self.databases[database.index()];
        Ok(DatabaseStatistics {
            records: map.len() as u64,
            key_bytes: map.keys().map(|key| key.len() as u64).sum(),
            value_bytes: map.values().map(|stored| stored.value.len() as u64).sum(),
        })
    }
}

impl WriteTransaction for MemoryTransaction {
    fn number(&self) -> CommitNumber {
        self.number
    }

    fn put(
        &mut self,
        database: DatabaseId,
        key: &[u8],
        record: NewRecord<'_>,
    ) -> Result<(), WriteError> {
        check_key(key)?;
        if record.value.len() > limits::VALUE_LEN_MAX {
            return Err(WriteError::ValueLength {
                len: record.value.len(),
                max: limits::VALUE_LEN_MAX,
            });
        }
        if key == b"broken engine" {
            return Err(WriteError::Engine { message: "the disk is on fire".to_owned() });
        }
        assert_ne!(key, b"panic", "a key that this store panics at");
        let stored = Stored {
            value: record.value.to_vec(),
            flags: record.flags,
            expires_at_ms: record.expires_at_ms,
            version: self.number,
            kind: record.kind,
        };
        Arc::make_mut(&mut self.databases)[database.index()].insert(key.to_vec(), stored);
        Ok(())
    }

    fn delete(&mut self, database: DatabaseId, key: &[u8]) -> Result<bool, WriteError> {
        let seen = self.live(database, key)?.is_some();
        Arc::make_mut(&mut self.databases)[database.index()].remove(key);
        Ok(seen)
    }

    fn clear(&mut self, database: DatabaseId) -> Result<(), WriteError> {
        Arc::make_mut(&mut self.databases)[database.index()].clear();
        Ok(())
    }

    fn open_database(&mut self, name: &str, _max: usize) -> Result<DatabaseId, WriteError> {
        Ok(self.store.database(name)?)
    }

    fn drop_database(&mut self, database: DatabaseId) -> Result<bool, WriteError> {
        self.clear(database)?;
        let name = std::mem::take(&mut self.store.names()[database.index()]);
        self.store.0.dropped.fetch_add(1, Ordering::SeqCst);
        Ok(!name.is_empty())
    }
}

struct MemorySnapshot {
    view: MemoryTransaction,
    store: MemoryStore,
}

impl ReadTransaction for MemorySnapshot {
    fn now_ms(&self) -> u64 {
        self.view.now_ms()
    }

    fn get<'t>(
        &'t mut self,
        database: DatabaseId,
        key: &[u8],
    ) -> Result<Option<Record<'t>>, ReadError> {
        self.view.get(database, key)
    }

    fn seek<'t>(
        &'t mut self,
        database: DatabaseId,
        from: Bound<&[u8]>,
        direction: Direction,
    ) -> Result<Option<Entry<'t>>, ReadError> {
        self.view.seek(database, from, direction)
    }

    fn statistics(&mut self, database: DatabaseId) -> Result<DatabaseStatistics, ReadError> {
        self.view.statistics(database)
    }
}

impl Snapshot for MemorySnapshot {
    fn renew(&mut self) -> Result<(), ReadError> {
        self.view = self.store.view();
        Ok(())
    }

    fn release(&mut self) {}
}

struct MemoryWriter {
    store: MemoryStore,
    open: Option<MemoryTransaction>,
}

impl Writer for MemoryWriter {
    fn begin(&mut self) -> Result<&mut dyn WriteTransaction, WriteError> {
        assert!(self.open.is_none(), "a transaction is open");
        Ok(self.open.insert(self.store.view()))
    }

    fn transaction(&mut self) -> &mut dyn WriteTransaction {
        self.open.as_mut().expect("a transaction is open")
    }

    fn commit(&mut self) -> Result<CommitNumber, CommitError> {
        let transaction = self.open.take().expect("a transaction is open");
        let collisions = self.store.0.collisions.load(Ordering::Relaxed);
        if collisions > 0 {
            self.store.collide(collisions - 1);
            self.store.advance(1);
            return Err(CommitError::Conflict);
        }
        *self.store.0.committed.lock().unwrap() = transaction.databases;
        self.store.0.commits.store(transaction.number, Ordering::Relaxed);
        Ok(transaction.number)
    }

    fn rollback(&mut self) -> Result<(), CommitError> {
        self.open = None;
        Ok(())
    }

    fn flush(&mut self) -> Result<(), CommitError> {
        Ok(())
    }
}
