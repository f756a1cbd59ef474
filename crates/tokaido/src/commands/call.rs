//! `tokaido call`: calls one procedure once.

use std::{
    collections::BTreeMap,
    io::{self, Write},
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

use serde_json::value::RawValue;
use tokaido_script::{
    CallError, LoadError, Mode, Transaction, Value,
    json::{self, Rules},
    percent,
};
use tokaido_store::{Store, transact};

use crate::{
    client::{Client, ClientError, Server},
    endpoint::{Endpoint, EndpointArgs, Missing, open_store},
    error::{Error, lua_error},
    http::{HttpClient, refusal},
    procedures, value,
};

/// Call a procedure and print what it returns
///
/// Arguments are strings; with --json, each argument is JSON, and so is the result. A server is called
/// over the Redis protocol (FCALL), or with --json over HTTP (POST /v1/call/PROCEDURE).
#[derive(Debug, clap::Args)]
#[command(
    verbatim_doc_comment,
    after_long_help = "\
Examples:
  tokaido call hits.count /index
  tokaido call --dir data --procedures procedures --json hits.top '\"/\"' 10

Exit status: 0 if the procedure returned, 1 if it raised an error or on failure, 2 for a wrong
command line, 3 if no server answers or the store cannot be opened."
)]
pub(crate) struct CallArgs {
    /// Procedure to call, such as hits.count
    #[arg(value_name = "PROCEDURE")]
    procedure: String,
    /// Its arguments
    #[arg(value_name = "ARGS", allow_hyphen_values = true)]
    args: Vec<String>,
    /// Take the arguments as JSON, and print the result as JSON
    #[arg(long)]
    json: bool,
    /// Directory of procedure files; needed with --dir
    #[arg(long, value_name = "DIR", requires = "dir")]
    procedures: Option<PathBuf>,
    #[command(flatten)]
    endpoint: EndpointArgs,
}

pub(crate) fn call(args: &CallArgs) -> Result<ExitCode, Error> {
    let mut text = match args.endpoint.endpoint()? {
        Endpoint::Directory(directory) => call_embedded(args, &directory)?,
        Endpoint::Server(server) if args.json => call_http(args, &server)?,
        Endpoint::Server(server) => call_redis(args, &server)?,
    };
    text.push(b'\n');
    let mut out = io::stdout().lock();
    out.write_all(&text).and_then(|()| out.flush()).map_err(Error::Stdout)?;
    Ok(ExitCode::SUCCESS)
}

/// Checks that each argument is JSON, and names the first one that is not.
fn json_arguments(args: &[String]) -> Result<Vec<Value>, Error> {
    let parse = |(index, text): (usize, &String)| {
        json::decode(text.as_bytes(), Rules::Lua).map_err(|error| {
            let number = index + 1;
            let hint = "a string needs quotes, as in '\"text\"'";
            Error::Usage(format!("argument {number} is not JSON: {error}; {hint}"))
        })
    };
    args.iter().enumerate().map(parse).collect()
}

fn call_embedded(args: &CallArgs, directory: &Path) -> Result<Vec<u8>, Error> {
    let directory_of_procedures = args.procedures.as_deref().ok_or_else(|| {
        Error::Usage(
            "--dir needs --procedures DIR, the directory of the procedure files".to_owned(),
        )
    })?;
    let arguments: Vec<Value> = if args.json {
        json_arguments(&args.args)?
    } else {
        args.args.iter().map(|argument| Value::String(argument.clone().into_bytes())).collect()
    };
    let store = open_store(directory, Missing::Create)?;
    let result = run(&store, directory_of_procedures, &args.procedure, &arguments)?;
    if args.json {
        let mut text = Vec::new();
        json::encode(&result, Rules::Lua, &mut text)?;
        return Ok(text);
    }
    Ok(value::print(&result))
}

fn run(
    store: &Arc<dyn Store>,
    directory: &Path,
    name: &str,
    arguments: &[Value],
) -> Result<Value, Error> {
    let (mut vm, failed) = procedures::start_all(store, Some(directory))?;
    let Some(id) = vm.find(name.as_bytes()) else {
        if let Some(message) = LoadError::why_missing(&failed, name) {
            return Err(Error::Call { name: name.to_owned(), message });
        }
        let names: Vec<&str> = vm.procedures().iter().map(|p| p.name.as_str()).collect();
        let found = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        return Err(Error::NoProcedure { name: name.to_owned(), found });
    };
    match vm.procedures()[id.index()].mode {
        Mode::Read => {
            let mut snapshot = store.snapshot()?;
            let called = vm.call(id, Transaction::Read(&mut *snapshot).into(), arguments);
            called.map_err(|error| lua_error(&error))
        }
        Mode::Write => {
            let mut writer = store.writer()?;
            let called = transact(&mut *writer, |transaction| {
                match vm.call(id, Transaction::Write(transaction).into(), arguments) {
                    Err(error) if error.is_kept() => Ok(Err(error)),
                    called => called.map(Ok),
                }
            });
            called.map_err(Error::from)?.map_err(|error| lua_error(&error))
        }
    }
}

impl From<CallError> for Error {
    fn from(error: CallError) -> Self {
        lua_error(&error)
    }
}

fn call_redis(args: &CallArgs, server: &Server) -> Result<Vec<u8>, Error> {
    let mut client = Client::connect(server)?;
    // Version 3 of the protocol keeps the types of tables, numbers and booleans.
    client.call(&["HELLO", "3"])?;
    let mut command = vec!["FCALL", &args.procedure, "0"];
    command.extend(args.args.iter().map(String::as_str));
    let reply = client.call(&command).map_err(|error| match error {
        ClientError::Refused { message } => Error::Call { name: args.procedure.clone(), message },
        error => error.into(),
    })?;
    Ok(value::print(&value::from_reply(reply)))
}

fn call_http(args: &CallArgs, server: &Server) -> Result<Vec<u8>, Error> {
    json_arguments(&args.args)?;
    // As they were typed, so that no digit of a number is lost.
    let body = format!("[{}]", args.args.join(","));
    let target = format!("/v1/call/{}", percent::encode(args.procedure.as_bytes()));
    let response = HttpClient::connect(server)?.request("POST", &target, Some(body.as_bytes()))?;
    let answer: BTreeMap<String, &RawValue> =
        serde_json::from_slice(&response.body).unwrap_or_default();
    match answer.get("result") {
        Some(result) if response.status == 200 => Ok(result.get().as_bytes().to_vec()),
        _ => Err(Error::Call { name: args.procedure.clone(), message: refusal(&response) }),
    }
}
