//! What every thread of one server shares, whatever protocol it speaks.

use std::sync::{Arc, Mutex};

use crate::{Shared, config::Config, http::Hosts, metrics::Metrics, program::Loader, watch::Watch};

/// One server.
pub(crate) struct Service {
    pub(crate) config: Config,
    pub(crate) hosts: Hosts,
    pub(crate) shared: Arc<Shared>,
    pub(crate) loader: Loader,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) watch: Arc<Watch>,
    /// Held while the program is reloaded.
    pub(crate) reloading: Mutex<()>,
}
