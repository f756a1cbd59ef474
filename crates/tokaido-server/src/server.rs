//! A running server: what starts, in which order, and how it all ends.

use std::{
    io,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokaido_script::{Hook, Language, LoadError, Procedure, RuntimeError};
use tokaido_store::{
    DatabaseError, GroupWriter, OpenError, ReadError, Store, WriteError,
    composite::{CompositeStore, MountError},
    tree,
};
use tokaido_tables::TableStore;
use tokio::sync::{mpsc, watch};

use crate::{
    Shared, SharedOptions,
    acceptor::{ACCEPTORS_MAX, Accepted, Acceptor, WorkerHandle},
    access::{AclFileError, Users},
    affinity,
    config::{Config, ConfigError, Password},
    hooks,
    http::Hosts,
    listeners::{self, ListenError, Listener},
    loading::Loading,
    pool::{self, PoolHandle},
    procedure_watch::{ProcedureWatch, Watched},
    procedures::LocalProgram,
    program::{self, Loader},
    read_context::ReadContext,
    reload::{Lines, ReloadError, SourcesError, read_sources},
    service::Service,
    signals::{Request, Signals},
    threads::Threads,
    transport::SocketAddress,
    watch::{Role, Supervisor, Watch, end_process_after},
    worker::{self, Worker},
    writer::{self, Pen, WriterContext, WriterHandle},
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
    #[error("{source} (see {options} in the configuration)")]
    Mount {
        /// Why not.
        source: MountError,
        /// The options that define it.
        options: &'static str,
    },
    /// The store cannot have the database `main`.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// The procedure files cannot be read.
    #[error(transparent)]
    Sources(#[from] SourcesError),
    /// Some of the procedures cannot be loaded, and the option `strict` is set.
    #[error("not all procedures can be loaded, and the option strict is set:{}", Lines(.0))]
    Broken(Vec<LoadError>),
    /// The ACL file cannot be read.
    #[error(transparent)]
    Users(#[from] AclFileError),
    /// An address cannot be listened on.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// A language of procedures cannot start.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
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

impl StartError {
    fn of_mount(source: MountError, config: &Config) -> Self {
        let options = match &source {
            MountError::Taken { name, .. } | MountError::Cache { name, .. } => {
                config.options_of_database(name)
            }
            _ => "[databases]",
        };
        Self::Mount { source, options }
    }
}

/// A running server. It stops when it is dropped; [`stop`](Self::stop) makes that explicit.
pub struct Server {
    service: Arc<Service>,
    addresses: Vec<SocketAddress>,
    load_errors: Vec<LoadError>,
    stop: watch::Sender<bool>,
    threads: Threads,
    /// Ends after the threads have.
    supervisor: Supervisor,
    procedure_watch: ProcedureWatch,
}

impl Server {
    /// Starts a server. When this returns, it is listening.
    ///
    /// # Errors
    /// See [`StartError`]; then nothing is left running. Errors in procedure files do not prevent
    /// the start unless the option `strict` is set: the other files serve, and
    /// [`load_errors`](Self::load_errors) reports the errors.
    pub fn start(config: Config) -> Result<Self, StartError> {
        let languages = program::languages(&config);
        Self::start_in(config, languages)
    }

    /// Starts a server whose procedures are in these languages.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_in(config: Config, languages: Vec<Arc<dyn Language>>) -> Result<Self, StartError> {
        config.validate()?;
        let password = config.password.as_ref().map(Password::as_str);
        let users = Arc::new(Users::open(password, config.acl_file.as_deref())?);
        let listeners = listeners::open(&config, users.need_authentication())?;
        let addresses: Vec<_> = listeners.iter().map(|l| l.address.clone()).collect();
        let store = tree::open(&config.directory, config.store_options())?;
        let copier = Arc::new(store.copier());
        let store = TableStore::new(Box::new(store), config.tables())?;
        let tables = store.tables();
        let store = CompositeStore::with(Box::new(store), config.mounts(), config.mount_options())
            .map_err(|source| StartError::of_mount(source, &config))?;
        let store: Arc<dyn Store> = Arc::new(store);
        let loader = Loader {
            languages,
            store: store.clone(),
            limits: config.script_limits(),
            short_call_max: Duration::from_micros(config.limits.script_short_us),
        };
        let places =
            Some(config.source_places()).filter(|places| config.watch && !places.is_empty());
        let watched = places.map(|places| Watched::new(places, loader.extensions()));
        let sources = read_sources(&config, &loader.extensions())?;
        let (program, load_errors) = loader.load(sources.clone().unwrap_or_default())?;
        if config.strict && !load_errors.is_empty() {
            return Err(StartError::Broken(load_errors));
        }
        let options = SharedOptions {
            users,
            addresses: addresses.clone(),
            program: Arc::new(program),
            limits: config.limits.clone(),
            tables,
            memcached: config.memcached.clone(),
            kyoto: config.kyoto.clone(),
            tyrant: config.tyrant.clone(),
            redis: config.redis.clone(),
            keep_failed_scripts: config.keep_failed_scripts,
            config_file: config.file.clone(),
            workers: config.worker_count(),
            backups: config.backups.clone(),
            copier: Some(copier),
        };
        let shared = Arc::new(Shared::new(store, options)?);
        shared.program.set_loading(Loading::done(sources, load_errors.clone()));
        let metrics = Arc::clone(&shared.metrics);
        let watch = Arc::new(Watch::new(&config.limits));
        let reloading = Mutex::default();
        let hosts = Hosts::new(&config);
        let service =
            Arc::new(Service { config, hosts, shared, loader, metrics, watch, reloading });
        let (stop, stopping) = watch::channel(false);
        let (threads, supervisor) = (Threads::default(), Supervisor::default());
        let procedure_watch = ProcedureWatch::default();
        let mut server =
            Self { service, addresses, load_errors, stop, threads, supervisor, procedure_watch };
        server.spawn_all(&listeners, &stopping)?;
        server.watch_procedures(watched)?;
        server.say_started();
        Ok(server)
    }

    /// The addresses that it listens on, with the actual ports in place of port 0.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddress] {
        &self.addresses
    }

    /// What is wrong with procedure files. Their procedures do not serve; all others do.
    #[must_use]
    pub fn load_errors(&self) -> &[LoadError] {
        &self.load_errors
    }

    /// The procedures that serve.
    #[must_use]
    pub fn procedures(&self) -> Vec<Procedure> {
        self.service.shared.program.get().procedures().to_vec()
    }

    /// The store. Its writer belongs to the server.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        self.service.shared.store()
    }

    /// Stops: accepts no more connections, answers the requests that have arrived, commits, closes.
    /// Clients that do not take their replies are given `limits.stop_ms`.
    pub fn stop(self) {
        drop(self);
        tracing::info!("stopped");
    }

    /// Reads the procedure files again, and swaps all procedures while calls run: each call runs
    /// entirely in the old program or in the new one.
    ///
    /// # Errors
    /// If a file is broken; then the old program goes on serving.
    pub fn reload(&self) -> Result<(), ReloadError> {
        self.service.reload().map(drop)
    }

    /// Waits for SIGTERM or SIGINT, and stops; if that takes longer than `limits.stop_ms` and
    /// `limits.stop_exit_ms` together, the process ends with status 1. Reloads the procedures at each
    /// SIGHUP.
    ///
    /// # Errors
    /// If the thread that bounds the time cannot be started; then the server has been stopped.
    pub fn run_until_signal(self, mut signals: Signals) -> io::Result<()> {
        let stopping = &self.service.shared.stopping;
        stopping.obey();
        let signal = loop {
            match signals.wait(stopping) {
                Request::Stop(signal) => break signal,
                // Errors are logged.
                Request::Reload => drop(self.reload()),
            }
        };
        tracing::info!(signal, "stopping");
        let limits = &self.service.config.limits;
        let time = Duration::from_millis(limits.stop_ms + limits.stop_exit_ms);
        let _in_time = end_process_after(time, self.service.watch.clone())?;
        self.stop();
        Ok(())
    }

    fn say_started(&self) {
        for error in &self.load_errors {
            tracing::warn!("{error}");
        }
        let addresses: Vec<_> = self.addresses.iter().map(ToString::to_string).collect();
        tracing::info!(
            ?addresses,
            directory = %self.service.config.directory.display(),
            workers = self.service.config.worker_count(),
            procedures = self.procedures().len(),
            "listening"
        );
    }

    /// Starts the threads, each after those that it hands work to.
    fn spawn_all(
        &mut self,
        listeners: &[Listener],
        stopping: &watch::Receiver<bool>,
    ) -> Result<(), StartError> {
        let failed = |error: io::Error| StartError::Thread {
            name: "tokaido-watch".to_owned(),
            message: error.to_string(),
        };
        self.supervisor = Supervisor::start(self.service.watch.clone()).map_err(failed)?;
        let writer = self.spawn_writers()?;
        let pool = self.spawn_pool()?;
        let count = self.service.config.worker_count();
        let (handles, queues): (Vec<_>, Vec<_>) = (0..count)
            .map(|_| {
                let (queue, incoming) = mpsc::unbounded_channel();
                (WorkerHandle { queue, open: Arc::default() }, incoming)
            })
            .unzip();
        let acceptor = self.acceptor(handles);
        for (own, queue) in queues.into_iter().enumerate() {
            let accepted_from = if own < ACCEPTORS_MAX { listeners } else { &[] };
            let own_listeners =
                accepted_from.iter().map(Listener::try_clone).collect::<Result<_, _>>()?;
            let accepting = (Acceptor { own, ..acceptor.clone() }, own_listeners);
            self.spawn_worker(queue, accepting, (&writer, &pool), stopping)?;
        }
        Ok(())
    }

    fn acceptor(&self, workers: Vec<WorkerHandle>) -> Acceptor {
        let limits = &self.service.config.limits;
        Acceptor {
            own: 0,
            workers: workers.into(),
            connections_max: limits.connections_max,
            refusals_max: limits.refusals_max,
            keepalive: Duration::from_millis(limits.keepalive_ms),
            metrics: self.service.metrics.clone(),
            open: Arc::default(),
            refusals: Arc::default(),
        }
    }

    fn watch_procedures(&mut self, watched: Option<Watched>) -> Result<(), StartError> {
        let Some(watched) = watched else { return Ok(()) };
        let started = ProcedureWatch::start(watched, self.service.clone());
        self.procedure_watch = started.map_err(|error| StartError::Thread {
            name: "tokaido-reload".to_owned(),
            message: error.to_string(),
        })?;
        Ok(())
    }

    /// Spawns as many writers as the engine takes at a time.
    fn spawn_writers(&mut self) -> Result<WriterHandle, StartError> {
        let (handle, queue) = WriterHandle::new(self.service.config.limits.writer_queue_max);
        let shared = &self.service.shared;
        let writers_max = shared.capabilities(shared.main()).writers_max;
        for i in 0..writers_max {
            let (service, running) = (self.service.clone(), self.service.clone());
            let pen = if writers_max == 1 { handle.pen().clone() } else { Pen::default() };
            let filled = pen.clone();
            let prepare = move || {
                let mut writer = GroupWriter::new(service.shared.store().writer()?);
                let mut program = LocalProgram::new(&service, Role::Prompt)?;
                if i == 0 {
                    let mut context = WriterContext::new(&mut writer, &mut program);
                    hooks::as_group(&mut context, &service.metrics, |context| {
                        hooks::call(Hook::Begin, context)
                    });
                }
                filled.put(writer);
                Ok(program)
            };
            let queue = queue.clone();
            let run = move |program| {
                let Service { metrics, config, shared, .. } = &*running;
                writer::run(&queue, &pen, program, metrics, &config.limits, &shared.pause, i == 0);
            };
            let number = if i == 0 { String::new() } else { format!("-{i}") };
            self.threads.spawn(&format!("tokaido-writer{number}"), prepare, run)?;
        }
        Ok(handle)
    }

    fn spawn_pool(&mut self) -> Result<PoolHandle, StartError> {
        let config = &self.service.config;
        let (handle, queue) = PoolHandle::new(config.limits.pool_queue_max);
        for i in 0..config.pool_thread_count() {
            let service = self.service.clone();
            let prepare = move || read_context(&service, Role::Patient);
            let queue = queue.clone();
            let run = move |context| pool::run(&queue, context);
            self.threads.spawn(&format!("tokaido-pool-{i}"), prepare, run)?;
        }
        Ok(handle)
    }

    fn spawn_worker(
        &mut self,
        incoming: mpsc::UnboundedReceiver<Accepted>,
        accepting: (Acceptor, Vec<Listener>),
        (writer, pool): (&WriterHandle, &PoolHandle),
        stopping: &watch::Receiver<bool>,
    ) -> Result<(), StartError> {
        let (service, index) = (self.service.clone(), accepting.0.own);
        let (writer, pool, stopping) = (writer.clone(), pool.clone(), stopping.clone());
        let prepare = move || {
            let reading = read_context(&service, Role::Prompt)?;
            let counters = service.metrics.workers[index].clone();
            if service.config.pin_workers {
                affinity::bind(index, service.config.worker_count());
            }
            Ok(Worker::new(service, writer, pool, counters, reading, stopping))
        };
        let run = move |worker| report(worker::run(worker, incoming, index == 0, accepting));
        self.threads.spawn(&format!("tokaido-worker-{index}"), prepare, run)
    }
}

/// What another thread reads with.
fn read_context(service: &Arc<Service>, role: Role) -> Result<ReadContext, StartError> {
    let mut snapshot = service.shared.store().snapshot()?;
    snapshot.release();
    Ok(ReadContext { snapshot, program: LocalProgram::new(service, role)? })
}

impl Drop for Server {
    fn drop(&mut self) {
        // An error means that no thread listens any more.
        let _ = self.stop.send(true);
        self.service.shared.pause.close();
        self.procedure_watch = ProcedureWatch::default();
        self.service.shared.backups.stop();
        self.threads.join_all();
    }
}

fn report(ended: io::Result<()>) {
    if let Err(error) = ended {
        tracing::error!(%error, "a thread of the server ended");
    }
}
