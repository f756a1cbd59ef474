//! `[limits]`: sizes and times, all in one table. Options, defaults, ranges, flags and their help
//! follow from it, and the tests hold `tokaido.toml` and `docs/configuration.md` to it.

use std::{ops::RangeInclusive, time::Duration};

use serde::{Deserialize, Serialize};
use tokaido_collections::Packing;
use tokaido_store::{composite, limits as fixed, tree};
use tokaido_wire::{memcached, resp};

use super::ConfigError;

/// Maximum time that can be set: a leap year.
const MS_MAX: u64 = 366 * 24 * 3600 * 1000;

/// Maximum size that can be set for anything held in memory: 1 TiB. How much memory the machine has
/// is not looked at.
const BYTES_MAX: u64 = 1 << 40;

/// Maximum of anything that is counted.
const COUNT_MAX: u64 = 10_000_000;

/// One option of `[limits]`.
#[derive(Debug)]
pub struct Limit {
    /// Its name with the section: `limits.script_ms`.
    pub path: &'static str,
    /// Its name. The unit that it counts in is at its end or before `_max`: `bytes`, `ms`, `us`.
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
        /// The limits of the server: sizes, times and counts.
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

        /// Every option of `[limits]`, in the order in which they are shown.
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
        /// Maximum number of open connections
        connections_max: usize = 10_000, 1..=COUNT_MAX;
        /// Maximum number of connections over that limit that get an error before they are closed
        refusals_max: usize = 64, 0..=COUNT_MAX;
        /// Maximum number of connections waiting in the kernel to be accepted
        accept_queue_max: usize = 4096, 1..=65_535;
        /// Time limit for the first line of a new connection
        first_line_ms: u64 = 10_000, 1..=MS_MAX;
        /// Time limit for a client to send the rest of a request it has begun
        request_ms: u64 = 60_000, 1..=MS_MAX;
        /// Maximum size of one request of a client that has not authenticated
        anonymous_request_bytes_max: usize = 16 << 10, 1 << 10..=BYTES_MAX;
        /// Time limit for a client to read its replies
        reply_ms: u64 = 60_000, 1..=MS_MAX;
        /// Idle time after which a connection is closed; 0: never
        idle_ms: u64 = 0, 0..=MS_MAX;
        /// Silence after which TCP keep-alive probes a client
        keepalive_ms: u64 = 300_000, 1_000..=32_767_000;
        /// Time limit for the first line of a connection over the limit
        refusal_ms: u64 = 1_000, 1..=MS_MAX;
        /// How long the server keeps reading from a connection after its last reply
        linger_ms: u64 = 500, 0..=MS_MAX;
        /// Maximum number of bytes it reads during that time
        linger_bytes_max: usize = 16 << 20, 0..=BYTES_MAX;
        /// How long a stopping server waits for clients to read their replies
        stop_ms: u64 = 10_000, 1..=MS_MAX;
        /// How much longer than that it may take to stop before the process is ended
        stop_exit_ms: u64 = 20_000, 1..=MS_MAX;
        /// Size of a request or reply buffer; longer requests get longer buffers
        buffer_bytes: usize = 16 << 10, 1 << 10..=16 << 20;
        /// Maximum number of free buffers a worker keeps for reuse
        buffers_kept_max: usize = 256, 0..=COUNT_MAX;
        /// Maximum size of the pushed messages that a client has not read before it is disconnected
        pushed_bytes_max: usize = 8 << 20, 1 << 10..=BYTES_MAX;
        /// Maximum size of the input that is read while a request waits
        blocked_input_bytes_max: usize = 64 << 10, 1..=BYTES_MAX;
    }
    "Redis protocol" {
        /// Maximum size of one Redis request
        request_bytes_max: usize = 128 << 20, 1..=u32::MAX as u64;
        /// Maximum number of arguments of one request, including its name
        request_arguments_max: usize = resp::ARGUMENTS_MAX, 1..=resp::ARGUMENTS_MAX as u64;
        /// Maximum size of the replies that a client has not read before the server stops answering it
        unsent_bytes_max: usize = 16 << 20, 1..=BYTES_MAX;
        /// Maximum size of the reply to one Redis request, and of the data collected for it
        reply_bytes_max: usize = 128 << 20, 1 << 10..=BYTES_MAX;
        /// Maximum number of pipelined requests before other connections get their turn
        slice_requests_max: usize = 128, 1..=COUNT_MAX;
        /// Maximum size of the replies to pipelined requests before other connections get their turn
        slice_reply_bytes_max: usize = 256 << 10, 1..=BYTES_MAX;
        /// Maximum number of requests of one pipeline in one group commit
        writer_slice_requests_max: usize = 1024, 1..=COUNT_MAX;
        /// Maximum size of the replies of one pipeline in one group commit
        writer_slice_reply_bytes_max: usize = 4 << 20, 1..=BYTES_MAX;
        /// Maximum number of commands MULTI queues
        queued_commands_max: usize = 100_000, 1..=COUNT_MAX;
        /// Maximum size of the arguments MULTI queues
        queued_bytes_max: usize = 256 << 20, 1..=BYTES_MAX;
        /// Maximum number of keys a session watches
        watched_keys_max: usize = 10_000, 1..=COUNT_MAX;
        /// Maximum number of channels and patterns a client subscribes to
        subscriptions_max: usize = 100_000, 1..=COUNT_MAX;
        /// Maximum total length of the names of these channels and patterns
        subscription_bytes_max: usize = 16 << 20, 1..=BYTES_MAX;
        /// Maximum number of prefixes a client tracks keys by
        tracking_prefixes_max: usize = 1_000, 1..=COUNT_MAX;
        /// Maximum number of SCAN cursors kept; each scan uses two
        scan_cursors_max: usize = 4096, 2..=COUNT_MAX;
        /// Maximum size of a script for EVAL, and of a library of functions
        redis_script_bytes_max: usize = 1 << 20, 1 << 10..=64 << 20;
        /// Maximum number of scripts that EVALSHA knows; beyond that, the least recently used one is forgotten
        redis_scripts_max: usize = 1000, 1..=COUNT_MAX;
        /// Maximum total size of the texts of these scripts
        redis_scripts_bytes_max: usize = 16 << 20, 1 << 10..=BYTES_MAX;
        /// Maximum total size of all libraries of functions
        redis_functions_bytes_max: usize = 16 << 20, 1 << 10..=fixed::VALUE_LEN_MAX as u64;
        /// Maximum number of keys one SCAN visits
        scan_count_max: usize = 10_000, 1..=COUNT_MAX;
        /// Maximum number of keys that KEYS returns, and of elements that a negative count returns
        keys_results_max: usize = 1_000_000, 1..=100_000_000;
        /// Number of databases that SELECT can address by number
        numbered_databases_max: usize = 16, 1..=fixed::DATABASES_MAX as u64;
    }
    "memcached protocol" {
        /// Maximum size of a value that a memcached client stores
        memcached_value_bytes_max: usize = memcached::VALUE_LEN_MAX, 1..=fixed::VALUE_LEN_MAX as u64;
        /// Maximum size of a line with the keys of a memcached get
        memcached_line_bytes_max: usize = memcached::KEYS_LINE_LEN_MAX,
            memcached::LINE_LEN_MAX as u64..=64 << 20;
        /// Maximum size of the values in the reply to one memcached request
        memcached_reply_bytes_max: usize = 64 << 20, 1 << 10..=BYTES_MAX;
    }
    "Kyoto Tycoon" {
        /// Maximum size of a request of Kyoto Tycoon's binary protocol
        kyoto_request_bytes_max: usize = 64 << 20, 1 << 10..=BYTES_MAX;
        /// Maximum size of the keys and values in the reply to one call of Kyoto Tycoon
        kyoto_reply_bytes_max: usize = 64 << 20, 1 << 10..=BYTES_MAX;
        /// Maximum number of cursors of a Kyoto Tycoon connection
        kyoto_cursors_max: usize = 1000, 1..=1_000_000;
    }
    "Tokyo Tyrant" {
        /// Maximum size of a request of Tokyo Tyrant's protocols
        tyrant_request_bytes_max: usize = 64 << 20, 1 << 10..=BYTES_MAX;
        /// Maximum size of the keys and values in the reply to one command of Tokyo Tyrant
        tyrant_reply_bytes_max: usize = 64 << 20, 1 << 10..=BYTES_MAX;
        /// Maximum size of the stash of Tokyo Tyrant's scripts
        tyrant_stash_bytes_max: usize = 64 << 20, 1 << 10..=BYTES_MAX;
    }
    "HTTP" {
        /// Maximum size of an HTTP request line with its headers
        http_head_bytes_max: usize = 400 << 10, 8 << 10..=16 << 20;
        /// Maximum number of headers of a request, and of a response of a procedure
        http_headers_max: usize = 100, 1..=10_000;
        /// Maximum size of an HTTP request body
        http_body_bytes_max: usize = 64 << 20, 1..=BYTES_MAX;
        /// Maximum size of the body that a procedure returns
        http_response_bytes_max: usize = 64 << 20, 1..=BYTES_MAX;
        /// Maximum number of query parameters that a procedure sees
        http_query_pairs_max: usize = 1_000, 1..=COUNT_MAX;
        /// Time limit for a handler that waits, including all its waits
        http_wait_ms: u64 = 60_000, 1..=MS_MAX;
        /// Maximum number of records on one page of a listing
        http_page_records_max: usize = 100_000, 1..=COUNT_MAX;
        /// Approximate maximum size of one page of a listing
        http_page_bytes_max: usize = 8 << 20, 1..=BYTES_MAX;
    }
    "Procedures" {
        /// Time limit for one call of a procedure, and for one script of a client
        script_ms: u64 = 1_000, 1..=MS_MAX;
        /// Time spent on one request after which a thread counts as stalled; at least twice script_ms
        stalled_ms: u64 = 2_000, 1..=MS_MAX;
        /// Time spent in one procedure after which the process ends; at least ten times script_ms; 0: never
        stalled_exit_ms: u64 = 10_000, 0..=MS_MAX;
        /// Maximum memory of one Lua or Ruby VM
        script_memory_bytes: usize = 256 << 20, 4 << 20..=BYTES_MAX;
        /// Maximum number of steps of one pattern match that backtracks
        script_pattern_steps_max: u32 = 10_000_000, 1_000..=u32::MAX as u64;
        /// Read procedures that take no longer than this run on the workers; 0: none do
        script_short_us: u64 = 1_000, 0..=1_000_000;
        /// Maximum number of keys of one get_many, of values of one get_all, and of elements that one call of a collection visits
        script_many_keys_max: usize = 100_000, 1..=COUNT_MAX;
        /// Maximum size of what one get_many, get_all or combination of sets returns
        script_many_bytes_max: usize = 256 << 20, 1..=BYTES_MAX;
        /// Maximum size of one message to tokaido.log; the rest is cut off
        script_log_bytes_max: usize = 8 << 10, 1..=1 << 20;
        /// Maximum number of OpenResty Lua timers that a worker has yet to run
        ngx_timers_pending_max: usize = 1024, 0..=COUNT_MAX;
        /// Maximum number of OpenResty Lua timers that a worker runs at a time
        ngx_timers_running_max: usize = 256, 0..=COUNT_MAX;
        /// Maximum number of procedure files
        procedure_files_max: usize = 1_000, 1..=COUNT_MAX;
        /// Maximum size of a procedure file
        procedure_file_bytes_max: u64 = 1 << 20, 1..=1 << 30;
        /// How often the procedure files are checked for changes with the option watch
        procedure_look_ms: u64 = 250, 1..=MS_MAX;
        /// Maximum number of threads for long reads; otherwise one per worker, at least two
        pool_threads_max: usize = 16, 1..=256;
        /// Maximum number of reads waiting for one of these threads
        pool_queue_max: usize = 4096, 1..=COUNT_MAX;
    }
    "OpenResty" {
        /// Maximum number of sockets of one request of an OpenResty handler
        handler_sockets_max: usize = 1_000, 1..=COUNT_MAX;
        /// Maximum number of sockets that the handlers of a worker have open, including those kept for later requests
        worker_sockets_max: usize = 4096, 1..=COUNT_MAX;
        /// Maximum size of the data that has arrived on a handler's socket and has not been received yet
        socket_bytes_max: usize = 64 << 20, 64 << 10..=BYTES_MAX;
        /// Maximum size of the data that has arrived on all such sockets of a worker and has not been received yet
        worker_socket_bytes_max: usize = 256 << 20, 64 << 10..=BYTES_MAX;
        /// Maximum number of names being looked up for the handlers of a worker at a time
        worker_lookups_max: usize = 256, 1..=COUNT_MAX;
    }
    "Writing" {
        /// Maximum number of jobs waiting for the writer
        writer_queue_max: usize = 4096, 1..=COUNT_MAX;
        /// Maximum number of jobs in one group commit, which one sync makes durable
        group_jobs_max: usize = 1024, 1..=COUNT_MAX;
        /// How long a group commit accepts further jobs after the first one
        group_ms: u64 = 10, 0..=60_000;
        /// Maximum number of records one transaction writes
        transaction_writes_max: usize = tree::TRANSACTION_WRITES_DEFAULT,
            1..=fixed::TRANSACTION_WRITES_MAX as u64;
        /// Maximum size of the keys and values one transaction writes
        transaction_bytes_max: usize = tree::TRANSACTION_BYTES_DEFAULT,
            1..=fixed::TRANSACTION_BYTES_MAX as u64;
        /// Maximum length of a key that is written
        key_bytes_max: usize = fixed::KEY_LEN_MAX, 1..=fixed::KEY_LEN_MAX as u64;
        /// Maximum length of a value that is written
        value_bytes_max: usize = fixed::VALUE_LEN_MAX, 1..=fixed::VALUE_LEN_MAX as u64;
        /// How often the server looks for expired records and the elements of deleted collections, to free their space
        expiry_interval_ms: u64 = 500, 1..=MS_MAX;
        /// Maximum number of these records and elements that one transaction removes, or of members of sorted sets that it counts, never more than 100,000
        expiry_batch_max: usize = 1_000, 1..=COUNT_MAX;
        /// Approximate number of records of each cache that are checked each time
        cache_sweep_max: usize = composite::SWEEP_RECORDS_DEFAULT, 1..=COUNT_MAX;
    }
    "Collections" {
        /// Maximum number of elements of a hash, list, set or sorted set that is packed into one record
        packed_elements_max: usize = Packing::default().elements_max, 0..=4096;
        /// Maximum length of each field, value and member of such a collection
        packed_text_bytes_max: usize = Packing::default().text_len_max, 0..=4096;
    }
    "Store" {
        /// Maximum number of databases
        databases_max: usize = 4096, 1..=fixed::DATABASES_MAX as u64;
        /// Number of databases up to which a client can create one by writing to it; procedures and the command line can create more
        client_databases_max: usize = 1024, 0..=fixed::DATABASES_MAX as u64;
        /// Maximum size of the writes kept in memory between two checkpoints
        memtable_bytes: usize = tree::MEMTABLE_BYTES_DEFAULT, 1..=BYTES_MAX;
        /// Maximum size of the store's file
        store_bytes_max: usize = tree::SIZE_MAX_DEFAULT, 1..=64 << 40;
        /// Maximum number of snapshots open at one time
        snapshots_max: u32 = tree::SNAPSHOTS_MAX_DEFAULT, 1..=COUNT_MAX;
        /// Number of bytes by which the log file grows ahead of what is written
        log_growth_bytes: u64 = tree::LOG_GROWTH_BYTES_DEFAULT, 0..=1 << 30;
        /// Maximum size of the log that a stopping server leaves for the next start
        log_left_bytes_max: u64 = tree::LOG_LEFT_BYTES_DEFAULT, 0..=BYTES_MAX;
        /// How long to wait before a failed checkpoint is retried
        checkpoint_retry_ms: u64 = tree::CHECKPOINT_RETRY_DEFAULT.as_millis() as u64, 1..=MS_MAX;
        /// How often the files of constant databases are checked for replacement
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
            databases_max: self.databases_max,
            transaction_writes_max: self.transaction_writes_max,
            transaction_bytes_max: self.transaction_bytes_max,
            key_len_max: self.key_bytes_max,
            value_len_max: self.value_bytes_max,
            log_left_bytes_max: self.log_left_bytes_max,
            log_growth_bytes: self.log_growth_bytes,
            // Workers may be bound to cores, and any of them may write enough for a checkpoint.
            starts_checkpointer: true,
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

    /// Up to what size a collection is packed into one record.
    pub(crate) fn packing(&self) -> Packing {
        Packing { elements_max: self.packed_elements_max, text_len_max: self.packed_text_bytes_max }
    }

    /// What a call of a procedure may use.
    pub(crate) fn script(&self) -> tokaido_script::Limits {
        tokaido_script::Limits {
            time: Duration::from_millis(self.script_ms),
            script_time: None,
            script_memory_bytes: None,
            memory_bytes: self.script_memory_bytes,
            pattern_steps_max: self.script_pattern_steps_max,
            many_keys_max: self.script_many_keys_max,
            many_bytes_max: self.script_many_bytes_max,
            packing: self.packing(),
            log_len_max: self.script_log_bytes_max,
            response_len_max: self.http_response_bytes_max,
            response_headers_max: self.http_headers_max,
            query_pairs_max: self.http_query_pairs_max,
            timers_pending_max: self.ngx_timers_pending_max,
            timers_running_max: self.ngx_timers_running_max,
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

    /// What one request of a client may be that has not given the password.
    pub(crate) fn anonymous_request(&self) -> resp::Limits {
        let len_max = self.anonymous_request_bytes_max.min(self.request_bytes_max);
        resp::Limits { request_len_max: len_max, ..self.request() }
    }
}

#[cfg(test)]
mod tests;
