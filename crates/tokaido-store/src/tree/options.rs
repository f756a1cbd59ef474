//! How a store is opened.

use std::{sync::Arc, time::Duration};

use crate::{Clock, SystemClock};

use super::LogStorage;

/// When a commit is made durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SyncMode {
    /// Before it is answered. Nothing that was answered is ever lost.
    #[default]
    Always,
    /// At this interval, in the background. A power failure takes what was answered since.
    Interval(Duration),
    /// When the system writes it. A power failure takes what was answered since, which is usually
    /// some seconds; the end of the process takes nothing.
    Os,
}

/// How to open a store.
#[derive(Clone)]
pub struct Options {
    /// When a commit is made durable.
    pub sync: SyncMode,
    /// Bytes of memory after which the memtable is frozen and a checkpoint begins. While it runs
    /// there are two; a writer that fills the second waits. The log grows to about the same.
    pub memtable_bytes: usize,
    /// Most bytes that the base may grow to. It costs address space, not memory or disk, so the
    /// default (1 TiB) is far above what a machine holds.
    pub size_max: usize,
    /// Most snapshots at one time.
    pub snapshots_max: u32,
    /// The clock that expiry goes by.
    pub clock: Arc<dyn Clock>,
    /// Where the log is kept; `None` for the store's directory. Tests put failing disks here.
    pub log: Option<Arc<dyn LogStorage>>,
}

/// Suits a machine of 1 GB; one of 256 GB does fewer checkpoints with more.
const MEMTABLE_BYTES: usize = 64 << 20;

impl Default for Options {
    fn default() -> Self {
        Self {
            sync: SyncMode::Always,
            memtable_bytes: MEMTABLE_BYTES,
            size_max: 1 << 40,
            snapshots_max: 1024,
            clock: Arc::new(SystemClock),
            log: None,
        }
    }
}
