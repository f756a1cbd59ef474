//! Tests of the commands as a client sees them: a server without sockets, and its replies.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use tempfile::TempDir;
use tokaido_script::Sources;
use tokaido_store::{
    Clock, Snapshot, Store, Writer,
    composite::{CompositeStore, Mount},
    tree,
};
use tokaido_wire::resp::{self, Decoded, ReplyWriter, Request, RequestDecoder};

use super::{Session, Step, execute};
use crate::{
    Context, Shared, SharedOptions, SocketAddress, Target, access::Users, procedures::LocalProgram,
};

mod access;
mod brief;
mod failures;
mod golden;
mod kinds;
mod mounted;
mod procedures;
mod scanning;
mod scripts;
mod sessions;
mod tracking;

/// The start time of the test clock, in ms since the epoch.
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
    program: LocalProgram,
    snapshot: Box<dyn Snapshot>,
    _directory: TempDir,
}

impl Server {
    fn new(password: Option<&str>, sources: &Sources) -> Self {
        Self::with_mounts(password, sources, |_, _| Vec::new())
    }

    /// With databases besides the store, whose files may be in the directory passed to `mounts`.
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
        let store = CompositeStore::new(Box::new(store), mounts).unwrap();
        Self::over(Arc::new(store), directory, clock, password, sources)
    }

    /// On any store.
    fn over(
        store: Arc<dyn Store>,
        directory: TempDir,
        clock: Arc<TestClock>,
        password: Option<&str>,
        sources: &Sources,
    ) -> Self {
        let local = LocalProgram::of(&store, sources.clone());
        let users = Arc::new(Users::with_password(password));
        let program = local.program().clone();
        let addresses = vec![
            SocketAddress::Unix(Path::new("/run/t.sock").into()),
            SocketAddress::Tcp(([127, 0, 0, 1], 7379).into()),
        ];
        let options = SharedOptions { users, addresses, program, ..SharedOptions::default() };
        let shared = Arc::new(Shared::new(store, options).unwrap());
        let snapshot = shared.store().snapshot().unwrap();
        Self { clock, shared, program: local, snapshot, _directory: directory }
    }

    fn session(&self) -> Session {
        Session::new(&self.shared, "127.0.0.1:50000", "127.0.0.1:7379")
    }

    /// Runs one request as a worker does: on the snapshot if possible, otherwise on the writer,
    /// which flushes before the reply is sent.
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
        let (shared, procedures) = (&*self.shared, self.program.procedures());
        let mut context = Context::new(shared, procedures, target, true);
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
        let (shared, procedures) = (&*self.shared, self.program.procedures());
        let mut context = Context::new(shared, procedures, target, true);
        execute(session, request, &mut context, reply)
    }

    /// Runs any request on the writer.
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
