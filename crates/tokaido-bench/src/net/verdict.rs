//! What was the limit: the server, the generator, or the rate that was asked for.

use std::fmt;

use super::run::{Load, Outcome, Pace};

/// The part of the time from which on a generator that runs, or wants to, has no more to give.
const BUSY_MIN: f64 = 0.9;

/// The part of the rate that was asked for from which on it was kept.
const KEPT_MIN: f64 = 0.99;

/// What set the pace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The generator waited for the server: the figure is the server's.
    Server,
    /// The generator had no more to give: the server can do as much at least, and how much more is not known.
    Generator,
    /// The server kept up with the rate that was asked for.
    Rate,
}

impl Verdict {
    /// Judges what came of a load.
    #[must_use]
    pub fn of(load: &Load, outcome: &Outcome) -> Self {
        let is_busy = outcome.ran + outcome.waited >= BUSY_MIN;
        match load.pace {
            Pace::Closed if is_busy => Self::Generator,
            Pace::Closed => Self::Server,
            Pace::Rate(rate) => {
                let is_kept = outcome.rate >= rate * KEPT_MIN && outcome.unsent == 0;
                // If it was late though connections were free, it was not the server that it waited for.
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
