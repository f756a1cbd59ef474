//! A server that speaks the protocol, and a client of it.

use super::{
    echo::{Backstage, Echo, FailingWriter},
    *,
};

/// A server that speaks the protocol: one worker, one pool thread, one writer.
pub(super) struct Bed {
    pub(super) backstage: Arc<Backstage>,
    pub(super) service: Arc<Service>,
    pub(super) events: Receiver<&'static str>,
    pub(super) go_on: Sender<()>,
    pub(super) mailboxes: Receiver<Mailbox>,
    pub(super) address: std::net::SocketAddr,
    pub(super) stop: Option<oneshot::Sender<()>>,
    pub(super) threads: Vec<JoinHandle<()>>,
    pub(super) _observing: ObserverGuard,
    pub(super) _directory: tempfile::TempDir,
}

pub(super) fn program(service: &Service) -> LocalProgram {
    LocalProgram::of(service.shared.store(), Sources::default())
}

pub(super) fn reading(service: &Service) -> ReadContext {
    let snapshot = service.shared.store().snapshot().expect("a snapshot");
    ReadContext { snapshot, program: program(service) }
}

impl Bed {
    pub(super) fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let store = tree::open(directory.path(), tree::Options::default()).expect("a store");
        let shared =
            Arc::new(Shared::new(Arc::new(store), SharedOptions::default()).expect("main"));
        let loader = Loader::of_lua(shared.store());
        let (events_sender, events) = channel();
        let (go_on, go_on_receiver) = channel();
        let backstage = Arc::new(Backstage {
            database: shared.main(),
            events: Mutex::new(events_sender),
            go_on: Mutex::new(go_on_receiver),
            happened: AtomicBool::new(false),
            waiting: Mutex::default(),
            flush_error: Mutex::default(),
        });
        let observing = shared.store().observe(backstage.clone()).expect("it has observers");
        let mut config = Config::default();
        config.limits.pushed_bytes_max = 1 << 10;
        config.limits.blocked_input_bytes_max = 1 << 10;
        let metrics = Arc::new(Metrics::new(1));
        let watch = Arc::new(crate::watch::Watch::new(&config.limits));
        let reloading = Mutex::default();
        let hosts = crate::http::Hosts::new(&config);
        let service =
            Arc::new(Service { config, hosts, shared, loader, metrics, watch, reloading });
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let (stop, stopped) = oneshot::channel();
        let (mailboxes_sender, mailboxes) = channel();
        let mut bed = Self {
            backstage,
            service,
            events,
            go_on,
            mailboxes,
            address,
            stop: Some(stop),
            threads: Vec::new(),
            _observing: observing,
            _directory: directory,
        };
        let (writer, pool) = (bed.spawn_writer(), bed.spawn_pool());
        let (service, backstage) = (bed.service.clone(), bed.backstage.clone());
        bed.threads.push(std::thread::spawn(move || {
            let counters = service.metrics.workers[0].clone();
            let reading = reading(&service);
            let (_stop, stopping) = tokio::sync::watch::channel(false);
            let worker = Rc::new(Worker::new(service, writer, pool, counters, reading, stopping));
            serve_all(&worker, listener, stopped, &backstage, &mailboxes_sender);
        }));
        bed
    }

    pub(super) fn spawn_writer(&mut self) -> WriterHandle {
        let (handle, queue) = WriterHandle::new(8);
        let pen = handle.pen().clone();
        let (service, backstage) = (self.service.clone(), self.backstage.clone());
        self.threads.push(std::thread::spawn(move || {
            let inner = service.shared.store().writer().expect("a writer");
            let writer = GroupWriter::new(Box::new(FailingWriter { inner, backstage }));
            pen.put(writer);
            let (metrics, limits) = (&service.metrics, &service.config.limits);
            let pause = &service.shared.pause;
            writer::run(&queue, &pen, program(&service), metrics, limits, pause, true);
        }));
        handle
    }

    pub(super) fn spawn_pool(&mut self) -> PoolHandle {
        let (handle, queue) = PoolHandle::new(8);
        let service = self.service.clone();
        self.threads.push(std::thread::spawn(move || pool::run(&queue, reading(&service))));
        handle
    }

    pub(super) fn connect(&self) -> (Client, Mailbox) {
        let stream = TcpStream::connect(self.address).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        let mailbox = self.mailboxes.recv_timeout(PATIENCE).expect("it serves");
        (Client(BufReader::new(stream)), mailbox)
    }

    #[track_caller]
    pub(super) fn expect_event(&self, event: &str) {
        assert_eq!(self.events.recv_timeout(PATIENCE).expect("an event"), event);
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        self.stop.take();
        for thread in self.threads.drain(..) {
            let ended = thread.join();
            assert!(ended.is_ok() || std::thread::panicking(), "a thread panicked");
        }
    }
}

/// The worker's thread.
pub(super) fn serve_all(
    worker: &Rc<Worker>,
    listener: std::net::TcpListener,
    stopped: oneshot::Receiver<()>,
    backstage: &Arc<Backstage>,
    mailboxes: &Sender<Mailbox>,
) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let tasks = LocalSet::new();
    let connections = Rc::new(Connections::new(&worker.service.config.limits));
    let accepting = async {
        listener.set_nonblocking(true).expect("a socket");
        let listener = TcpListener::from_std(listener).expect("a socket");
        loop {
            let (stream, peer) = listener.accept().await.expect("a connection");
            let socket = Socket::Tcp(stream.into_std().expect("a socket"));
            let (guard, input) = connections.open(socket, SocketAddress::Tcp(peer), None);
            let (worker, backstage, mailboxes) =
                (worker.clone(), backstage.clone(), mailboxes.clone());
            tokio::task::spawn_local(async move {
                let open = |mailbox: Mailbox| {
                    mailboxes.send(mailbox.clone()).expect("the test waits for it");
                    Echo { mailbox, backstage }
                };
                let placement = Placement::resp(&worker);
                serve(placement, guard.connection(), input, Vec::new(), open).await;
            });
        }
    };
    tasks.block_on(&runtime, async {
        tokio::select! {
            () = accepting => {}
            _ = stopped => {}
        }
        connections.stop();
        while !connections.is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
}

pub(super) struct Client(pub(super) BufReader<TcpStream>);

impl Client {
    pub(super) fn send(&mut self, text: &str) {
        self.0.get_mut().write_all(text.as_bytes()).expect("it is read");
    }

    #[track_caller]
    pub(super) fn expect(&mut self, lines: &[&str]) {
        for expected in lines {
            let mut line = String::new();
            self.0.read_line(&mut line).expect("a line");
            assert_eq!(line.trim_end(), *expected);
        }
    }

    #[track_caller]
    pub(super) fn expect_end(&mut self) {
        let mut rest = String::new();
        // A reset is an end, too.
        let _ = self.0.read_to_string(&mut rest);
        assert_eq!(rest, "");
    }
}
