//! `tokaido put`: writes one record.

use std::{
    ffi::OsString,
    io::{self, Read},
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::Path,
    process::ExitCode,
};

use tokaido_store::{NewRecord, limits, transact};

use crate::{
    duration::Duration,
    endpoint::{Endpoint, EndpointArgs, Missing, open_store},
    error::Error,
};

/// Store a value under a key
///
/// It replaces the current value, if there is one, and is on disk when the command ends; with --connect,
/// it is as durable as the server's option sync makes it.
#[derive(Debug, clap::Args)]
#[command(
    verbatim_doc_comment,
    after_long_help = "\
Examples:
  tokaido put --dir data main greeting 'hello, world'
  tokaido put --dir data pages /index - < index.html
  tokaido put --connect 127.0.0.1:7653 sessions 8f14e45f basho --ttl 30m

Exit status: 0 if it was stored, 1 on failure, 2 for a wrong command line, 3 if no server answers or
the store cannot be opened."
)]
pub(crate) struct PutArgs {
    /// Database to store it in; created if it does not exist
    #[arg(value_name = "DB")]
    db: String,
    /// Key to store it under
    #[arg(value_name = "KEY")]
    key: OsString,
    /// Value; - reads it unchanged from standard input
    #[arg(value_name = "VALUE")]
    value: OsString,
    /// Let the record expire after this time, such as 500ms, 30s, 15m, 12h or 7d
    #[arg(long, value_name = "TIME")]
    ttl: Option<Duration>,
    #[command(flatten)]
    endpoint: EndpointArgs,
}

pub(crate) fn put(args: &PutArgs) -> Result<ExitCode, Error> {
    let value = read_value(args.value.clone())?;
    let key = args.key.as_bytes();
    let ttl_ms = args.ttl.map(Duration::ms);
    match args.endpoint.endpoint()? {
        Endpoint::Directory(directory) => {
            let store = open_store(&directory, Missing::Create)?;
            let database = store.database(&args.db)?;
            let mut writer = store.writer()?;
            transact(&mut *writer, |transaction| {
                let expires_at_ms = ttl_ms.map(|ttl_ms| transaction.now_ms() + ttl_ms);
                transaction.put(database, key, NewRecord::of(&value).expiring(expires_at_ms))
            })?;
        }
        Endpoint::Server(server) => {
            let mut client = server.connect_to(&args.db)?;
            let ttl_ms = ttl_ms.map(|ttl_ms| ttl_ms.to_string());
            let mut command = vec![&b"SET"[..], key, &value];
            if let Some(ttl_ms) = &ttl_ms {
                command.extend([&b"PX"[..], ttl_ms.as_bytes()]);
            }
            client.call(&command)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn read_value(argument: OsString) -> Result<Vec<u8>, Error> {
    if argument != "-" {
        return Ok(argument.into_vec());
    }
    // One byte over the maximum is enough to learn that it is too long.
    let mut value = Vec::new();
    let mut input = io::stdin().lock().take(limits::VALUE_LEN_MAX as u64 + 1);
    input.read_to_end(&mut value).map_err(Error::file(Path::new("-")))?;
    Ok(value)
}
