//! `tokaido drop`: deletes a whole database.

use std::process::ExitCode;

use tokaido_store::{check_database_name, transact};
use tokaido_wire::resp::Reply;

use crate::{
    client::Client,
    endpoint::{Endpoint, EndpointArgs, Missing, open_store},
    error::{EXIT_FAILED, Error},
};

/// Delete a database with all of its records, and free its name
///
/// This takes no longer for many records than for few, and is on disk when the command ends; with
/// --connect, it is as durable as the server's option sync makes it. A database that does not exist is
/// not an error, but the exit status shows it.
#[derive(Debug, clap::Args)]
#[command(
    verbatim_doc_comment,
    after_long_help = "\
Example:
  tokaido drop --dir data sessions

Exit status: 0 if the database existed, 1 if it did not, 2 for a wrong command line, 3 if nothing was
deleted: no server answers, the store cannot be opened, or the command failed."
)]
pub(crate) struct DropArgs {
    /// Database to delete
    #[arg(value_name = "DB")]
    db: String,
    #[command(flatten)]
    endpoint: EndpointArgs,
}

pub(crate) fn drop(args: &DropArgs) -> Result<ExitCode, Error> {
    check_database_name(&args.db)?;
    let was_there = match args.endpoint.endpoint()? {
        Endpoint::Directory(directory) => {
            let store = open_store(&directory, Missing::Refuse)?;
            let mut writer = store.writer()?;
            match store.find_database(&args.db) {
                Some(id) => transact(&mut *writer, |transaction| transaction.drop_database(id))?,
                None => false,
            }
        }
        Endpoint::Server(server) => {
            let mut client = Client::connect(&server)?;
            match client.call(&["TOKAIDO", "DROP", &args.db])? {
                Reply::Integer(dropped) => dropped == 1,
                _ => return Err(client.unexpected("TOKAIDO DROP").into()),
            }
        }
    };
    Ok(if was_there { ExitCode::SUCCESS } else { EXIT_FAILED.into() })
}
