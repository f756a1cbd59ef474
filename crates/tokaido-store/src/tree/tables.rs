//! The memtables that readers look into.

use std::sync::Arc;

use super::memtable::Memtable;

/// The memtables that readers look into, newest first.
pub(super) struct Tables {
    pub(super) active: Arc<Memtable>,
    pub(super) frozen: Option<Arc<Memtable>>,
}

impl Tables {
    pub(super) fn each(&self) -> impl Iterator<Item = &Memtable> {
        std::iter::once(&*self.active).chain(self.frozen.as_deref())
    }
}
