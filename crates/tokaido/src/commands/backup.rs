//! `tokaido backup` and `tokaido restore`: copies a store while it is in use, and restores it.

use std::{
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
};

use tokaido_store::tree;

use crate::{error::Error, progress::thousands};

/// Copy a store, even while a server uses it
///
/// The backup is a store of its own: it contains every write that was answered before the command
/// started, and all those made while it runs up to some moment. It appears under its name only once
/// it is complete and on disk; a backup that was killed leaves DEST.PID.making, which can be removed.
/// The server keeps running meanwhile and need not be told. Run the command as the user that runs the
/// server, on the same machine.
#[derive(Debug, clap::Args)]
#[command(
    verbatim_doc_comment,
    after_long_help = "\
Example:
  tokaido backup data backups/monday && tokaido check backups/monday

Exit status: 0 if the backup was made, 1 on failure (then there is none), 2 for a wrong command
line, 3 if there is no store."
)]
pub(crate) struct BackupArgs {
    /// Directory of the store
    #[arg(value_name = "DATA")]
    data: PathBuf,
    /// Directory to create; it must not exist, but its parent directory must
    #[arg(value_name = "DEST")]
    destination: PathBuf,
}

pub(crate) fn backup(args: &BackupArgs) -> Result<ExitCode, Error> {
    let report = tree::backup(&args.data, &args.destination)?;
    say(format_args!(
        "backed up {} up to transaction {}: {} bytes in {}",
        args.data.display(),
        thousands(report.sequence),
        thousands(report.bytes),
        args.destination.display()
    ))
}

/// Create a store from a backup
///
/// The backup is checked first, and is not changed.
#[derive(Debug, clap::Args)]
#[command(
    verbatim_doc_comment,
    after_long_help = "\
Example:
  tokaido restore backups/monday data && tokaido serve --dir data

Exit status: 0 if the store was created, 1 on failure (then nothing has changed), 2 for a wrong
command line, 3 if the backup cannot be checked."
)]
pub(crate) struct RestoreArgs {
    /// Directory of the backup
    #[arg(value_name = "BACKUP")]
    backup: PathBuf,
    /// Directory of the new store; it must be empty or must not exist
    #[arg(value_name = "DATA")]
    data: PathBuf,
}

pub(crate) fn restore(args: &RestoreArgs) -> Result<ExitCode, Error> {
    let report = tree::restore(&args.backup, &args.data)?;
    let records = report.databases.iter().map(|database| database.statistics.records).sum();
    say(format_args!(
        "restored {} to {}: {} records in {} databases",
        args.backup.display(),
        args.data.display(),
        thousands(records),
        report.databases.len()
    ))
}

/// Prints a line.
pub(super) fn say(line: std::fmt::Arguments<'_>) -> Result<ExitCode, Error> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(Error::Stdout)?;
    Ok(ExitCode::SUCCESS)
}
