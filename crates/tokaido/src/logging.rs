//! The log of a server, on standard error.

use std::io::{self, IsTerminal};

use tracing_subscriber::EnvFilter;

use crate::error::Error;

/// Starts the log with a filter such as `info` or `tokaido_server=debug`.
pub(crate) fn start(filter: &str) -> Result<(), Error> {
    let filter = EnvFilter::try_new(filter).map_err(|error| {
        Error::Usage(format!("option log: {filter:?} is no filter ({error}); try info"))
    })?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .init();
    Ok(())
}
