//! A running server: what starts, in which order, and how it all ends.

use std::{
    io,
    net::{SocketAddr, TcpListener},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use tokaido_script::{LoadError, Procedure, Sources, Vm, VmError};
use tokaido_store::{
    DatabaseError, OpenError, ReadError, Store, WriteError,
    composite::{CompositeStore, MountError},
    tree,
};
use tokio::sync::{mpsc, watch};

use crate::{
    Shared, SharedOptions,
    acceptor::{self, Acceptor, Seat},
    config::{Config, ConfigError},
    http::Router,
    metrics::Metrics,
    pool::{self, PoolContext, PoolHandle},
    service::Service,
    threads::Threads,
    worker::{self, Worker},
    writer::{self, GroupWriter, WriterContext, WriterHandle},
};

/// A server did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The options cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The store cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A database of another engine cannot be served.
    #[error("{0} (see [databases] in the configuration)")]
    Mount(#[from] MountError),
    /// The store cannot have the database `main`.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// The procedure files cannot be read.
    #[error("cannot read the procedures in {}: {source}; check the option procedures", directory.display())]
    Procedures {
        /// The directory.
        directory: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// An address is taken.
    #[error("{address} is in use by another program; stop that one, or choose another address")]
    AddressInUse {
        /// The address.
        address: SocketAddr,
    },
    /// An address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// No Lua VM can be made.
    #[error(transparent)]
    Vm(#[from] VmError),
    /// The store gives no snapshot.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The store gives no writer.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A thread cannot be started, or ended at once.
    #[error("cannot start the thread {name}: {message}")]
    Thread {
        /// The thread.
        name: String,
        /// What went wrong.
        message: String,
    },
}

/// A running server. It stops when it is dropped; [`stop`](Self::stop) says so in the code.
pub struct Server {
    service: Arc<Service>,
    addresses: Vec<SocketAddr>,
    load_errors: Vec<LoadError>,
    stop: watch::Sender<bool>,
    threads: Threads,
}

impl Server {
    /// Starts a server. When this returns it listens.
    ///
    /// # Errors
    /// See [`StartError`]; then nothing is left running. A procedure file with an error is none:
    /// the others serve, and [`load_errors`](Self::load_errors) tells.
    pub fn start(config: Config) -> Result<Self, StartError> {
        config.validate()?;
        let listeners = listen(&config)?;
        let addresses: Vec<_> = listeners.iter().filter_map(|l| l.local_addr().ok()).collect();
        let sources = Arc::new(read_sources(&config)?);
        let store = tree::open(&config.directory, config.store_options())?;
        let store = CompositeStore::with(Box::new(store), config.mounts(), config.mount_options())?;
        let store: Arc<dyn Store> = Arc::new(store);
        let loaded = Loaded::new(&store, &sources, &config)?;
        let options = SharedOptions {
            password: config.password.as_ref().map(|p| p.as_str().to_owned()),
            port: addresses.first().map_or(0, SocketAddr::port),
            procedures: loaded.procedures,
            limits: config.limits.clone(),
        };
        let shared = Arc::new(Shared::new(store, options)?);
        let metrics = Arc::new(Metrics::new(config.worker_count()));
        let service = Arc::new(Service { config, shared, router: loaded.router, metrics });
        let (stop, stopping) = watch::channel(false);
        let load_errors = loaded.load_errors;
        let mut server =
            Self { service, addresses, load_errors, stop, threads: Threads::default() };
        server.spawn_all(&sources, listeners, &stopping)?;
        server.say_started();
        Ok(server)
    }

    /// The addresses that it listens on, with the ports that were taken for port 0.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// What is wrong with procedure files. Their procedures do not serve; all others do.
    #[must_use]
    pub fn load_errors(&self) -> &[LoadError] {
        &self.load_errors
    }

    /// The procedures that serve.
    #[must_use]
    pub fn procedures(&self) -> &[Procedure] {
        self.service.shared.procedures.list()
    }

    /// The store. Its writer belongs to the server.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        self.service.shared.store()
    }

    /// Stops: accepts no more connections, answers the requests that have come, commits, closes.
    /// Clients that do not take their replies are given `limits.stop_ms`.
    pub fn stop(self) {
        drop(self);
        tracing::info!("stopped");
    }

    /// Waits for SIGTERM or SIGINT, and stops.
    ///
    /// # Errors
    /// If signals cannot be waited for.
    pub fn run_until_signal(self) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let signal = runtime.block_on(async {
            use tokio::signal::unix::{SignalKind, signal};
            let mut terminate = signal(SignalKind::terminate())?;
            let mut interrupt = signal(SignalKind::interrupt())?;
            Ok::<_, io::Error>(tokio::select! {
                _ = terminate.recv() => "SIGTERM",
                _ = interrupt.recv() => "SIGINT",
            })
        })?;
        tracing::info!(signal, "stopping");
        self.stop();
        Ok(())
    }

    fn say_started(&self) {
        for error in &self.load_errors {
            tracing::warn!("{error}");
        }
        tracing::info!(
            addresses = ?self.addresses,
            directory = %self.service.config.directory.display(),
            workers = self.service.config.worker_count(),
            procedures = self.procedures().len(),
            "listening"
        );
    }

    /// Starts the threads, each as soon as those that it hands work to are there.
    fn spawn_all(
        &mut self,
        sources: &Arc<Sources>,
        listeners: Vec<TcpListener>,
        stopping: &watch::Receiver<bool>,
    ) -> Result<(), StartError> {
        let writer = self.spawn_writer(sources)?;
        let pool = self.spawn_pool(sources)?;
        let count = self.service.config.worker_count();
        let seats = (0..count)
            .map(|i| self.spawn_worker(i, sources, &writer, &pool, stopping))
            .collect::<Result<Vec<_>, _>>()?;
        let limits = &self.service.config.limits;
        let acceptor = Acceptor {
            seats,
            connections_max: limits.connections_max,
            refusals_max: limits.refusals_max,
            keepalive: Duration::from_millis(limits.keepalive_ms),
            metrics: self.service.metrics.clone(),
            open: Arc::default(),
            refusals: Arc::default(),
        };
        let stopping = stopping.clone();
        self.threads.spawn(
            "tokaido-accept",
            || Ok(()),
            move |()| report(acceptor::run(acceptor, listeners, stopping)),
        )
    }

    fn spawn_writer(&mut self, sources: &Arc<Sources>) -> Result<WriterHandle, StartError> {
        let (service, sources) = (self.service.clone(), sources.clone());
        let (handle, queue) = WriterHandle::new(service.config.limits.writer_queue_max);
        let running = service.clone();
        let prepare = move || {
            let writer = GroupWriter::new(service.shared.store().writer()?);
            Ok(WriterContext { writer, vm: service.new_vm(&sources)? })
        };
        let run = move |context| {
            writer::run(&queue, context, &running.metrics, &running.config.limits);
        };
        self.threads.spawn("tokaido-writer", prepare, run)?;
        Ok(handle)
    }

    fn spawn_pool(&mut self, sources: &Arc<Sources>) -> Result<PoolHandle, StartError> {
        let config = &self.service.config;
        let (handle, queue) = PoolHandle::new(config.limits.pool_queue_max);
        for i in 0..config.pool_thread_count() {
            let (service, sources) = (self.service.clone(), sources.clone());
            let prepare = move || {
                let mut snapshot = service.shared.store().snapshot()?;
                snapshot.release();
                Ok(PoolContext { snapshot, vm: service.new_vm(&sources)? })
            };
            let queue = queue.clone();
            let run = move |context| pool::run(&queue, context);
            self.threads.spawn(&format!("tokaido-pool-{i}"), prepare, run)?;
        }
        Ok(handle)
    }

    fn spawn_worker(
        &mut self,
        index: usize,
        sources: &Arc<Sources>,
        writer: &WriterHandle,
        pool: &PoolHandle,
        stopping: &watch::Receiver<bool>,
    ) -> Result<Seat, StartError> {
        let (queue, incoming) = mpsc::unbounded_channel();
        let (service, sources) = (self.service.clone(), sources.clone());
        let (writer, pool, stopping) = (writer.clone(), pool.clone(), stopping.clone());
        let prepare = move || {
            let mut snapshot = service.shared.store().snapshot()?;
            snapshot.release();
            let vm = service.new_vm(&sources)?;
            let counters = service.metrics.workers[index].clone();
            Ok(Worker::new(service, writer, pool, counters, snapshot, vm))
        };
        let run = move |worker| report(worker::run(worker, incoming, stopping));
        self.threads.spawn(&format!("tokaido-worker-{index}"), prepare, run)?;
        Ok(Seat { queue, open: Arc::default() })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // An error means that no thread listens any more.
        let _ = self.stop.send(true);
        self.threads.join_all();
    }
}

fn report(ended: io::Result<()>) {
    if let Err(error) = ended {
        tracing::error!(%error, "a thread of the server ended");
    }
}

fn listen(config: &Config) -> Result<Vec<TcpListener>, StartError> {
    let queue_max = config.limits.accept_queue_max;
    let listen = |&address: &SocketAddr| {
        acceptor::listen(address, queue_max).map_err(|source| match source.kind() {
            io::ErrorKind::AddrInUse => StartError::AddressInUse { address },
            _ => StartError::Listen { address, source },
        })
    };
    config.listen.iter().map(listen).collect()
}

fn read_sources(config: &Config) -> Result<Sources, StartError> {
    let Some(directory) = &config.procedures else { return Ok(Sources::default()) };
    Sources::read(directory, config.source_limits())
        .map_err(|source| StartError::Procedures { directory: directory.clone(), source })
}

/// What the procedure files hold, found with a VM that is not used for anything else.
struct Loaded {
    procedures: Vec<Procedure>,
    router: Router,
    load_errors: Vec<LoadError>,
}

impl Loaded {
    fn new(store: &Arc<dyn Store>, sources: &Sources, config: &Config) -> Result<Self, StartError> {
        let (vm, mut load_errors) = Vm::new(store, sources, config.script_limits())?;
        let mut router = Router::default();
        for procedure in vm.procedures() {
            let id = vm.find(procedure.name.as_bytes());
            let (Some(route), Some(id)) = (&procedure.route, id) else { continue };
            if let Err(error) = router.add(route, id) {
                load_errors.push(LoadError {
                    path: procedure.path.clone(),
                    line: Some(procedure.line),
                    message: format!("{}: {error}", procedure.name),
                });
            }
        }
        Ok(Self { procedures: vm.procedures().to_vec(), router, load_errors })
    }
}
