//! What a call may use, and what a directory of procedures may hold.

use std::time::Duration;

use tokaido_collections::Packing;

/// Maximum number of arguments in one call of a procedure: they are passed on Lua's stack.
pub const ARGUMENTS_MAX: usize = 200;

/// Maximum nesting of tables in arguments, results and JSON.
pub const VALUE_DEPTH_MAX: usize = 100;

/// Maximum number of values, including nested ones, in one argument or result, or in one JSON text.
pub const VALUE_COUNT_MAX: usize = 4_000_000;

/// Maximum number of compiled client scripts that a VM keeps; when there would be more, it discards all of them.
pub(crate) const REDIS_CHUNKS_MAX: usize = 1000;

/// Maximum depth of directories below the directory of procedures. This also stops loops of symbolic links.
pub const SOURCE_DEPTH_MAX: usize = 8;

/// What one call may use.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Wall-clock time of one call.
    pub time: Duration,
    /// Wall-clock time of one script; `None` is as long as it wants.
    pub script_time: Option<Duration>,
    /// Memory of the VM, in bytes.
    pub memory_bytes: usize,
    /// Memory of the VM while a script runs, in bytes; `None` is as much as it wants. What C does
    /// with a long string ends before a limit of time is looked at, so this bounds that, too.
    pub script_memory_bytes: Option<usize>,
    /// Steps of one match of a pattern that backtracks; within it no time limit is looked at.
    pub pattern_steps_max: u32,
    /// Keys of one `get_many`, values of one `get_all`, and elements that one call of a collection goes through.
    pub many_keys_max: usize,
    /// Bytes of values that one `get_many`, one `get_all` or one combination of sets brings.
    pub many_bytes_max: usize,
    /// Up to what size a collection is packed into one record.
    pub packing: Packing,
    /// Length of one message to `tokaido.log`, in bytes; the rest is cut.
    pub log_len_max: usize,
    /// Length of an HTTP response's body, in bytes.
    pub response_len_max: usize,
    /// Headers that a handler may set.
    pub response_headers_max: usize,
    /// Pairs that a query is taken apart into; the rest is left out.
    pub query_pairs_max: usize,
    /// Timers of a VM that have yet to be run.
    pub timers_pending_max: usize,
    /// Timers of a VM whose functions have begun and are not done.
    pub timers_running_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            time: Duration::from_secs(1),
            script_time: None,
            memory_bytes: 256 << 20,
            script_memory_bytes: None,
            // Some tenths of a second.
            pattern_steps_max: 10_000_000,
            many_keys_max: 100_000,
            many_bytes_max: 256 << 20,
            packing: Packing::default(),
            log_len_max: 8 << 10,
            response_len_max: 64 << 20,
            response_headers_max: 100,
            query_pairs_max: 1000,
            timers_pending_max: 1024,
            timers_running_max: 256,
        }
    }
}

/// What a directory of procedures may hold.
#[derive(Clone, Copy, Debug)]
pub struct SourceLimits {
    /// Procedure files.
    pub files_max: usize,
    /// Length of one file, in bytes.
    pub len_max: u64,
}

impl Default for SourceLimits {
    fn default() -> Self {
        Self { files_max: 1000, len_max: 1 << 20 }
    }
}
