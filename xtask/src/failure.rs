//! Why a task ended early: a message for the user.

use std::fmt;

/// The message; it says what to do next if that is known.
#[derive(Debug)]
pub(crate) struct Failure(String);

/// The result of a task.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }

    /// For `map_err`: what was tried, then why it failed.
    pub(crate) fn of<E: fmt::Display>(tried: impl fmt::Display) -> impl FnOnce(E) -> Self {
        move |error| Self(format!("{tried}: {error}"))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
