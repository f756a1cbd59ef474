//! `tokaido reload`: makes a server read its procedure files again.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use crate::{
    client::{ClientError, Server},
    error::Error,
    http::{HttpClient, refusal},
};

/// Make a server read its procedure files again
///
/// All procedures are swapped at once, while calls run: each call runs entirely in the old program or
/// in the new one. If a file is broken, the old program stays in use. SIGHUP does the same.
#[derive(Debug, clap::Args)]
#[command(
    verbatim_doc_comment,
    after_long_help = "\
Exit status: 0 if the new procedures are in use, 1 if a file is broken or on failure, 2 for a wrong
command line, 3 if no server answers."
)]
pub(crate) struct ReloadArgs {
    /// Talk to the server at this address [default: 127.0.0.1:7653]
    #[arg(long, value_name = "HOST:PORT")]
    connect: Option<String>,
    /// Password of the server
    #[arg(long, value_name = "PASSWORD", env = "TOKAIDO_PASSWORD", hide_env_values = true)]
    password: Option<String>,
}

pub(crate) fn reload(args: &ReloadArgs) -> Result<ExitCode, Error> {
    let password = args.password.clone().filter(|password| !password.is_empty());
    let server = Server::new(args.connect.as_deref(), password)?;
    let response = HttpClient::connect(&server)?.request("POST", "/v1/reload", Some(b""))?;
    if response.status != 200 {
        return Err(ClientError::Refused { message: refusal(&response) }.into());
    }
    let told: serde_json::Value = serde_json::from_slice(&response.body).unwrap_or_default();
    let line =
        format!("{} procedures serve, as generation {}\n", told["procedures"], told["generation"]);
    let mut out = io::stdout().lock();
    out.write_all(line.as_bytes()).and_then(|()| out.flush()).map_err(Error::Stdout)?;
    Ok(ExitCode::SUCCESS)
}
