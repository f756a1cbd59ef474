//! How a store is opened.

use std::{fmt, str::FromStr, sync::Arc, time::Duration};

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

/// A text that is no [`SyncMode`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no sync mode: use \"always\", \"interval:500ms\", \"interval:1s\" or \"os\"")]
pub struct SyncModeError {
    text: String,
}

/// As in a configuration: `always`, `interval:` and a time in `ms` or `s`, `os`.
impl FromStr for SyncMode {
    type Err = SyncModeError;

    fn from_str(text: &str) -> Result<Self, SyncModeError> {
        let interval = |text: &str| {
            let time = text.strip_prefix("interval:")?;
            let time = match time.strip_suffix("ms") {
                Some(ms) => Duration::from_millis(ms.parse().ok()?),
                None => Duration::from_secs(time.strip_suffix('s')?.parse().ok()?),
            };
            (!time.is_zero()).then_some(Self::Interval(time))
        };
        match text {
            "always" => Ok(Self::Always),
            "os" => Ok(Self::Os),
            _ => interval(text).ok_or_else(|| SyncModeError { text: text.to_owned() }),
        }
    }
}

impl fmt::Display for SyncMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Always => f.write_str("always"),
            Self::Os => f.write_str("os"),
            Self::Interval(time) if time.subsec_millis() == 0 => {
                write!(f, "interval:{}s", time.as_secs())
            }
            Self::Interval(time) => write!(f, "interval:{}ms", time.as_millis()),
        }
    }
}

/// How to open a store.
#[derive(Clone)]
pub struct Options {
    /// When a commit is made durable.
    pub sync: SyncMode,
    /// Bytes of memory after which the memtable is frozen and a checkpoint begins. While it runs
    /// there are two; a writer that fills the second waits. A single group of transactions may
    /// exceed the limit. The log grows to about the same, so opening reads at most twice of it.
    pub memtable_bytes: usize,
    /// Most bytes that the base may grow to. It costs address space, not memory or disk.
    pub size_max: usize,
    /// Most snapshots at one time. Each place costs 64 bytes of `lock.mdb`.
    pub snapshots_max: u32,
    /// The clock that expiry goes by.
    pub clock: Arc<dyn Clock>,
    /// Where the log is kept; `None` for the store's directory. Tests put failing disks here.
    pub log: Option<Arc<dyn LogStorage>>,
}

/// The default of [`Options::memtable_bytes`] suits a machine of 1 GB; one of 256 GB does fewer
/// checkpoints with more.
pub const MEMTABLE_BYTES_DEFAULT: usize = 64 << 20;

/// The default of [`Options::size_max`]: 1 TiB, far above what most machines hold.
pub const SIZE_MAX_DEFAULT: usize = 1 << 40;

/// The default of [`Options::snapshots_max`].
pub const SNAPSHOTS_MAX_DEFAULT: u32 = 1024;

impl Default for Options {
    fn default() -> Self {
        Self {
            sync: SyncMode::Always,
            memtable_bytes: MEMTABLE_BYTES_DEFAULT,
            size_max: SIZE_MAX_DEFAULT,
            snapshots_max: SNAPSHOTS_MAX_DEFAULT,
            clock: Arc::new(SystemClock),
            log: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sync_modes_are_read_as_they_are_written() {
        for text in ["always", "os", "interval:1s", "interval:250ms", "interval:90s"] {
            assert_eq!(text.parse::<SyncMode>().unwrap().to_string(), text);
        }
        for text in ["", "never", "interval", "interval:", "interval:0s", "interval:1", "Always"] {
            assert!(text.parse::<SyncMode>().is_err(), "{text}");
        }
    }
}
