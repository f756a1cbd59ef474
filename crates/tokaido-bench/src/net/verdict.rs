//! What the limit was: the server, the generator, or the requested rate.

use std::fmt;

use super::run::{Load, Outcome, Pace};

/// The fraction of the time from which on a generator that runs, or is ready to, is at its limit.
const BUSY_MIN: f64 = 0.9;

/// The fraction of the requested rate from which on it counts as reached.
const KEPT_MIN: f64 = 0.99;

/// What limited the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The generator waited for the server: the result is the server's.
    Server,
    /// The generator was at its limit: the server can do at least as much, and how much more is unknown.
    Generator,
    /// The server kept up with the requested rate.
    Rate,
}

impl Verdict {
    /// Judges the results of a load.
    #[must_use]
    pub fn of(load: &Load, outcome: &Outcome) -> Self {
        let is_busy = outcome.ran + outcome.waited >= BUSY_MIN;
        match load.pace {
            Pace::Closed if is_busy => Self::Generator,
            Pace::Closed => Self::Server,
            Pace::Rate(rate) => {
                let is_kept = outcome.rate >= rate * KEPT_MIN && outcome.unsent == 0;
                // If requests were late though connections were free, it was not the server they waited for.
                let late = outcome.lateness.quantile(0.99);
                let is_late = late > outcome.tally.response.quantile(0.99) / 2;
                match (is_kept, is_busy && is_late) {
                    (_, true) => Self::Generator,
                    (true, false) => Self::Rate,
                    (false, false) => Self::Server,
                }
            }
        }
    }

    /// Its name for programs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Generator => "generator",
            Self::Rate => "rate",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Server => "the server was the limit",
            Self::Generator => {
                "the generator was the limit, so nothing is said of how fast the server is beyond that; give it more \
                 --threads, or a machine of its own"
            }
            Self::Rate => "the server kept up with the rate",
        })
    }
}
