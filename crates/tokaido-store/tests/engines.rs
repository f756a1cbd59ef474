//! An engine whose reads block and which takes several writers at a time: its capabilities are all
//! that is needed to place requests. The same placement works for the durable engine.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    ops::Bound,
    sync::{
        Arc, Barrier, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread::{self, ThreadId},
};

use tokaido_store::{
    Capabilities, CommitError, CommitNumber, DatabaseError, DatabaseId, DatabaseStatistics,
    Direction, Entry, Group, GroupWriter, NewRecord, ReadError, ReadTransaction, Record, Snapshot,
    Store, WriteError, WriteOperations, WriteTransaction, Writer, transact_unflushed, tree,
};

/// Like a client of a remote server: optimistic transactions, as many as there are writers.
#[derive(Clone, Default)]
struct RemoteStore(Arc<Remote>);

#[derive(Default)]
struct Remote {
    committed: Mutex<Committed>,
    writers: AtomicUsize,
    conflicts: AtomicUsize,
    /// The threads that have waited for a read.
    readers: Mutex<HashSet<ThreadId>>,
}

#[derive(Default)]
struct Committed {
    number: CommitNumber,
    records: BTreeMap<Vec<u8>, (Vec<u8>, CommitNumber)>,
}

const WRITERS_MAX: usize = 4;

impl Store for RemoteStore {
    fn database(&self, _: &str) -> Result<DatabaseId, DatabaseError> {
        Ok(DatabaseId::from_index(0))
    }

    fn find_database(&self, _: &str) -> Option<DatabaseId> {
        Some(DatabaseId::from_index(0))
    }

    fn databases(&self) -> Vec<(DatabaseId, String)> {
        vec![(DatabaseId::from_index(0), "main".to_owned())]
    }

    fn capabilities(&self, _: DatabaseId) -> Capabilities {
        Capabilities {
            name: "remote",
            reads_block: true,
            writers_max: WRITERS_MAX,
            ..Capabilities::TREE
        }
    }

    fn snapshot(&self) -> Result<Box<dyn Snapshot>, ReadError> {
        Ok(Box::new(RemoteTransaction::new(&self.0)))
    }

    fn writer(&self) -> Result<Box<dyn Writer>, WriteError> {
        if self.0.writers.fetch_add(1, Ordering::SeqCst) == WRITERS_MAX {
            self.0.writers.fetch_sub(1, Ordering::SeqCst);
            return Err(WriteError::WriterBusy);
        }
        Ok(Box::new(RemoteWriter(RemoteTransaction::new(&self.0))))
    }
}

struct RemoteTransaction {
    remote: Arc<Remote>,
    /// The version of each record that was read; 0 if there was none.
    read: HashMap<Vec<u8>, CommitNumber>,
    written: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    value: Vec<u8>,
}

impl RemoteTransaction {
    fn new(remote: &Arc<Remote>) -> Self {
        let (read, written) = (HashMap::new(), BTreeMap::new());
        Self { remote: Arc::clone(remote), read, written, value: Vec::new() }
    }
}

impl ReadTransaction for RemoteTransaction {
    fn now_ms(&self) -> u64 {
        0
    }

    fn get<'t>(&'t mut self, _: DatabaseId, key: &[u8]) -> Result<Option<Record<'t>>, ReadError> {
        self.remote.readers.lock().unwrap().insert(thread::current().id());
        let found = match self.written.get(key) {
            Some(written) => written.clone().map(|value| (value, 0)),
            None => {
                let found = self.remote.committed.lock().unwrap().records.get(key).cloned();
                let version = found.as_ref().map_or(0, |(_, version)| *version);
                self.read.entry(key.to_vec()).or_insert(version);
                found
            }
        };
        let Some((value, version)) = found else { return Ok(None) };
        self.value = value;
        Ok(Some(Record::of(&self.value, version)))
    }

    fn seek<'t>(
        &'t mut self,
        _: DatabaseId,
        _: Bound<&[u8]>,
        _: Direction,
    ) -> Result<Option<Entry<'t>>, ReadError> {
        Ok(None)
    }

    fn statistics(&mut self, _: DatabaseId) -> Result<DatabaseStatistics, ReadError> {
        Ok(DatabaseStatistics::default())
    }
}

impl WriteTransaction for RemoteTransaction {
    fn number(&self) -> CommitNumber {
        self.remote.committed.lock().unwrap().number + 1
    }

    fn put(&mut self, _: DatabaseId, key: &[u8], new: NewRecord<'_>) -> Result<(), WriteError> {
        self.written.insert(key.to_vec(), Some(new.value.to_vec()));
        Ok(())
    }

    fn delete(&mut self, database: DatabaseId, key: &[u8]) -> Result<bool, WriteError> {
        let is_there = self.get(database, key)?.is_some();
        self.written.insert(key.to_vec(), None);
        Ok(is_there)
    }

    fn clear(&mut self, _: DatabaseId) -> Result<(), WriteError> {
        Err(WriteError::ReadOnly)
    }
}

impl Snapshot for RemoteTransaction {
    fn renew(&mut self) -> Result<(), ReadError> {
        Ok(())
    }

    fn release(&mut self) {}
}

struct RemoteWriter(RemoteTransaction);

impl Drop for RemoteWriter {
    fn drop(&mut self) {
        self.0.remote.writers.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Writer for RemoteWriter {
    fn begin(&mut self) -> Result<&mut dyn WriteTransaction, WriteError> {
        Ok(&mut self.0)
    }

    fn transaction(&mut self) -> &mut dyn WriteTransaction {
        &mut self.0
    }

    /// Decides here, as a remote engine does.
    fn commit(&mut self) -> Result<CommitNumber, CommitError> {
        let transaction = &mut self.0;
        let (read, written) = (transaction.read.drain(), std::mem::take(&mut transaction.written));
        let mut committed = transaction.remote.committed.lock().unwrap();
        let version = |key: &Vec<u8>| committed.records.get(key).map_or(0, |(_, version)| *version);
        // All are checked, so that none is left for the next transaction.
        if read.filter(|(key, seen)| version(key) != *seen).count() > 0 {
            transaction.remote.conflicts.fetch_add(1, Ordering::SeqCst);
            return Err(CommitError::Conflict);
        }
        committed.number += 1;
        let number = committed.number;
        for (key, value) in written {
            match value {
                Some(value) => drop(committed.records.insert(key, (value, number))),
                None => drop(committed.records.remove(&key)),
            }
        }
        Ok(number)
    }

    fn rollback(&mut self) -> Result<(), CommitError> {
        self.0.read.clear();
        self.0.written.clear();
        Ok(())
    }

    fn flush(&mut self) -> Result<(), CommitError> {
        Ok(())
    }
}

/// Places a read as a server does that only knows the capabilities of the engine.
fn read(store: &Arc<dyn Store>, database: DatabaseId, key: &'static str) -> Option<String> {
    let store_there = Arc::clone(store);
    let read = move || {
        let mut snapshot = store_there.snapshot().unwrap();
        let record = snapshot.get(database, key.as_bytes()).unwrap();
        record.map(|record| String::from_utf8(record.value.to_vec()).unwrap())
    };
    match store.capabilities(database).reads_block {
        true => thread::spawn(read).join().unwrap(),
        false => read(),
    }
}

type Work = Box<dyn FnMut(&mut dyn WriteTransaction) + Send>;

/// Places writes as a server does: as many committers as the engine takes, each of which commits
/// the waiting work as a group. Returns how many there were, and the answers.
fn write(store: &dyn Store, database: DatabaseId, work: Vec<Work>) -> (usize, Vec<String>) {
    let committers = store.capabilities(database).writers_max;
    let (answer, answers) = mpsc::channel();
    let queue = Mutex::new(work.into_iter());
    let are_open = Barrier::new(committers);
    thread::scope(|scope| {
        for _ in 0..committers {
            scope.spawn(|| {
                let mut writer = GroupWriter::new(store.writer().unwrap());
                let mut group = Group::default();
                are_open.wait();
                loop {
                    let next = queue.lock().unwrap().next();
                    let Some(work) = next else { break };
                    group.run((work, Ok(())), &mut writer, |(work, result), writer| {
                        *result = transact_unflushed(writer, |tx| -> Result<(), WriteError> {
                            work(tx);
                            Ok(())
                        });
                    });
                    let flushed = writer.end_group();
                    group.answer(&flushed, |(_, result), flushed| {
                        answer.send(format!("{result:?} {flushed:?}")).unwrap();
                    });
                }
            });
        }
    });
    drop(answer);
    (committers, answers.into_iter().collect())
}

const INCREMENTS: usize = 200;

/// Increments this many counters in turn, so that those which run at the same time do not collide.
const COUNTERS: usize = 20;

fn increments(database: DatabaseId) -> Vec<Work> {
    let increment = |n: usize| {
        move |tx: &mut dyn WriteTransaction| {
            tx.increment(database, (n % COUNTERS).to_string().as_bytes(), 1).unwrap();
        }
    };
    (0..INCREMENTS).map(|n| Box::new(increment(n)) as Work).collect()
}

#[test]
fn placement_by_what_an_engine_says_of_itself_serves_one_that_is_far_away() {
    let remote = RemoteStore::default();
    let store: Arc<dyn Store> = Arc::new(remote.clone());
    let main = store.database("main").unwrap();
    // Two transactions read before either writes, so that one collides and runs again.
    let both_have_read = Arc::new(Barrier::new(2));
    let mut work = increments(main);
    for _ in 0..2 {
        let (both_have_read, mut is_first) = (Arc::clone(&both_have_read), true);
        let meet = move |tx: &mut dyn WriteTransaction| {
            tx.get(main, b"met").unwrap();
            if std::mem::take(&mut is_first) {
                both_have_read.wait();
            }
            tx.increment(main, b"met", 1).unwrap();
        };
        work.push(Box::new(meet));
    }
    let (committers, answers) = write(&*store, main, work);
    assert_eq!(committers, WRITERS_MAX);
    assert_eq!(answers, vec!["Ok(()) Ok(())"; INCREMENTS + 2]);
    assert!(remote.0.conflicts.load(Ordering::SeqCst) > 0);

    assert_eq!(read(&store, main, "met").unwrap(), "2");
    assert_eq!(read(&store, main, "7").unwrap(), (INCREMENTS / COUNTERS).to_string());
    assert!(!remote.0.readers.lock().unwrap().contains(&thread::current().id()));
}

#[test]
fn the_same_placement_serves_the_durable_engine() {
    let directory = tempfile::tempdir().unwrap();
    let store: Arc<dyn Store> =
        Arc::new(tree::open(directory.path(), tree::Options::default()).unwrap());
    let main = store.database("main").unwrap();
    let (committers, answers) = write(&*store, main, increments(main));
    assert_eq!(committers, 1);
    assert_eq!(answers, vec!["Ok(()) Ok(())"; INCREMENTS]);
    assert_eq!(read(&store, main, "7").unwrap(), (INCREMENTS / COUNTERS).to_string());
}
