//! What readers look into before the base.

use std::sync::Arc;

use super::{memtable::Memtable, runs::Runs};

/// What readers look into before the base: the memtables, then the runs.
#[derive(Clone)]
pub(super) struct Tables {
    pub(super) active: Arc<Memtable>,
    pub(super) frozen: Option<Arc<Memtable>>,
    pub(super) runs: Arc<Runs>,
}

impl Tables {
    /// The memtables, newest first.
    pub(super) fn memtables(&self) -> impl Iterator<Item = &Memtable> {
        std::iter::once(&*self.active).chain(self.frozen.as_deref())
    }
}
