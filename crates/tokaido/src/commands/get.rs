//! `tokaido get`: one value.

use std::{
    ffi::OsString,
    io::{self, Write},
    os::unix::ffi::OsStringExt,
    process::ExitCode,
};

use tokaido_wire::resp::Reply;

use crate::{
    endpoint::{Endpoint, EndpointArgs, Missing, find_database, open_store},
    error::{EXIT_FAILED, Error},
};

/// Print the value of one key
///
/// The value is printed as it is, with a newline after it.
#[derive(Debug, clap::Args)]
#[command(
    verbatim_doc_comment,
    after_long_help = "\
Example:
  tokaido get --dir data companies 'KEY'

Exit status: 0 if the key is there, 1 if not or on failure (which prints a message), 2 for a wrong
command line."
)]
pub(crate) struct GetArgs {
    /// Database to look in
    #[arg(value_name = "DB")]
    db: String,
    /// Key to look for
    #[arg(value_name = "KEY")]
    key: OsString,
    #[command(flatten)]
    endpoint: EndpointArgs,
}

pub(crate) fn get(args: &GetArgs) -> Result<ExitCode, Error> {
    let key = args.key.clone().into_vec();
    let value = match args.endpoint.endpoint()? {
        Endpoint::Directory(directory) => {
            let store = open_store(&directory, Missing::Refuse)?;
            let database = find_database(&*store, &args.db)?;
            let mut snapshot = store.snapshot()?;
            snapshot.get(database, &key)?.map(|record| record.value.to_vec())
        }
        Endpoint::Server(server) => {
            let mut client = server.connect_to(&args.db)?;
            match client.call(&[b"GET", &key[..]])? {
                Reply::Bulk(value) => Some(value),
                Reply::Null => None,
                _ => return Err(client.unexpected("GET").into()),
            }
        }
    };
    let Some(mut value) = value else {
        return Ok(EXIT_FAILED.into());
    };
    value.push(b'\n');
    let mut out = io::stdout().lock();
    out.write_all(&value).and_then(|()| out.flush()).map_err(Error::Stdout)?;
    Ok(ExitCode::SUCCESS)
}
