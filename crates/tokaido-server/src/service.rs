//! What every thread of one server shares, whatever protocol it speaks.

use std::sync::Arc;

use crate::{
    Shared, config::Config, http::Router, metrics::Metrics, procedures::Procedures,
};

/// One server.
pub(crate) struct Service {
    pub(crate) config: Config,
    pub(crate) shared: Arc<Shared>,
    pub(crate) procedures: Arc<Procedures>,
    pub(crate) router: Router,
    pub(crate) metrics: Arc<Metrics>,
}
