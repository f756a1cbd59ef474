//! `[limits]`: sizes and times, all in one table. Options, defaults, ranges, flags and their help
//! follow from it, and the tests hold `tokaido.toml` and `docs/configuration.md` to it.

use std::{ops::RangeInclusive, time::Duration};

use serde::{Deserialize, Serialize};
use tokaido_store::{composite, limits as fixed, tree};
use tokaido_wire::resp;

use super::ConfigError;

/// Longest time that can be set: a leap year.
const MS_MAX: u64 = 366 * 24 * 3600 * 1000;

/// Most bytes of anything in memory that can be set, 1 TiB. Of what memory there is, nobody asks.
const BYTES_MAX: u64 = 1 << 40;

/// Most of anything that is counted.
const COUNT_MAX: u64 = 10_000_000;

/// One option of `[limits]`.
#[derive(Debug)]
pub struct Limit {
    /// Its name with the section: `limits.script_ms`.
    pub path: &'static str,
    /// Its name. What it counts in stands at its end or before `_max`: `bytes`, `ms`, `us`.
    pub name: &'static str,
    /// What it is about.
    pub group: &'static str,
    /// What it limits.
    pub help: &'static str,
    /// The values that it can have.
    pub range: RangeInclusive<u64>,
    get: fn(&Limits) -> u64,
    set: fn(&mut Limits, u64),
}

impl Limit {
    /// Its value.
    #[must_use]
    pub fn get(&self, limits: &Limits) -> u64 {
        (self.get)(limits)
    }

    /// Sets it.
    ///
    /// # Errors
    /// [`ConfigError::Value`] if it cannot have that value.
    pub fn set(&self, limits: &mut Limits, value: u64) -> Result<(), ConfigError> {
        self.check(value)?;
        (self.set)(limits, value);
        Ok(())
    }

    fn check(&self, value: u64) -> Result<(), ConfigError> {
        if self.range.contains(&value) {
            return Ok(());
        }
        let (min, max) = (self.range.start(), self.range.end());
        let message = format!("{value} is out of range; it takes {min} to {max}");
        Err(ConfigError::Value { option: self.path, message })
    }
}

macro_rules! limits {
    ($($group:literal {
        $($(#[doc = $help:literal])+ $name:ident: $type:ty = $default:expr, $range:expr;)+
    })+) => {
        /// Sizes and times beyond which the server says no.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct Limits {
            $($($(#[doc = $help])+ pub $name: $type,)+)+
        }

        impl Default for Limits {
            fn default() -> Self {
                Self { $($($name: $default,)+)+ }
            }
        }

        /// Every option of `[limits]`, in the order in which they are told of.
        pub static LIMITS: &[Limit] = &[$($(
            Limit {
                path: concat!("limits.", stringify!($name)),
                name: stringify!($name),
                group: $group,
                help: concat!($($help),+),
                range: $range,
                get: |limits| limits.$name as u64,
                set: |limits, value| limits.$name = value as $type,
            },
        )+)+];
    };
}

limits! {
    "Connections" {
        /// Most connections at one time
        connections_max: usize = 10_000, 1..=COUNT_MAX;
        /// Most connections over the limit that are told so at one time
        refusals_max: usize = 64, 0..=COUNT_MAX;
        /// Most connections that wait in the system to be accepted
        accept_queue_max: usize = 4096, 1..=65_535;
        /// Longest a new connection may take for its first line
        first_line_ms: u64 = 10_000, 1..=MS_MAX;
        /// Longest a client may take to send one request
        request_ms: u64 = 60_000, 1..=MS_MAX;
        /// Longest a client may leave its replies untaken
        reply_ms: u64 = 60_000, 1..=MS_MAX;
        /// How long a connection may rest between requests; 0: for ever
        idle_ms: u64 = 0, 0..=MS_MAX;
        /// How long a client may be silent before TCP asks whether it is there
        keepalive_ms: u64 = 300_000, 1_000..=32_767_000;
        /// Longest a connection over the limit may take for its first line
        refusal_ms: u64 = 1_000, 1..=MS_MAX;
        /// How long a connection is still read from after its last reply
        linger_ms: u64 = 500, 0..=MS_MAX;
        /// Most bytes that are read after it
        linger_bytes_max: usize = 16 << 20, 0..=BYTES_MAX;
        /// Longest a stopping server waits for its clients
        stop_ms: u64 = 10_000, 1..=MS_MAX;
        /// Bytes of a buffer for requests or replies; longer ones get longer buffers
        buffer_bytes: usize = 16 << 10, 1 << 10..=16 << 20;
        /// Most buffers that a worker keeps for use again
        buffers_kept_max: usize = 256, 0..=COUNT_MAX;
    }
    "Redis protocol" {
        /// Most bytes of one request of the Redis protocol
        request_bytes_max: usize = 128 << 20, 1..=u32::MAX as u64;
        /// Most arguments of one request, its name included
        request_arguments_max: usize = resp::ARGUMENTS_MAX, 1..=resp::ARGUMENTS_MAX as u64;
        /// Most bytes of replies that a client has not taken, before it is answered no more
        unsent_bytes_max: usize = 16 << 20, 1..=BYTES_MAX;
        /// Most requests of one pipeline before other connections have their turn
        slice_requests_max: usize = 128, 1..=COUNT_MAX;
        /// Most bytes of replies before that
        slice_reply_bytes_max: usize = 256 << 10, 1..=BYTES_MAX;
        /// Most requests of one pipeline in one group of writes
        writer_slice_requests_max: usize = 1024, 1..=COUNT_MAX;
        /// Most bytes of replies of one pipeline in one group of writes
        writer_slice_reply_bytes_max: usize = 4 << 20, 1..=BYTES_MAX;
        /// Most commands that MULTI queues
        queued_commands_max: usize = 100_000, 1..=COUNT_MAX;
        /// Most bytes of the arguments of commands that MULTI queues
        queued_bytes_max: usize = 256 << 20, 1..=BYTES_MAX;
        /// Most keys that a session watches
        watched_keys_max: usize = 10_000, 1..=COUNT_MAX;
        /// Most cursors of SCAN that are remembered; each scan takes two
        scan_cursors_max: usize = 4096, 2..=COUNT_MAX;
        /// Most keys that one SCAN visits
        scan_count_max: usize = 10_000, 1..=COUNT_MAX;
        /// Most keys that KEYS answers with
        keys_results_max: usize = 1_000_000, 1..=100_000_000;
        /// Databases that SELECT knows by number
        numbered_databases_max: usize = 16, 1..=fixed::DATABASES_MAX as u64;
    }
    "HTTP" {
        /// Most bytes of a request line with its headers
        http_head_bytes_max: usize = 400 << 10, 8 << 10..=16 << 20;
        /// Most headers of a request, and of a response of a procedure
        http_headers_max: usize = 100, 1..=10_000;
        /// Most bytes of an HTTP body
        http_body_bytes_max: usize = 64 << 20, 1..=BYTES_MAX;
        /// Most bytes of the body that a procedure answers with
        http_response_bytes_max: usize = 64 << 20, 1..=BYTES_MAX;
        /// Most parameters of a query that a procedure is shown
        http_query_pairs_max: usize = 1_000, 1..=COUNT_MAX;
        /// Most records of one page of a listing
        http_page_records_max: usize = 100_000, 1..=COUNT_MAX;
        /// Most bytes of one page of a listing, about
        http_page_bytes_max: usize = 8 << 20, 1..=BYTES_MAX;
    }
    "Procedures" {
        /// Longest one call of a procedure may run
        script_ms: u64 = 1_000, 1..=MS_MAX;
        /// Most memory of one Lua VM
        script_memory_bytes: usize = 256 << 20, 4 << 20..=BYTES_MAX;
        /// Most steps of one match of a pattern that backtracks
        script_pattern_steps_max: u32 = 10_000_000, 1_000..=u32::MAX as u64;
        /// Longest that reads of a procedure may take to be run by workers; 0: never
        script_short_us: u64 = 1_000, 0..=1_000_000;
        /// Most keys of one get_many, and values of one get_all
        script_many_keys_max: usize = 100_000, 1..=COUNT_MAX;
        /// Most bytes that one get_many or get_all brings
        script_many_bytes_max: usize = 256 << 20, 1..=BYTES_MAX;
        /// Most bytes of one message to tokaido.log; the rest is cut
        script_log_bytes_max: usize = 8 << 10, 1..=1 << 20;
        /// Most procedure files
        procedure_files_max: usize = 1_000, 1..=COUNT_MAX;
        /// Most bytes of a procedure file
        procedure_file_bytes_max: u64 = 1 << 20, 1..=1 << 30;
        /// Most threads for reads that may take long; otherwise one for each worker, at least two
        pool_threads_max: usize = 16, 1..=256;
        /// Most reads that wait for such a thread
        pool_queue_max: usize = 4096, 1..=COUNT_MAX;
    }
    "Writing" {
        /// Most jobs that wait for the writer
        writer_queue_max: usize = 4096, 1..=COUNT_MAX;
        /// Most jobs of one group, which one sync makes durable
        group_jobs_max: usize = 1024, 1..=COUNT_MAX;
        /// How long a group takes further jobs
        group_ms: u64 = 10, 0..=60_000;
        /// Most records that one transaction writes
        transaction_writes_max: usize = tree::TRANSACTION_WRITES_DEFAULT,
            1..=fixed::TRANSACTION_WRITES_MAX as u64;
        /// Most bytes of keys and values that one transaction writes
        transaction_bytes_max: usize = tree::TRANSACTION_BYTES_DEFAULT,
            1..=fixed::TRANSACTION_BYTES_MAX as u64;
        /// Longest key that is written
        key_bytes_max: usize = fixed::KEY_LEN_MAX, 1..=fixed::KEY_LEN_MAX as u64;
        /// Longest value that is written
        value_bytes_max: usize = fixed::VALUE_LEN_MAX, 1..=fixed::VALUE_LEN_MAX as u64;
        /// How often expired records are looked for, to free their space
        expiry_interval_ms: u64 = 500, 1..=MS_MAX;
        /// Most expired records that one transaction removes
        expiry_batch_max: usize = 1_000, 1..=COUNT_MAX;
        /// Most records of each cache that are looked at for that at a time, about
        cache_sweep_max: usize = composite::SWEEP_RECORDS_DEFAULT, 1..=COUNT_MAX;
    }
    "Store" {
        /// Most bytes of writes that are kept in memory between two checkpoints
        memtable_bytes: usize = tree::MEMTABLE_BYTES_DEFAULT, 1..=BYTES_MAX;
        /// Most bytes that the store's file may grow to
        store_bytes_max: usize = tree::SIZE_MAX_DEFAULT, 1..=64 << 40;
        /// Most views of the store at one time
        snapshots_max: u32 = tree::SNAPSHOTS_MAX_DEFAULT, 1..=COUNT_MAX;
        /// Bytes by which the log grows ahead of what is written
        log_growth_bytes: u64 = tree::LOG_GROWTH_BYTES_DEFAULT, 0..=1 << 30;
        /// Most bytes of log that a stopping server leaves to the next start
        log_left_bytes_max: u64 = tree::LOG_LEFT_BYTES_DEFAULT, 0..=BYTES_MAX;
        /// How long until a checkpoint that failed is tried again
        checkpoint_retry_ms: u64 = tree::CHECKPOINT_RETRY_DEFAULT.as_millis() as u64, 1..=MS_MAX;
        /// How often files of constant databases are looked at, whether they were replaced
        cdb_look_ms: u64 = composite::LOOK_INTERVAL_DEFAULT.as_millis() as u64, 1..=MS_MAX;
    }
}

impl Limits {
    /// Checks that each option has a value that it can have.
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        LIMITS.iter().try_for_each(|limit| limit.check(limit.get(self)))
    }

    /// How the store is opened, as far as limits say.
    pub(super) fn store(&self) -> tree::Options {
        tree::Options {
            memtable_bytes: self.memtable_bytes,
            size_max: self.store_bytes_max,
            snapshots_max: self.snapshots_max,
            transaction_writes_max: self.transaction_writes_max,
            transaction_bytes_max: self.transaction_bytes_max,
            key_len_max: self.key_bytes_max,
            value_len_max: self.value_bytes_max,
            log_left_bytes_max: self.log_left_bytes_max,
            log_growth_bytes: self.log_growth_bytes,
            checkpoint_retry: Duration::from_millis(self.checkpoint_retry_ms),
            ..tree::Options::default()
        }
    }

    /// How mounted databases are looked after.
    pub(super) fn mounting(&self) -> composite::Options {
        composite::Options {
            look_interval: Duration::from_millis(self.cdb_look_ms),
            sweep_records_max: self.cache_sweep_max,
        }
    }

    /// What a call of a procedure may use.
    pub(super) fn script(&self) -> tokaido_script::Limits {
        tokaido_script::Limits {
            time: Duration::from_millis(self.script_ms),
            memory_bytes: self.script_memory_bytes,
            pattern_steps_max: self.script_pattern_steps_max,
            many_keys_max: self.script_many_keys_max,
            many_bytes_max: self.script_many_bytes_max,
            log_len_max: self.script_log_bytes_max,
            response_len_max: self.http_response_bytes_max,
            response_headers_max: self.http_headers_max,
            query_pairs_max: self.http_query_pairs_max,
        }
    }

    /// What the directory of procedures may hold.
    pub(super) fn sources(&self) -> tokaido_script::SourceLimits {
        tokaido_script::SourceLimits {
            files_max: self.procedure_files_max,
            len_max: self.procedure_file_bytes_max,
        }
    }

    /// What one request of the Redis protocol may be.
    pub(crate) fn request(&self) -> resp::Limits {
        resp::Limits {
            request_len_max: self.request_bytes_max,
            arguments_max: self.request_arguments_max,
            ..resp::Limits::default()
        }
    }
}

#[cfg(test)]
mod tests;
