//! `tokaido compact`: returns the space of deleted records to the file system.

use std::{path::PathBuf, process::ExitCode};

use tokaido_store::tree;

use crate::{error::Error, progress::thousands};

use super::backup::say;

/// Shrink the file of a store to the size of its records
///
/// The space of deleted records is reused by later ones, so a store that is in use rarely needs this:
/// it is for a store that was once much larger. No server may have the store open. The disk needs
/// room for a copy of the part in use. If the command is interrupted, the store is as it was before.
#[derive(Debug, clap::Args)]
#[command(
    verbatim_doc_comment,
    after_long_help = "\
Example:
  tokaido compact data

Exit status: 0 on success, 1 on failure (then the store is as it was), 2 for a wrong command line,
3 if the store cannot be checked or opened."
)]
pub(crate) struct CompactArgs {
    /// Directory of the store
    #[arg(value_name = "DATA")]
    data: PathBuf,
}

pub(crate) fn compact(args: &CompactArgs) -> Result<ExitCode, Error> {
    let report = tree::compact(&args.data, tree::Options::default())?;
    say(format_args!(
        "compacted {}: {} bytes before, {} bytes now",
        args.data.display(),
        thousands(report.bytes_before),
        thousands(report.bytes_after)
    ))
}
