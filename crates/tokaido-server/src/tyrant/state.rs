//! What all connections that speak to Tokyo Tyrant share.

use super::{figures::Figures, rights::Rights};
use crate::config::TyrantConfig;

/// The shared state.
pub(crate) struct State {
    database: String,
    pub(crate) rights: Rights,
    pub(crate) figures: Figures,
}

impl State {
    /// The configuration was validated, so its names are valid.
    pub(crate) fn new(config: &TyrantConfig) -> Self {
        Self {
            database: config.database.clone(),
            rights: Rights::of(&config.mask, &config.unmask),
            figures: Figures::default(),
        }
    }

    /// The database that clients read and write.
    pub(crate) fn database(&self) -> &str {
        &self.database
    }
}
