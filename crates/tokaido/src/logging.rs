//! The server's log, on standard error.

use std::{
    backtrace::{Backtrace, BacktraceStatus},
    io::{self, IsTerminal, Write},
    panic::{self, PanicHookInfo},
    thread,
};

use tokaido_server::LogWriter;
use tracing_subscriber::EnvFilter;

use crate::error::Error;

/// Starts the log with a filter such as `info` or `tokaido_server=debug`.
pub(crate) fn start(filter: &str) -> Result<(), Error> {
    let filter = EnvFilter::try_new(filter).map_err(|error| {
        Error::Usage(format!("option log: {filter:?} is no filter ({error}); try info"))
    })?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| LogWriter)
        // They would be written with `eprintln!`, which panics if standard error cannot be written.
        .log_internal_errors(false)
        .with_ansi(io::stderr().is_terminal())
        .init();
    panic::set_hook(Box::new(log_panic));
    Ok(())
}

/// Logs panics whatever the filter, through the log's own writer, which never blocks for long.
fn log_panic(panic: &PanicHookInfo<'_>) {
    let name = thread::current().name().unwrap_or("without a name").to_owned();
    let backtrace = Backtrace::capture();
    let text = match backtrace.status() {
        BacktraceStatus::Captured => format!("thread {name} {panic}\n{backtrace}\n"),
        _ => format!("thread {name} {panic}\n"),
    };
    // It counts what it cannot write.
    let _ = LogWriter.write_all(text.as_bytes());
}
