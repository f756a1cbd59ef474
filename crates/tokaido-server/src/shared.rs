//! What all workers of one server share: the store, the password, the counters, and what the
//! Redis sessions know of each other.

use std::{
    hash::{BuildHasher, RandomState},
    hint::black_box,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use tokaido_script::Procedure;
use tokaido_store::{DatabaseError, DatabaseId, Store};

use crate::{
    Limits,
    procedures::Procedures,
    redis::{Clients, Cursors},
};

/// The version of Redis whose commands are understood; clients switch features on by it.
pub(crate) const REDIS_VERSION: &str = "7.2.0";

/// The version of this program.
pub(crate) const TOKAIDO_VERSION: &str = env!("CARGO_PKG_VERSION");

/// What the operator chose.
#[derive(Clone, Debug, Default)]
pub struct SharedOptions {
    /// What clients must give before anything else; `None`: nothing.
    pub password: Option<String>,
    /// The port that clients connect to, which INFO and CONFIG GET tell.
    pub port: u16,
    /// The procedures that serve.
    pub procedures: Vec<Procedure>,
    /// Sizes and times beyond which a session is told no.
    pub limits: Limits,
}

/// Numbers that only grow, except for those of what is open now.
#[derive(Debug, Default)]
pub struct Counters {
    /// Redis sessions that are open.
    pub connections_open: AtomicU64,
    /// Redis sessions that were ever opened.
    pub connections_total: AtomicU64,
    /// Redis commands, with those that failed.
    pub commands: AtomicU64,
    /// Redis commands that were answered with an error.
    pub errors: AtomicU64,
    /// Calls of procedures by Redis commands.
    pub procedure_calls: AtomicU64,
}

/// What all workers of one server share.
pub struct Shared {
    store: Arc<dyn Store>,
    /// The databases that have a number. Number 0 is the database `main`, number 7 is `7`.
    numbered: Box<[OnceLock<DatabaseId>]>,
    main: DatabaseId,
    options: SharedOptions,
    started_at: Instant,
    started_at_ms: u64,
    run_id: String,
    /// For `/metrics` and INFO.
    pub counters: Counters,
    pub(crate) procedures: Arc<Procedures>,
    pub(crate) clients: Arc<Clients>,
    pub(crate) cursors: Cursors,
}

impl Shared {
    /// Begins the life of a server on `store`.
    ///
    /// # Errors
    /// If the store cannot have the database `main`.
    pub fn new(store: Arc<dyn Store>, mut options: SharedOptions) -> Result<Self, DatabaseError> {
        let started_at_ms = wall_clock_us() / 1000;
        let procedures = std::mem::take(&mut options.procedures);
        let limits = &options.limits;
        let procedures = Procedures::new(procedures, Duration::from_micros(limits.script_short_us));
        let cursors = Cursors::new(started_at_ms, limits.scan_cursors_max);
        let numbered = (0..limits.numbered_databases_max).map(|_| OnceLock::new()).collect();
        let main = store.database("main")?;
        Ok(Self {
            store,
            numbered,
            main,
            options,
            started_at: Instant::now(),
            started_at_ms,
            run_id: random_id(),
            counters: Counters::default(),
            procedures: Arc::new(procedures),
            clients: Arc::default(),
            cursors,
        })
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// The database that sessions begin with: number 0, `main`.
    #[must_use]
    pub fn main(&self) -> DatabaseId {
        self.main
    }

    /// The database of that number; `None` if there is no such number.
    ///
    /// # Errors
    /// If the store has as many databases as it may.
    pub fn numbered(&self, number: usize) -> Result<Option<DatabaseId>, DatabaseError> {
        if number == 0 {
            return Ok(Some(self.main));
        }
        let Some(known) = self.numbered.get(number) else { return Ok(None) };
        if let Some(&id) = known.get() {
            return Ok(Some(id));
        }
        let id = self.store.database(&number.to_string())?;
        Ok(Some(*known.get_or_init(|| id)))
    }

    /// Whether clients must authenticate.
    #[must_use]
    pub fn needs_password(&self) -> bool {
        self.options.password.is_some()
    }

    /// Whether `given` is the password. Takes as long for a wrong one as for the right one.
    #[must_use]
    pub fn is_password(&self, given: &[u8]) -> bool {
        self.options.password.as_ref().is_some_and(|secret| equal(secret.as_bytes(), given))
    }

    /// Sizes and times beyond which a session is told no.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.options.limits
    }

    /// The port that clients connect to.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.options.port
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

    /// Forty hexadecimal digits that no other start of a server has.
    #[must_use]
    pub fn run_id(&self) -> &str {
        &self.run_id
    }
}

impl Counters {
    pub(crate) fn add(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn take(counter: &AtomicU64) {
        counter.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Microseconds since the Unix epoch.
pub(crate) fn wall_clock_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

/// Looks at every byte that was given, whatever the first ones are, so that the time tells nothing
/// but the length of what was given. A difference in length is a difference.
fn equal(secret: &[u8], given: &[u8]) -> bool {
    let mut difference = secret.len() ^ given.len();
    for (i, &byte) in given.iter().enumerate() {
        let expected = secret.get(i).copied().unwrap_or(0);
        difference |= usize::from(black_box(expected ^ byte));
    }
    black_box(difference) == 0
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
    fn passwords_are_equal_or_not() {
        assert!(equal(b"", b""));
        assert!(equal(b"hakone", b"hakone"));
        for other in ["", "h", "hakone ", "Hakone", "hakonf", "hakonehakone"] {
            assert!(!equal(b"hakone", other.as_bytes()), "{other}");
        }
    }

    #[test]
    fn run_ids_differ() {
        let (a, b) = (random_id(), random_id());
        assert_eq!(a.len(), 40);
        assert_ne!(a, b);
    }
}
