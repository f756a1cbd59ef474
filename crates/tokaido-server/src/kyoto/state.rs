//! What all connections that speak to Kyoto Tycoon share.

use super::{figures::Figures, signals::Signals};
use crate::config::KyotoConfig;

/// The shared state.
#[derive(Default)]
pub(crate) struct State {
    databases: Vec<String>,
    pub(crate) figures: Figures,
    pub(crate) signals: Signals,
}

impl State {
    pub(crate) fn new(config: &KyotoConfig) -> Self {
        Self { databases: config.databases.clone(), ..Self::default() }
    }

    /// The databases that have numbers, in numerical order.
    pub(crate) fn databases(&self) -> &[String] {
        &self.databases
    }
}
