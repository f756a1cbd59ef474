//! Why a call into Lua gave no result, as reported by the prelude's `on_error`.

use crate::{Value, convert::Unconvertible};

/// Why a call into Lua gave no result.
pub(crate) enum Failure {
    /// An error that nobody caught.
    Raised { message: String, traceback: String },
    /// An error that the procedure raised as a table with a message.
    Refused { message: String, code: Option<String>, status: Option<u16>, is_kept: bool },
    /// The VM was refused memory.
    Memory,
    /// The watchdog stopped it, as its time was over.
    Time,
    /// It was interrupted from outside.
    Interrupted,
    /// Its result cannot be converted.
    Result(Unconvertible),
}

/// What the prelude's `on_error` makes of an error.
#[derive(Default)]
struct Report {
    message: String,
    traceback: String,
    code: Option<String>,
    status: Option<u16>,
    refused: bool,
    kept: bool,
}

impl Report {
    fn set(&mut self, name: &[u8], value: Value) {
        match (name, value) {
            (b"message", Value::String(text)) => self.message = lossy(&text),
            (b"traceback", Value::String(text)) => self.traceback = lossy(&text),
            (b"code", Value::String(text)) => self.code = Some(lossy(&text)),
            (b"status", Value::Integer(status)) => self.status = u16::try_from(status).ok(),
            (b"refused", Value::Boolean(refused)) => self.refused = refused,
            (b"kept", Value::Boolean(kept)) => self.kept = kept,
            _ => {}
        }
    }
}

/// Reads a report. If `on_error` itself failed, LuaJIT leaves a string instead.
pub(crate) fn failure_of(raised: Result<Value, Unconvertible>) -> Failure {
    let mut report = Report::default();
    match raised {
        Ok(Value::Map(fields)) => {
            for (name, value) in fields {
                if let Value::String(name) = name {
                    report.set(&name, value);
                }
            }
        }
        Ok(Value::String(text)) => report.message = lossy(&text),
        _ => report.message = "an error without a message".to_owned(),
    }
    let Report { message, traceback, code, status, refused, kept } = report;
    if refused {
        Failure::Refused { message, code, status, is_kept: kept }
    } else {
        Failure::Raised { message, traceback }
    }
}

fn lossy(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}
