//! What an operator may set for Tokyo Tyrant's scripts.

use std::sync::Arc;

use super::TyrantCommons;

/// What an operator may set for Tokyo Tyrant's scripts.
#[derive(Clone, Debug)]
pub struct TyrantSettings {
    /// The database that they read and write.
    pub database: String,
    /// What the scripts of all virtual machines share.
    pub commons: Arc<TyrantCommons>,
}

impl Default for TyrantSettings {
    fn default() -> Self {
        Self { database: "main".to_owned(), commons: Arc::default() }
    }
}
