//! What all connections that speak the protocol share.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicU32, Ordering::Relaxed},
};

use tokaido_store::{DatabaseError, DatabaseId, Store};

use super::Clients;
use crate::config::MemcachedConfig;

/// The highest level of `verbosity`.
const VERBOSITY_MAX: u32 = 2;

/// The shared state.
pub(crate) struct State {
    database_name: String,
    /// Set once a client speaks the protocol.
    database: OnceLock<DatabaseId>,
    pub(super) clients: Arc<Clients>,
    verbosity: AtomicU32,
}

impl State {
    pub(crate) fn new(config: &MemcachedConfig) -> Self {
        Self {
            database_name: config.database.clone(),
            database: OnceLock::new(),
            clients: Arc::default(),
            verbosity: AtomicU32::new(0),
        }
    }

    /// The database that the protocol reads and writes.
    pub(crate) fn database(&self, store: &dyn Store) -> Result<DatabaseId, DatabaseError> {
        if let Some(&known) = self.database.get() {
            return Ok(known);
        }
        let found = store.database(&self.database_name)?;
        Ok(*self.database.get_or_init(|| found))
    }

    pub(super) fn database_name(&self) -> &str {
        &self.database_name
    }

    pub(super) fn verbosity(&self) -> u32 {
        self.verbosity.load(Relaxed)
    }

    pub(super) fn set_verbosity(&self, level: u32) {
        self.verbosity.store(level.min(VERBOSITY_MAX), Relaxed);
    }
}
