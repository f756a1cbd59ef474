//! The subject of a measurement: a function in a virtual machine.

use std::time::Duration;

/// A virtual machine with a function to be timed.
pub trait Subject {
    /// The error of a failed sample.
    type Error;

    /// Takes a sample, after a full garbage collection. Returns the total time of its calls.
    ///
    /// # Errors
    /// If the function raises.
    fn sample(&mut self, sample: Sample) -> Result<Duration, Self::Error>;

    /// What the compiler has done since the last call of this method.
    fn take_trace_events(&mut self) -> Vec<TraceEvent>;
}

/// One sample: how many calls, and what precedes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Whether to call an empty function instead of the measured one, to time the loop itself.
    pub is_empty: bool,
    /// Number of timed calls.
    pub count: u64,
    /// Number of untimed calls just before them, whose garbage is not collected.
    pub before: u64,
}

/// Something that the compiler did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceEvent {
    /// Where the trace began, as `file:line`.
    pub start: String,
    /// The outcome.
    pub what: TraceOutcome,
}

/// The outcome of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TraceOutcome {
    /// It was compiled to machine code, and its end is linked like this.
    Compiled {
        /// LuaJIT's name of the link: `loop`, `root`, `interpreter`, …
        link: String,
    },
    /// It was aborted.
    Aborted {
        /// At this `file:line`.
        place: String,
        /// And for this reason.
        reason: String,
    },
    /// It begins after a call of a function that cannot be compiled.
    Stitched,
    /// All machine code was discarded.
    Flushed,
}
