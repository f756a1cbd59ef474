//! How a store is opened.

use std::sync::Arc;

use crate::{Clock, SystemClock};

/// How to open a store.
#[derive(Clone)]
pub struct Options {
    /// The clock that expiry goes by.
    pub clock: Arc<dyn Clock>,
    /// Most bytes that the file may grow to. It costs address space, not memory or disk, so the
    /// default (1 TiB) is far above what a machine holds.
    pub size_max: usize,
    /// Most snapshots at one time.
    pub snapshots_max: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self { clock: Arc::new(SystemClock), size_max: 1 << 40, snapshots_max: 1024 }
    }
}
