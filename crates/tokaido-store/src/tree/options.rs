//! How a store is opened.

use std::{fmt, str::FromStr, sync::Arc, time::Duration};

use crate::{Clock, DatabaseId, SystemClock, WriteError, limits};

use super::LogStorage;

/// When a commit is made durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SyncMode {
    /// Before it is answered. Nothing that was answered is ever lost.
    #[default]
    Always,
    /// At this interval, in the background. A power failure loses what was answered since.
    Interval(Duration),
    /// When the operating system writes it. A power failure loses what was answered since, usually
    /// the last few seconds; the end of the process loses nothing.
    Os,
}

/// A text that is not a [`SyncMode`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no sync mode: use \"always\", \"interval:500ms\", \"interval:1s\" or \"os\"")]
pub struct SyncModeError {
    text: String,
}

/// Parses as in a configuration: `always`, `interval:` and a time in `ms` or `s`, `os`.
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
    /// Bytes of memory after which the memtable is frozen and a checkpoint begins. While it runs,
    /// there is a second one; a writer that fills that waits. One group of transactions may exceed
    /// the limit. The log grows to about the same size, so opening reads at most twice as much.
    pub memtable_bytes: usize,
    /// Maximum number of bytes that the base may grow to. It costs address space, not memory or disk.
    pub size_max: usize,
    /// Maximum number of snapshots at one time. Each costs 64 bytes of `lock.mdb`.
    pub snapshots_max: u32,
    /// Maximum number of databases; at most [`limits::DATABASES_MAX`]. Existing ones stay. Each
    /// costs some 200 bytes of memory, 100 in every snapshot, and a little time at opening.
    pub databases_max: usize,
    /// Maximum number of writes of one transaction; at most [`limits::TRANSACTION_WRITES_MAX`].
    pub transaction_writes_max: usize,
    /// Maximum number of bytes of keys and values that one transaction writes; at most
    /// [`limits::TRANSACTION_BYTES_MAX`].
    pub transaction_bytes_max: usize,
    /// Longest key that can be written, in bytes; at most [`limits::KEY_LEN_MAX`]. Existing longer
    /// ones can still be read and deleted.
    pub key_len_max: usize,
    /// Longest value that can be written, in bytes; at most [`limits::VALUE_LEN_MAX`].
    pub value_len_max: usize,
    /// Bytes of log that closing the store leaves for the next opening to read. A process that has
    /// written nothing meanwhile leaves 64 KiB at most, for the benefit of others that only read.
    pub log_left_bytes_max: u64,
    /// Bytes of zeros by which a segment of the log grows ahead of its frames. A sync that need not
    /// change the length of the file is cheaper.
    pub log_growth_bytes: u64,
    /// Roughly how many pages of the base a checkpoint changes in one LMDB transaction. They are
    /// kept in memory until it is committed, and syncs of the log wait for theirs.
    pub checkpoint_pages: usize,
    /// Bytes of keys and values from which on a store has runs: a checkpoint that is small compared with the base writes
    /// its own file, and the base is changed for several of them together. With 0, every checkpoint does so.
    pub runs_from_bytes: u64,
    /// Bytes of runs from which on they may be merged into the base. Beyond that, they are merged
    /// when they are a considerable part of the base.
    pub runs_bytes_min: u64,
    /// Records of a tree from which on it is not looked up for every written key whether it replaces one, where that would
    /// take long: for readers who ask how many records there are, and for checkpoints if the base does not fit into memory or
    /// there are many runs, or if checkpoints come one after the other.
    pub estimated_from_records: u64,
    /// Bytes of memory that there are; `None` for what the operating system says. A base of more than half of that does
    /// not fit.
    pub memory_bytes: Option<u64>,
    /// Whether the thread that runs checkpoints starts when the store is opened, not with the first checkpoint: a thread
    /// that is bound to a core passes that on to those it starts.
    pub starts_checkpointer: bool,
    /// How long to wait after a failed checkpoint, for example because of a full disk, before it is
    /// tried again.
    pub checkpoint_retry: Duration,
    /// The clock used for expiry.
    pub clock: Arc<dyn Clock>,
    /// Where the log is kept; `None` for the store's directory. Tests use it for failing disks.
    pub log: Option<Arc<dyn LogStorage>>,
}

/// The default of [`Options::memtable_bytes`] suits a machine of 1 GB; a larger one saves
/// checkpoints on a machine of 256 GB.
pub const MEMTABLE_BYTES_DEFAULT: usize = 64 << 20;

/// The default of [`Options::size_max`]: 1 TiB, far more than most machines hold.
pub const SIZE_MAX_DEFAULT: usize = 1 << 40;

/// The default of [`Options::snapshots_max`].
pub const SNAPSHOTS_MAX_DEFAULT: u32 = 1024;

/// The default of [`Options::databases_max`].
pub const DATABASES_DEFAULT: usize = 256;

/// The default of [`Options::transaction_writes_max`].
pub const TRANSACTION_WRITES_DEFAULT: usize = 1_000_000;

/// The default of [`Options::transaction_bytes_max`]: 256 MiB.
pub const TRANSACTION_BYTES_DEFAULT: usize = 256 << 20;

/// The default of [`Options::log_left_bytes_max`]: 1 MiB is read in about a millisecond. A
/// checkpoint takes several, because of its syncs. Programs that were started a hundred times and
/// wrote 170 kB each time took the least time in total with 512 kB to 1 MB.
pub const LOG_LEFT_BYTES_DEFAULT: u64 = 1 << 20;

/// The default of [`Options::log_growth_bytes`]: 1 MiB.
pub const LOG_GROWTH_BYTES_DEFAULT: u64 = 1 << 20;

/// The default of [`Options::checkpoint_pages`]: 16 MiB. LMDB writes its list of free pages with each transaction, which may
/// be megabytes if much is free; with a higher number, syncs of the log wait longer.
pub const CHECKPOINT_PAGES_DEFAULT: usize = 4096;

/// The default of [`Options::runs_from_bytes`]: 128 MiB. A smaller base is changed in a second.
pub const RUNS_FROM_BYTES_DEFAULT: u64 = 128 << 20;

/// The default of [`Options::runs_bytes_min`]: 16 MiB.
pub const RUNS_BYTES_MIN_DEFAULT: u64 = 16 << 20;

/// The default of [`Options::estimated_from_records`]. A smaller tree has few keys to look up, mostly in the processor's cache.
pub const ESTIMATED_FROM_RECORDS_DEFAULT: u64 = 200_000;

/// The default of [`Options::checkpoint_retry`].
pub const CHECKPOINT_RETRY_DEFAULT: Duration = Duration::from_secs(1);

impl Default for Options {
    fn default() -> Self {
        Self {
            sync: SyncMode::Always,
            memtable_bytes: MEMTABLE_BYTES_DEFAULT,
            size_max: SIZE_MAX_DEFAULT,
            snapshots_max: SNAPSHOTS_MAX_DEFAULT,
            databases_max: DATABASES_DEFAULT,
            transaction_writes_max: TRANSACTION_WRITES_DEFAULT,
            transaction_bytes_max: TRANSACTION_BYTES_DEFAULT,
            key_len_max: limits::KEY_LEN_MAX,
            value_len_max: limits::VALUE_LEN_MAX,
            log_left_bytes_max: LOG_LEFT_BYTES_DEFAULT,
            log_growth_bytes: LOG_GROWTH_BYTES_DEFAULT,
            checkpoint_pages: CHECKPOINT_PAGES_DEFAULT,
            runs_from_bytes: RUNS_FROM_BYTES_DEFAULT,
            runs_bytes_min: RUNS_BYTES_MIN_DEFAULT,
            estimated_from_records: ESTIMATED_FROM_RECORDS_DEFAULT,
            memory_bytes: None,
            starts_checkpointer: false,
            checkpoint_retry: CHECKPOINT_RETRY_DEFAULT,
            clock: Arc::new(SystemClock),
            log: None,
        }
    }
}

/// The length of a transaction has 32 bits in the log. A write may also remove an entry of the
/// expiry index and add one, with the key in both, and has less than 100 bytes beside all that.
const _: () = assert!(
    3 * limits::TRANSACTION_BYTES_MAX + 100 * limits::TRANSACTION_WRITES_MAX < u32::MAX as usize
);

impl Options {
    /// Limits the options to what there are numbers for and what the files can hold.
    pub(super) fn within_limits(self) -> Self {
        Self {
            databases_max: self.databases_max.min(limits::DATABASES_MAX),
            transaction_writes_max: self.transaction_writes_max.min(limits::TRANSACTION_WRITES_MAX),
            transaction_bytes_max: self.transaction_bytes_max.min(limits::TRANSACTION_BYTES_MAX),
            key_len_max: self.key_len_max.min(limits::KEY_LEN_MAX),
            value_len_max: self.value_len_max.min(limits::VALUE_LEN_MAX),
            ..self
        }
    }

    /// Refuses a record that may not be written.
    #[inline]
    pub(super) fn check_record(
        &self,
        keyspace: DatabaseId,
        key: &[u8],
        value: &[u8],
    ) -> Result<(), WriteError> {
        keyspace.check_key(key, self.key_len_max)?;
        if value.len() > self.value_len_max {
            return Err(WriteError::ValueLength { len: value.len(), max: self.value_len_max });
        }
        Ok(())
    }

    /// Refuses a transaction that has written too much.
    #[inline]
    pub(super) fn check_sum(&self, writes: usize, bytes: usize) -> Result<(), WriteError> {
        let (writes_max, bytes_max) = (self.transaction_writes_max, self.transaction_bytes_max);
        if writes <= writes_max && bytes <= bytes_max {
            return Ok(());
        }
        Err(WriteError::TransactionTooLarge { writes_max, bytes_max })
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
