//! What all workers of one server share: the store, the users, and what the
//! Redis sessions know of each other.

use std::{
    borrow::Cow,
    hash::{BuildHasher, RandomState},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use tokaido_script::LoadError;
use tokaido_store::{Capabilities, DatabaseError, DatabaseId, Store, tree::Copier};
use tokaido_tables::Tables;

use crate::{
    Limits,
    access::Users,
    backups::Backups,
    config::{DebugCommand, KyotoConfig, MemcachedConfig, RedisConfig, TyrantConfig},
    kyoto,
    loading::Loading,
    memcached,
    metrics::Metrics,
    pause::Pause,
    placement::Place,
    program::{CurrentProgram, Program},
    redis::{
        Channels, Clients, Cursors, EventClasses, Functions, Instruments, Notifier, ScriptCache,
        Tracker, Waiters,
    },
    selected::Selected,
    signals::Stopping,
    transport::SocketAddress,
    tyrant,
};

/// The version of Redis whose commands are supported; clients enable features by it.
pub(crate) const REDIS_VERSION: &str = "7.2.0";

/// The same version as numbers.
pub(crate) const REDIS_VERSION_NUMBERS: (u8, u8, u8) = (7, 2, 0);

/// The database that sessions begin with, which is always one of the store's own.
pub(crate) const MAIN: &str = "main";

/// The version of this program.
pub(crate) const TOKAIDO_VERSION: &str = env!("CARGO_PKG_VERSION");

/// The operator's choices.
#[derive(Clone, Debug, Default)]
pub struct SharedOptions {
    /// Who may do what.
    pub users: Arc<Users>,
    /// Where the server listens, as INFO and CONFIG GET report it.
    pub addresses: Vec<SocketAddress>,
    /// The procedures that serve.
    pub program: Arc<Program>,
    /// Sizes and times beyond which a session is refused.
    pub limits: Limits,
    /// Which databases are tables.
    pub tables: Arc<Tables>,
    /// What memcached clients see.
    pub memcached: MemcachedConfig,
    /// What Kyoto Tycoon clients see.
    pub kyoto: KyotoConfig,
    /// What Tokyo Tyrant clients see.
    pub tyrant: TyrantConfig,
    /// What Redis clients see.
    pub redis: RedisConfig,
    /// Whether the writes of an `EVAL` script that fails are kept.
    pub keep_failed_scripts: bool,
    /// The configuration file, if the server was started with one.
    pub config_file: Option<PathBuf>,
    /// The number of threads that serve connections.
    pub workers: usize,
    /// Where the backups that clients ask for go; `None`: they are refused.
    pub backups: Option<PathBuf>,
    /// What makes these backups.
    pub copier: Option<Arc<Copier>>,
}

/// What all workers of one server share.
pub struct Shared {
    store: Arc<dyn Store>,
    main: Selected,
    /// Those of every database that is not mounted: one engine runs all transactions of a store.
    capabilities: Capabilities,
    options: SharedOptions,
    pub(crate) metrics: Arc<Metrics>,
    started_at: Instant,
    started_at_ms: u64,
    run_id: String,
    pub(crate) program: CurrentProgram,
    pub(crate) clients: Arc<Clients>,
    pub(crate) channels: Arc<Channels>,
    pub(crate) waiters: Arc<Waiters>,
    pub(crate) notifier: Arc<Notifier>,
    pub(crate) tracker: Arc<Tracker>,
    pub(crate) instruments: Instruments,
    pub(crate) stopping: Stopping,
    pub(crate) pause: Pause,
    pub(crate) cursors: Cursors,
    pub(crate) scripts: ScriptCache,
    pub(crate) functions: Functions,
    pub(crate) memcached: memcached::State,
    pub(crate) kyoto: kyoto::State,
    pub(crate) tyrant: tyrant::State,
    pub(crate) backups: Backups,
}

impl Shared {
    /// The state of a new server on `store`.
    ///
    /// # Errors
    /// If the store cannot have the database `main`.
    pub fn new(store: Arc<dyn Store>, mut options: SharedOptions) -> Result<Self, DatabaseError> {
        let started_at_ms = wall_clock_us() / 1000;
        let limits = &options.limits;
        let program = CurrentProgram::new(options.program.clone());
        let cursors = Cursors::new(started_at_ms, limits.scan_cursors_max);
        let main = store.database(MAIN)?;
        let waiters = Waiters::new(&store);
        let channels: Arc<Channels> = Arc::default();
        let notifier = Notifier::new(&store, main, Arc::clone(&channels));
        let tracker = Tracker::new(&store, options.redis.tracked_keys_max);
        let events = EventClasses::parse(&options.redis.notify_keyspace_events);
        notifier.want(events.unwrap_or_default());
        Ok(Self {
            memcached: memcached::State::new(&options.memcached),
            kyoto: kyoto::State::new(&options.kyoto),
            tyrant: tyrant::State::new(&options.tyrant),
            backups: Backups::new(options.backups.take(), options.copier.take()),
            main: Selected::new(&*store, MAIN)?,
            capabilities: store.capabilities(main),
            functions: Functions::new(&*store),
            store,
            stopping: Stopping::default(),
            pause: Pause::default(),
            instruments: Instruments::new(&options.redis),
            metrics: Arc::new(Metrics::new(options.workers)),
            options,
            started_at: Instant::now(),
            started_at_ms,
            run_id: random_id(),
            program,
            clients: Arc::default(),
            notifier,
            tracker,
            channels,
            waiters,
            scripts: ScriptCache::default(),
            cursors,
        })
    }

    /// Notes which procedure files did not load, so that callers of what is missing are told so.
    pub fn set_load_errors(&self, errors: Vec<LoadError>) {
        self.program.set_loading(Loading::done(None, errors));
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Which databases are tables.
    pub(crate) fn tables(&self) -> &Tables {
        &self.options.tables
    }

    /// The database that sessions begin with: number 0, `main`.
    #[must_use]
    pub fn main(&self) -> DatabaseId {
        self.main.id()
    }

    /// The same database, as selected by a client that has selected no other.
    pub(crate) fn main_selected(&self) -> &Selected {
        &self.main
    }

    /// The name of the database of that number: number 0 is the database `main`, number 7 is `7`.
    /// `None` if there is no such number.
    #[must_use]
    pub fn numbered(&self, number: usize) -> Option<Cow<'_, str>> {
        match number {
            0 => Some(Cow::Borrowed(MAIN)),
            _ if number >= self.limits().numbered_databases_max => None,
            _ => Some(Cow::Owned(number.to_string())),
        }
    }

    /// What the engine behind a database can do.
    #[must_use]
    pub fn capabilities(&self, database: DatabaseId) -> Capabilities {
        match database.mount() {
            None => self.capabilities,
            Some(_) => self.store.capabilities(database),
        }
    }

    /// Where a write to a database runs now: while writes are paused, they all wait for the writer.
    pub(crate) fn place_of_write(&self, database: DatabaseId) -> Place {
        match Place::of_write(self.capabilities(database)) {
            Place::Worker if !self.pause.holds_writes() => Place::Worker,
            _ => Place::Writer,
        }
    }

    /// Who may do what.
    pub(crate) fn users(&self) -> &Users {
        &self.options.users
    }

    /// Sizes and times beyond which a session is refused.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.options.limits
    }

    /// Where the server listens.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddress] {
        &self.options.addresses
    }

    /// Whether the writes of an `EVAL` script that fails are kept.
    pub(crate) fn keeps_failed_scripts(&self) -> bool {
        self.options.keep_failed_scripts
    }

    /// The configuration file, if the server was started with one.
    pub(crate) fn config_file(&self) -> Option<&Path> {
        self.options.config_file.as_deref()
    }

    /// Who may call DEBUG.
    pub(crate) fn debug_command(&self) -> DebugCommand {
        self.options.redis.debug_command
    }

    /// The number of threads that serve connections.
    pub(crate) fn worker_count(&self) -> usize {
        self.options.workers
    }

    /// Seconds since the server started.
    #[must_use]
    pub fn uptime_s(&self) -> u64 {
        self.started_at.elapsed().as_secs()
    }

    /// When the server started, in ms since the epoch.
    #[must_use]
    pub fn started_at_ms(&self) -> u64 {
        self.started_at_ms
    }

    /// Forty hexadecimal digits that are unique to this start of the server.
    #[must_use]
    pub fn run_id(&self) -> &str {
        &self.run_id
    }
}

/// Microseconds since the Unix epoch.
pub(crate) fn wall_clock_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

/// The standard library seeds its hashers from the system's randomness.
fn random_id() -> String {
    let part = || RandomState::new().hash_one(wall_clock_us());
    let mut id = format!("{:016x}{:016x}{:016x}", part(), part(), part());
    id.truncate(40);
    id
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_ids_differ() {
        let (a, b) = (random_id(), random_id());
        assert_eq!(a.len(), 40);
        assert_ne!(a, b);
    }
}
