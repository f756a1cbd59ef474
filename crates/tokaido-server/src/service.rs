//! What every thread of one server shares, whatever protocol it speaks.

use std::sync::Arc;

use tokaido_script::{Sources, Vm, VmError};

use crate::{Shared, config::Config, http::Router, metrics::Metrics};

/// One server.
pub(crate) struct Service {
    pub(crate) config: Config,
    pub(crate) shared: Arc<Shared>,
    pub(crate) router: Router,
    pub(crate) metrics: Arc<Metrics>,
}

impl Service {
    /// A VM for one more thread. What is wrong with the sources was told when the first was made.
    pub(crate) fn new_vm(&self, sources: &Sources) -> Result<Vm, VmError> {
        let (vm, _load_errors) =
            Vm::new(self.shared.store(), sources, self.config.script_limits())?;
        Ok(vm)
    }
}
