//! The protocol: lines of a verb and a text, which is sent back with the place where the request ran.

use super::*;

/// What a test and the protocol tell each other.
pub(super) struct Backstage {
    pub(super) database: DatabaseId,
    /// Reports what the protocol does, as it does it.
    pub(super) events: Mutex<Sender<&'static str>>,
    /// Releases a request that stalls on the writer.
    pub(super) go_on: Mutex<Receiver<()>>,
    /// Whether what requests wait for has happened.
    pub(super) happened: AtomicBool,
    /// Keys that requests wait for.
    pub(super) waiting: Mutex<Vec<(Vec<u8>, Mailbox)>>,
    /// The error of the next flush.
    pub(super) flush_error: Mutex<Option<CommitError>>,
}

impl Backstage {
    pub(super) fn tell(&self, event: &'static str) {
        // The test may be over.
        let _ = lock(&self.events).send(event);
    }
}

impl Observer for Backstage {
    fn published(&self, group: &[TransactionChanges<'_>]) {
        for change in group.iter().flat_map(|transaction| &transaction.changes) {
            let What::Put { key, .. } = change.what else { continue };
            let mut waiting = lock(&self.waiting);
            waiting.extract_if(.., |(k, _)| k == key).for_each(|(_, mailbox)| mailbox.wake());
        }
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) struct Echo {
    pub(super) mailbox: Mailbox,
    pub(super) backstage: Arc<Backstage>,
}

impl Protocol for Echo {
    type Token = String;

    fn step(
        &mut self,
        input: &[u8],
        context: &mut Context<'_>,
        output: &mut Vec<u8>,
    ) -> Progress<String> {
        let Some(end) = memchr::memchr(b'\n', input) else { return Progress::NeedsInput };
        let line = String::from_utf8_lossy(&input[..end]);
        let Some((verb, text)) = line.split_once(' ') else {
            self.fail("a line is a verb and a text", output);
            return Progress::Failed;
        };
        let place = match (&mut context.target, context.may_take_long) {
            (Target::Snapshot(_), false) => "worker",
            (Target::Snapshot(_), true) => "pool",
            (Target::Writer(_), _) => "writer",
        };
        let happened = self.backstage.happened.load(SeqCst);
        match (verb, &mut context.target) {
            ("slow", _) if place == "worker" => return Progress::NeedsPool,
            ("put" | "quiet" | "stall" | "follow" | "await" | "take", Target::Snapshot(_)) => {
                return Progress::NeedsWriter;
            }
            ("put" | "quiet", Target::Writer(writer)) => {
                let database = self.backstage.database;
                let record = NewRecord::of(b"1");
                transact(*writer, |tx| tx.put(database, text.as_bytes(), record))
                    .expect("it is written");
            }
            ("stall" | "follow", _) => {
                if verb == "follow" {
                    self.mailbox.hold();
                }
                self.backstage.tell("stalls");
                lock(&self.backstage.go_on).recv_timeout(PATIENCE).expect("it goes on");
            }
            ("take", Target::Writer(writer)) => {
                let key = text.as_bytes();
                let tx = writer.begin().expect("a transaction");
                let is_there = tx.get(self.backstage.database, key).expect("it is read").is_some();
                writer.rollback().expect("nothing was written");
                if !is_there {
                    lock(&self.backstage.waiting).push((key.to_vec(), self.mailbox.clone()));
                    self.backstage.tell("waits");
                    return Progress::Block { until: None };
                }
            }
            ("await", _) if !happened => {
                self.backstage.tell("waits");
                return Progress::Block { until: None };
            }
            ("nap", _) if !context.timed_out => {
                self.backstage.tell("waits");
                return Progress::Block { until: Some(Instant::now()) };
            }
            ("slow-panic", _) if place == "worker" => return Progress::NeedsPool,
            ("panic" | "slow-panic", _) => panic!("as the test wants it"),
            _ => {}
        }
        let consumed = end + 1;
        if verb == "quiet" {
            return Progress::Done { consumed, token: None };
        }
        output.extend_from_slice(format!("{text}@{place}\n").as_bytes());
        Progress::Done { consumed, token: Some(text.to_owned()) }
    }

    fn refuse(&mut self, token: String, error: &CommitError, output: &mut Vec<u8>) {
        output.extend_from_slice(format!("alas, {token}: {error}\n").as_bytes());
    }

    fn fail(&mut self, reason: &str, output: &mut Vec<u8>) {
        output.extend_from_slice(format!("farewell: {reason}\n").as_bytes());
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        self.backstage.tell("ends");
    }
}

/// The store's writer, whose flush fails when told to.
pub(super) struct FailingWriter {
    pub(super) inner: Box<dyn Writer>,
    pub(super) backstage: Arc<Backstage>,
}

impl Writer for FailingWriter {
    fn begin(&mut self) -> Result<&mut dyn WriteTransaction, WriteError> {
        self.inner.begin()
    }
    fn transaction(&mut self) -> &mut dyn WriteTransaction {
        self.inner.transaction()
    }
    fn commit(&mut self) -> Result<CommitNumber, CommitError> {
        self.inner.commit()
    }
    fn rollback(&mut self) -> Result<(), CommitError> {
        self.inner.rollback()
    }
    fn flush(&mut self) -> Result<(), CommitError> {
        let error = lock(&self.backstage.flush_error).take();
        error.map_or_else(|| self.inner.flush(), Err)
    }
}
