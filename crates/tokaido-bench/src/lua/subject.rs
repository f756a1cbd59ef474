//! What is lent to be measured: a function in a virtual machine.

use std::time::Duration;

/// A virtual machine with a function that is to be timed.
pub trait Subject {
    /// Why a sample failed.
    type Error;

    /// Takes a sample, after a full collection of garbage; gives the time of all of its calls together.
    ///
    /// # Errors
    /// If the function raises.
    fn sample(&mut self, sample: Sample) -> Result<Duration, Self::Error>;

    /// What the compiler has done since this was last asked for.
    fn take_trace_events(&mut self) -> Vec<TraceEvent>;
}

/// One sample: how many calls, and what comes before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Whether an empty function is called in the place of the one that is measured: what the loop itself takes.
    pub is_empty: bool,
    /// Calls that are timed.
    pub count: u64,
    /// Calls just before them that are not, whose garbage is left lying about.
    pub before: u64,
}

/// Something that the compiler did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceEvent {
    /// Where the trace began, as `file:line`.
    pub start: String,
    /// What became of it.
    pub what: TraceOutcome,
}

/// What became of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TraceOutcome {
    /// It is machine code; its end is linked to what LuaJIT calls this.
    Compiled {
        /// LuaJIT's name of the link: `loop`, `root`, `interpreter`, …
        link: String,
    },
    /// It was given up.
    Aborted {
        /// At this `file:line`.
        place: String,
        /// And for this reason.
        reason: String,
    },
    /// It begins behind a call of a function that cannot be compiled.
    Stitched,
    /// All machine code was thrown away.
    Flushed,
}
