//! `tokaido get`: prints one value.

use std::{
    ffi::OsString,
    io::{self, Write},
    os::unix::ffi::OsStringExt,
    path::Path,
    process::ExitCode,
};

use tokaido_store::tree::Reader;
use tokaido_wire::resp::Reply;

use crate::{
    endpoint::{Endpoint, EndpointArgs, Missing, find_database, open_store},
    error::{EXIT_FAILED, Error},
};

/// Print the value of one key
///
/// The value is printed unchanged, followed by a newline.
#[derive(Debug, clap::Args)]
#[command(
    verbatim_doc_comment,
    after_long_help = "\
Example:
  tokaido get --dir data companies 'KEY'

Exit status: 0 if the key exists, 1 if it does not, 2 for a wrong command line, 3 if that is
unknown: no server answers, the store cannot be opened, or the look-up failed."
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
        Endpoint::Directory(directory) => read(&directory, &args.db, &key)?,
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

/// The value under `key` in the store in `directory`. If the store was shut down cleanly, its files
/// are read directly. Otherwise it is opened, which reports any problem.
fn read(directory: &Path, database: &str, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
    if let Ok(reader) = Reader::open(directory)
        && let Ok(Some(mut database)) = reader.database(database)
        && let Ok(found) = database.get(key)
    {
        return Ok(found.map(|record| record.value.to_vec()));
    }
    let store = open_store(directory, Missing::Refuse)?;
    let database = find_database(&*store, database)?;
    let mut snapshot = store.snapshot()?;
    Ok(snapshot.get(database, key)?.map(|record| record.value.to_vec()))
}
