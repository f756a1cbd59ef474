//! Tests of the protocol as a client sees it: a server without sockets, and what it answers.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use tempfile::TempDir;
use tokaido_script::Sources;
use tokaido_store::{
    Clock, NewRecord, Snapshot, Store, WriteOperations, WriteTransaction, cache,
    composite::{CompositeStore, Mount, MountEngine},
    transact, transact_in_place, tree,
};

use super::{Memcached, Session, protocol::Token};
use crate::{
    Context, Limits, MemcachedConfig, Progress, Protocol, Shared, SharedOptions, Target,
    access::Users, procedures::LocalProgram,
};

mod binary;
mod golden;
mod sessions;

/// When the tests' clock starts, in ms since the epoch.
const START_MS: u64 = 1_700_000_000_000;

struct TestClock(AtomicU64);

impl Clock for TestClock {
    fn now_ms(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A server without sockets.
struct Server {
    clock: Arc<TestClock>,
    shared: Arc<Shared>,
    program: LocalProgram,
    snapshot: Box<dyn Snapshot>,
    _directory: TempDir,
}

impl Server {
    /// A server whose database is a cache, or one of the store's own.
    fn new(is_cache: bool, password: Option<&str>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let clock = Arc::new(TestClock(AtomicU64::new(START_MS)));
        let options = tree::Options { clock: clock.clone(), ..tree::Options::default() };
        let store = tree::open(directory.path(), options).unwrap();
        let options = cache::Options {
            bytes_max: 8 << 20,
            clock: clock.clone(),
            ..cache::Options::default()
        };
        let mount = Mount { name: "memcached".to_owned(), engine: MountEngine::Cache(options) };
        let store = CompositeStore::new(Box::new(store), vec![mount]).unwrap();
        let store: Arc<dyn Store> = Arc::new(store);
        let program = LocalProgram::of(&store, Sources::default());
        let database = if is_cache { "memcached" } else { "main" }.to_owned();
        let limits = Limits {
            memcached_value_bytes_max: 1000,
            memcached_reply_bytes_max: 10_000,
            ..Limits::default()
        };
        let options = SharedOptions {
            users: Arc::new(Users::with_password(password)),
            memcached: MemcachedConfig { database, ..MemcachedConfig::default() },
            limits,
            ..SharedOptions::default()
        };
        let shared = Arc::new(Shared::new(store, options).unwrap());
        let snapshot = shared.store().snapshot().unwrap();
        Self { clock, shared, program, snapshot, _directory: directory }
    }

    fn connect(&self) -> Memcached {
        let session = Session::new(&self.shared, "127.0.0.1:50000", "127.0.0.1:11211").unwrap();
        Memcached::new(session, self.shared.limits())
    }

    /// Runs the input as a worker does: on the snapshot if that is enough, otherwise on the
    /// writer. Returns the replies, and the outcome for the last bytes.
    fn exchange(
        &mut self,
        memcached: &mut Memcached,
        mut input: &[u8],
    ) -> (Vec<u8>, Progress<Token>) {
        let mut output = Vec::new();
        loop {
            self.snapshot.renew().unwrap();
            let (shared, procedures) = (&*self.shared, self.program.procedures());
            let target = Target::Snapshot(&mut *self.snapshot);
            let mut context = Context::new(shared, procedures, target, false);
            let len = output.len();
            let mut progress = memcached.step(input, &mut context, &mut output);
            if let Progress::NeedsWriter = progress {
                assert_eq!(output.len(), len, "something was written");
                let mut writer = self.shared.store().writer().unwrap();
                let (shared, procedures) = (&*self.shared, self.program.procedures());
                let target = Target::Writer(&mut *writer);
                let mut context = Context::new(shared, procedures, target, false);
                progress = memcached.step(input, &mut context, &mut output);
                writer.flush().unwrap();
            }
            match progress {
                Progress::Done { consumed, .. } => input = &input[consumed..],
                progress => return (output, progress),
            }
        }
    }

    fn advance(&self, ms: u64) {
        self.clock.0.fetch_add(ms, Ordering::Relaxed);
    }
}
