//! Tests of the commands as a client sees them: a server without sockets, and what it answers.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use tempfile::TempDir;
use tokaido_script::{Limits, Sources, Vm};
use tokaido_store::{
    Clock, Snapshot, Store, Writer,
    composite::{CompositeStore, Mount},
    tree,
};
use tokaido_wire::resp::{self, Decoded, ReplyWriter, Request, RequestDecoder};

use super::{Context, Session, Step, Target, execute};
use crate::{Shared, SharedOptions};

mod failures;
mod golden;
mod mounted;
mod procedures;
mod scanning;
mod sessions;

/// When the clock of the tests starts, in ms since the epoch.
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
    pub(super) shared: Arc<Shared>,
    vm: Vm,
    snapshot: Box<dyn Snapshot>,
    _directory: TempDir,
}

impl Server {
    fn new(password: Option<&str>, sources: &Sources) -> Self {
        Self::with_mounts(password, sources, |_, _| Vec::new())
    }

    /// With databases beside the store; their files may lie in the directory that `mounts` gets.
    fn with_mounts(
        password: Option<&str>,
        sources: &Sources,
        mounts: impl FnOnce(&Path, Arc<TestClock>) -> Vec<Mount>,
    ) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let clock = Arc::new(TestClock(AtomicU64::new(START_MS)));
        let options = tree::Options { clock: clock.clone(), ..tree::Options::default() };
        let store = tree::open(directory.path(), options).unwrap();
        let mounts = mounts(directory.path(), Arc::clone(&clock));
        let store: Arc<dyn Store> = Arc::new(CompositeStore::new(Box::new(store), mounts).unwrap());
        let (vm, errors) = Vm::new(&store, sources, Limits::default()).unwrap();
        assert!(errors.is_empty(), "{errors:?}");
        let password = password.map(str::to_owned);
        let procedures = vm.procedures().to_vec();
        let options =
            SharedOptions { password, port: 7379, procedures, ..SharedOptions::default() };
        let shared = Arc::new(Shared::new(store.clone(), options).unwrap());
        let snapshot = store.snapshot().unwrap();
        Self { clock, shared, vm, snapshot, _directory: directory }
    }

    fn session(&self) -> Session {
        Session::new(&self.shared, "127.0.0.1:50000", "127.0.0.1:7379")
    }

    /// Runs one request as a worker does: on the snapshot if that is enough, else on the writer,
    /// which flushes before the reply goes out.
    fn run(&mut self, session: &mut Session, line: &str) -> (Vec<u8>, Step) {
        let line = format!("{line}\r\n");
        let mut decoder = RequestDecoder::new(resp::Limits::default());
        let decoded = decoder.decode(line.as_bytes()).unwrap();
        assert!(matches!(decoded, Decoded::Complete { .. }), "{line}");
        let request = decoder.request(line.as_bytes());
        let mut out = Vec::new();
        let mut reply = ReplyWriter::new(&mut out, session.version());
        self.snapshot.renew().unwrap();
        let target = Target::Snapshot(&mut *self.snapshot);
        let (shared, vm) = (&*self.shared, &mut self.vm);
        let mut context = Context { shared, vm, target, may_take_long: true };
        let step = execute(session, request, &mut context, &mut reply);
        if step != Step::NeedsWriter {
            return (out, step);
        }
        assert!(reply.is_empty(), "NeedsWriter, but something was written");
        let mut writer = self.shared.store().writer().unwrap();
        let step = self.on_writer(&mut *writer, session, request, &mut reply);
        writer.flush().unwrap();
        (out, step)
    }

    fn on_writer(
        &mut self,
        writer: &mut dyn Writer,
        session: &mut Session,
        request: Request<'_>,
        reply: &mut ReplyWriter<'_>,
    ) -> Step {
        let target = Target::Writer(writer);
        let (shared, vm) = (&*self.shared, &mut self.vm);
        let mut context = Context { shared, vm, target, may_take_long: true };
        execute(session, request, &mut context, reply)
    }

    /// Runs one request on the writer, whatever it is.
    fn run_on_writer(&mut self, session: &mut Session, line: &str) -> Vec<u8> {
        let line = format!("{line}\r\n");
        let mut decoder = RequestDecoder::new(resp::Limits::default());
        decoder.decode(line.as_bytes()).unwrap();
        let mut out = Vec::new();
        let mut reply = ReplyWriter::new(&mut out, session.version());
        let mut writer = self.shared.clone().store().writer().unwrap();
        let request = decoder.request(line.as_bytes());
        let step = self.on_writer(&mut *writer, session, request, &mut reply);
        assert_ne!(step, Step::NeedsWriter, "{line}");
        writer.flush().unwrap();
        out
    }

    fn advance(&self, ms: u64) {
        self.clock.0.fetch_add(ms, Ordering::Relaxed);
    }
}
