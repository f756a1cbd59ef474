//! Groups of jobs over a store that fails when told to.

mod upkeep;

use std::sync::{Mutex, PoisonError, mpsc};

use tokaido_script::Sources;
use tokaido_store::{
    CommitNumber, NewRecord, Store, WriteError, WriteTransaction, Writer, transact, tree,
};

use super::*;
use crate::pause::Paused;

/// What the store fails with.
#[derive(Clone, Default)]
struct Failures {
    flush: Arc<Mutex<Option<CommitError>>>,
    commit: Arc<Mutex<Option<CommitError>>>,
    rollback: Arc<Mutex<Option<CommitError>>>,
    flushes: Arc<Mutex<usize>>,
    /// How long to wait before the first transaction of each group.
    pause: Arc<Mutex<Option<Duration>>>,
    /// Panics with this instead of tidying.
    tidying: Arc<Mutex<Option<&'static str>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A writer that fails in place of a real one, which then drops what was not flushed.
struct FailingWriter {
    store: Arc<dyn Store>,
    inner: Option<Box<dyn Writer>>,
    failures: Failures,
    is_in_group: bool,
}

impl FailingWriter {
    fn new(store: Arc<dyn Store>, failures: Failures) -> Self {
        Self { store, inner: None, failures, is_in_group: false }
    }

    fn inner(&mut self) -> &mut dyn Writer {
        let store = &self.store;
        &mut **self.inner.get_or_insert_with(|| store.writer().expect("a writer"))
    }

    fn fail(&mut self, error: CommitError) -> Result<(), CommitError> {
        self.inner = None;
        Err(error)
    }
}

impl Writer for FailingWriter {
    fn begin(&mut self) -> Result<&mut dyn WriteTransaction, WriteError> {
        if let Some(pause) = lock(&self.failures.pause.clone()).filter(|_| !self.is_in_group) {
            std::thread::sleep(pause);
        }
        self.is_in_group = true;
        self.inner().begin()
    }
    fn transaction(&mut self) -> &mut dyn WriteTransaction {
        self.inner().transaction()
    }
    fn commit(&mut self) -> Result<CommitNumber, CommitError> {
        let failure = lock(&self.failures.commit.clone()).take();
        match failure {
            Some(error) => self.fail(error).and(Ok(0)),
            None => self.inner().commit(),
        }
    }
    fn rollback(&mut self) -> Result<(), CommitError> {
        match lock(&self.failures.rollback.clone()).take() {
            Some(error) => self.fail(error),
            None => self.inner().rollback(),
        }
    }
    fn flush(&mut self) -> Result<(), CommitError> {
        *lock(&self.failures.flushes) += 1;
        self.is_in_group = false;
        match lock(&self.failures.flush.clone()).take() {
            Some(error) => self.fail(error),
            None => self.inner().flush(),
        }
    }
    fn tidy(&mut self) -> Result<(), WriteError> {
        match lock(&self.failures.tidying.clone()).take() {
            Some(panic) => std::panic::resume_unwind(Box::new(panic)),
            None => self.inner().tidy(),
        }
    }
}

/// A store, the jobs that wait for its writer, and their answers.
struct Bed {
    store: Arc<dyn Store>,
    failures: Failures,
    limits: Limits,
    metrics: Metrics,
    pause: Arc<Pause>,
    handle: WriterHandle,
    queue: JobQueue,
    answers: (mpsc::Sender<String>, mpsc::Receiver<String>),
    _directory: tempfile::TempDir,
}

type Work = Box<dyn FnMut(&mut WriterContext<'_>) -> Result<(), String> + Send>;

struct TestJob {
    work: Work,
    result: Result<(), String>,
    answer: mpsc::Sender<String>,
}

impl Job for TestJob {
    fn run(&mut self, context: &mut WriterContext<'_>) {
        self.result = (self.work)(context);
    }

    fn finish(self: Box<Self>, outcome: Result<(), CommitError>) {
        let outcome = outcome.map_err(|error| error.to_string());
        let text = outcome.and(self.result).err().unwrap_or_else(|| "durable".to_owned());
        self.answer.send(text).expect("the test waits");
    }
}

impl Bed {
    fn new() -> Self {
        Self::with_options(tree::Options::default())
    }

    fn with_options(options: tree::Options) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let store = Arc::new(tree::open(directory.path(), options).expect("a store"));
        let (handle, queue) = WriterHandle::new(100);
        Self {
            store,
            failures: Failures::default(),
            limits: Limits::default(),
            metrics: Metrics::new(1),
            pause: Arc::default(),
            handle,
            queue,
            answers: mpsc::channel(),
            _directory: directory,
        }
    }

    fn submit(
        &self,
        work: impl FnMut(&mut WriterContext<'_>) -> Result<(), String> + Send + 'static,
    ) {
        let (work, answer) = (Box::new(work), self.answers.0.clone());
        let job = Box::new(TestJob { work, result: Ok(()), answer });
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(self.handle.submit(job));
    }

    fn put(&self, key: &'static str) {
        let main = self.store.database("main").expect("a name");
        self.submit(move |context| {
            let put =
                transact(context.writer, |tx| tx.put(main, key.as_bytes(), NewRecord::of(b"v")));
            put.map_err(|error| error.to_string())
        });
    }

    /// Runs all waiting jobs as the writer does. Returns their answers, and the keys that remain.
    fn run(self) -> (Vec<String>, Vec<String>, Self) {
        let (handle, queue) = WriterHandle::new(100);
        let store = self.store.clone();
        let program = LocalProgram::of(&store, Sources::default());
        let inner = FailingWriter::new(store, self.failures.clone());
        let pen = Pen::default();
        pen.put(GroupWriter::new(Box::new(inner)));
        drop(self.handle);
        run(&self.queue, &pen, program, &self.metrics, &self.limits, &self.pause, true);
        let answers = self.answers.1.try_iter().collect();
        let bed = Self { handle, queue, ..self };
        (answers, bed.keys(), bed)
    }

    fn keys(&self) -> Vec<String> {
        let main = self.store.database("main").expect("a name");
        let mut snapshot = self.store.snapshot().expect("a snapshot");
        let candidates = ["a", "b", "c", "open"];
        let is_there = |key: &&str| snapshot.get(main, key.as_bytes()).expect("a read").is_some();
        candidates.into_iter().filter(is_there).map(str::to_owned).collect()
    }
}

/// Takes the pen as a worker does. Returns whether it was there to take.
fn try_write(bed: &Bed) -> bool {
    bed.handle.try_write(&bed.pause, |_| ()).is_some()
}

#[test]
fn a_worker_takes_the_pen_if_nobody_writes_or_waits_and_the_disk_is_not_waited_for() {
    let options = tree::Options { sync: tree::SyncMode::Os, ..tree::Options::default() };
    let bed = Bed::with_options(options);
    assert!(!try_write(&bed), "its thread has not put the writer in");
    bed.handle.pen().put(GroupWriter::new(bed.store.writer().expect("a writer")));
    assert!(try_write(&bed));
    let while_it_writes = bed.handle.try_write(&bed.pause, |_| try_write(&bed));
    assert_eq!(while_it_writes, Some(false));
    bed.put("a");
    assert!(!try_write(&bed), "a job waits");

    let full = tree::Options { sync: tree::SyncMode::Os, memtable_bytes: 0, ..Default::default() };
    for (bed, why) in
        [(Bed::new(), "each group is synced"), (Bed::with_options(full), "the memtable is full")]
    {
        bed.handle.pen().put(GroupWriter::new(bed.store.writer().expect("a writer")));
        assert!(!try_write(&bed), "{why}");
    }
}

#[test]
fn jobs_that_wait_share_one_flush() {
    let bed = Bed::new();
    for key in ["a", "b", "c"] {
        bed.put(key);
    }
    let (answers, keys, bed) = bed.run();
    assert_eq!(answers, ["durable"; 3]);
    assert_eq!(keys, ["a", "b", "c"]);
    assert_eq!(*lock(&bed.failures.flushes), 1);
}

#[test]
fn a_job_that_takes_long_holds_up_its_own_writer_only() {
    let mut bed = Bed::new();
    let (go_on, told) = mpsc::channel();
    bed.submit(move |_| told.recv().map_err(|_| "nobody came".to_owned()));
    // If this had to wait for another writer, it would never run, and the first job would say so.
    bed.submit(move |_| go_on.send(()).map_err(|e| e.to_string()));
    bed.limits.group_jobs_max = 1;
    bed.handle = WriterHandle::new(1).0;
    std::thread::scope(|scope| {
        for removes_expired in [true, false] {
            let queue = bed.queue.clone();
            let (store, failures) = (bed.store.clone(), bed.failures.clone());
            let (metrics, limits, pause) = (&bed.metrics, &bed.limits, &bed.pause);
            scope.spawn(move || {
                let program = LocalProgram::of(&store, Sources::default());
                let inner = FailingWriter::new(store, failures);
                let pen = Pen::default();
                pen.put(GroupWriter::new(Box::new(inner)));
                run(&queue, &pen, program, metrics, limits, pause, removes_expired);
            });
        }
    });
    let answers: Vec<_> = bed.answers.1.try_iter().collect();
    assert_eq!(answers, ["durable"; 2]);
}

#[test]
fn a_group_is_as_large_and_lasts_as_long_as_it_may() {
    let limits = [
        (Limits { group_jobs_max: 2, ..Limits::default() }, 2),
        (Limits { group_ms: 0, ..Limits::default() }, 3),
    ];
    for (limits, flushes) in limits {
        let bed = Bed { limits, ..Bed::new() };
        for key in ["a", "b", "c"] {
            bed.put(key);
        }
        let (answers, _, bed) = bed.run();
        assert_eq!(answers, ["durable"; 3]);
        assert_eq!(*lock(&bed.failures.flushes), flushes);
    }
}

#[test]
fn jobs_that_have_come_while_the_store_paces_writes_share_a_group() {
    let limits = Limits { group_ms: 500, expiry_interval_ms: 60_000, ..Limits::default() };
    let bed = Bed { limits, ..Bed::new() };
    *lock(&bed.failures.pause) = Some(Duration::from_millis(600));
    for key in ["a", "b", "c"] {
        bed.put(key);
    }
    let (answers, _, bed) = bed.run();
    assert_eq!(answers, ["durable"; 3]);
    assert_eq!(*lock(&bed.failures.flushes), 1);
}

#[test]
fn after_a_failed_flush_no_job_of_the_group_is_told_otherwise() {
    let bed = Bed::new();
    bed.put("a");
    bed.put("b");
    *lock(&bed.failures.flush) = Some(CommitError::DiskFull);
    let (answers, keys, bed) = bed.run();
    assert_eq!(answers, [CommitError::DiskFull.to_string(), CommitError::DiskFull.to_string()]);
    assert!(keys.is_empty());
    assert!(!bed.metrics.store_refuses_writes.load(Relaxed));

    bed.put("c");
    let (answers, keys, _) = bed.run();
    assert_eq!((answers, keys), (vec!["durable".to_owned()], vec!["c".to_owned()]));
}

#[test]
fn a_sync_of_unknown_outcome_is_remembered() {
    let bed = Bed::new();
    bed.put("a");
    let error = CommitError::Undetermined { message: "EIO".to_owned() };
    *lock(&bed.failures.flush) = Some(error.clone());
    let (answers, _, bed) = bed.run();
    assert_eq!(answers, [error.to_string()]);
    assert!(bed.metrics.store_refuses_writes.load(Relaxed));
}

#[test]
fn a_commit_that_fails_takes_the_group_with_it() {
    let bed = Bed::new();
    bed.put("a");
    let failures = bed.failures.clone();
    bed.submit(move |context| {
        *lock(&failures.commit) = Some(CommitError::Failed { message: "as told".to_owned() });
        context.writer.begin().map_err(|e| e.to_string())?;
        context.writer.commit().map(drop).map_err(|e| e.to_string())
    });
    bed.put("c");
    let (answers, keys, _) = bed.run();
    assert!(answers[0].contains("as told"), "{answers:?}");
    assert!(answers[1].contains("as told"), "{answers:?}");
    assert_eq!((answers[2].as_str(), keys), ("durable", vec!["c".to_owned()]));
}

#[test]
fn a_rollback_that_fails_takes_the_group_with_it() {
    let bed = Bed::new();
    bed.put("a");
    let failures = bed.failures.clone();
    bed.submit(move |context| {
        context.writer.begin().map_err(|error| error.to_string())?;
        let message = "no way back".to_owned();
        *lock(&failures.rollback) = Some(CommitError::Failed { message });
        context.writer.rollback().map_err(|error| error.to_string())
    });
    bed.put("c");
    let (answers, keys, _) = bed.run();
    assert!(answers[0].contains("no way back"), "{answers:?}");
    assert!(answers[1].contains("no way back"), "{answers:?}");
    assert_eq!((answers[2].as_str(), keys), ("durable", vec!["c".to_owned()]));
}

#[test]
fn a_panic_is_rolled_back_and_answered() {
    let bed = Bed::new();
    let main = bed.store.database("main").expect("a name");
    bed.put("a");
    bed.submit(move |context| {
        let tx = context.writer.begin().map_err(|error| error.to_string())?;
        tx.put(main, b"open", NewRecord::of(b"v")).map_err(|error| error.to_string())?;
        panic!("a test of panics");
    });
    bed.put("b");
    let (answers, keys, _) = bed.run();
    assert_eq!((answers[0].as_str(), answers[2].as_str()), ("durable", "durable"));
    assert!(answers[1].contains("an error in the program itself"), "{answers:?}");
    assert_eq!(keys, ["a", "b"]);
}

#[test]
fn a_transaction_left_open_is_rolled_back() {
    let bed = Bed::new();
    let main = bed.store.database("main").expect("a name");
    bed.submit(move |context| {
        let tx = context.writer.begin().map_err(|error| error.to_string())?;
        tx.put(main, b"open", NewRecord::of(b"v")).map_err(|error| error.to_string())
    });
    bed.put("a");
    let (answers, keys, _) = bed.run();
    assert_eq!((answers, keys), (vec!["durable".to_owned(); 2], vec!["a".to_owned()]));
}

#[test]
fn no_job_begins_behind_the_one_that_pauses_writes() {
    const LONG: Duration = Duration::from_secs(1000);
    let bed = Bed::new();
    bed.put("a");
    let (pause, store) = (bed.pause.clone(), bed.store.clone());
    let main = store.database("main").expect("a name");
    let is_there = move |key: &[u8]| {
        let mut snapshot = store.snapshot().expect("a snapshot");
        snapshot.get(main, key).expect("a read").is_some()
    };
    let pausing = pause.clone();
    bed.submit(move |_| {
        pausing.begin(Paused::Writes, Instant::now() + LONG);
        Ok(())
    });
    bed.put("b");
    let (answers, keys, _) = std::thread::scope(|scope| {
        scope.spawn(move || {
            while !is_there(b"a") {
                std::thread::yield_now();
            }
            let was_there = is_there(b"b");
            pause.end();
            assert!(!was_there, "it was written during the pause");
        });
        bed.run()
    });
    assert_eq!((answers.len(), keys), (3, vec!["a".to_owned(), "b".to_owned()]));
}

#[test]
fn what_waits_while_the_server_stops_is_given_up() {
    let bed = Bed::new();
    bed.pause.begin(Paused::All, Instant::now() + Duration::from_secs(1000));
    bed.put("a");
    bed.pause.close();
    let (answers, keys, _) = bed.run();
    assert_eq!((answers.len(), keys.len()), (0, 0));
}
