//! `tokaido del`: deletes records from a database.

use std::{ffi::OsString, os::unix::ffi::OsStrExt, process::ExitCode};

use tokaido_store::{WriteError, transact};
use tokaido_wire::resp::Reply;

use crate::{
    endpoint::{Endpoint, EndpointArgs, Missing, find_database, open_store},
    error::{EXIT_FAILED, Error},
};

/// Delete keys
///
/// All keys are deleted in one transaction, which is on disk when the command ends; with --connect, it is
/// as durable as the server's option sync makes it. A key that does not exist is not an error, but the
/// exit status shows it.
#[derive(Debug, clap::Args)]
#[command(
    verbatim_doc_comment,
    after_long_help = "\
Example:
  tokaido del --dir data main greeting farewell

Exit status: 0 if every key existed, 1 if one did not, 2 for a wrong command line, 3 if nothing was
deleted: no server answers, the store cannot be opened, or the command failed."
)]
pub(crate) struct DelArgs {
    /// Database to delete from
    #[arg(value_name = "DB")]
    db: String,
    /// Keys to delete
    #[arg(required = true, value_name = "KEY")]
    keys: Vec<OsString>,
    #[command(flatten)]
    endpoint: EndpointArgs,
}

pub(crate) fn del(args: &DelArgs) -> Result<ExitCode, Error> {
    let keys = args.keys.iter().map(|key| key.as_bytes());
    let deleted = match args.endpoint.endpoint()? {
        Endpoint::Directory(directory) => {
            let store = open_store(&directory, Missing::Refuse)?;
            let database = find_database(&*store, &args.db)?;
            let mut writer = store.writer()?;
            transact(&mut *writer, |transaction| {
                let mut deleted = 0;
                for key in keys.clone() {
                    deleted += usize::from(transaction.delete(database, key)?);
                }
                Ok::<usize, WriteError>(deleted)
            })?
        }
        Endpoint::Server(server) => {
            let mut client = server.connect_to(&args.db)?;
            let command: Vec<&[u8]> = std::iter::once(&b"DEL"[..]).chain(keys).collect();
            match client.call(&command)? {
                Reply::Integer(deleted) => usize::try_from(deleted).unwrap_or_default(),
                _ => return Err(client.unexpected("DEL").into()),
            }
        }
    };
    if deleted < args.keys.len() {
        return Ok(EXIT_FAILED.into());
    }
    Ok(ExitCode::SUCCESS)
}
