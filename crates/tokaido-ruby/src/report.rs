//! Why a call into Ruby failed, as `Tokaido::Core.report` reports it.

use tokaido_script::{CallError, Value};

/// Why a call into Ruby failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An error that was not rescued.
    Raised { message: String, traceback: String },
    /// A refusal by the procedure.
    Refused { message: String, code: Option<String>, status: Option<u16> },
    /// A script called `exit`.
    Exited { status: u8 },
    /// The VM was refused memory.
    Memory,
    /// The watchdog stopped it.
    Time,
    /// An interrupt stopped it.
    Interrupted,
}

/// Parses a report.
pub(crate) fn failure_of(report: Value) -> Failure {
    let mut message = "an error without a message".to_owned();
    let (mut traceback, mut code, mut status, mut is_refused) = (String::new(), None, None, false);
    let Value::Map(fields) = report else { return Failure::Raised { message, traceback } };
    for (name, value) in fields {
        let Value::String(name) = name else { continue };
        match (&*name, value) {
            (b"message", Value::String(text)) => message = lossy(&text),
            (b"traceback", Value::String(text)) => traceback = lossy(&text),
            (b"code", Value::String(text)) => code = Some(lossy(&text)),
            (b"status", Value::Integer(number @ 400..=599)) => status = u16::try_from(number).ok(),
            (b"exit", Value::Integer(number)) => {
                return Failure::Exited { status: u8::try_from(number).unwrap_or(1) };
            }
            (b"refused", Value::Boolean(refused)) => is_refused = refused,
            _ => {}
        }
    }
    match is_refused {
        true => Failure::Refused { message, code, status },
        false => Failure::Raised { message, traceback },
    }
}

/// An error that could not be reported.
pub(crate) fn unreported() -> Failure {
    let message = "an error that cannot be told: its message, or its class, raises one".to_owned();
    Failure::Raised { message, traceback: String::new() }
}

fn lossy(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

impl Failure {
    /// The error of a call of the procedure `name`.
    pub(crate) fn into_error(self, name: String, limits: tokaido_script::Limits) -> CallError {
        match self {
            Self::Raised { message, traceback } => CallError::Raised { message, traceback },
            Self::Refused { message, code, status } => {
                CallError::Refused { message, code, status, is_kept: false }
            }
            Self::Exited { status } => CallError::Exited { status },
            Self::Memory => CallError::MemoryLimit { name, limit_bytes: limits.memory_bytes },
            Self::Time => {
                let limit_ms = u64::try_from(limits.time.as_millis()).unwrap_or(u64::MAX);
                CallError::TimeLimit { name, limit_ms }
            }
            Self::Interrupted => CallError::Interrupted,
        }
    }

    /// The message for a file that failed to load for this reason.
    pub(crate) fn load_message(self) -> String {
        match self {
            Self::Raised { message, .. } | Self::Refused { message, .. } => message,
            Self::Exited { .. } => "loading it has called exit".to_owned(),
            Self::Memory => "loading it needed more than the memory limit".to_owned(),
            Self::Time => "loading it took longer than the time limit".to_owned(),
            Self::Interrupted => "loading it was interrupted".to_owned(),
        }
    }
}
