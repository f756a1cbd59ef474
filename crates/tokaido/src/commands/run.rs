//! `tokaido run`: a Lua script on a store in this process.

use std::{
    io::{self, Read, Write},
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

use tokaido_script::{Limits, Value};
use tokaido_server::Bytes;
use tokaido_store::Store;

use crate::{
    duration::Duration,
    endpoint::{Missing, open_store},
    error::{Error, lua_error},
    interrupt::{self, Running},
    procedures, value,
};

/// Run a Lua script on a store, without a server
///
/// The script gets ARGS as `...`, in strings. In it, `tokaido.transact(f, ...)` calls f(tx, ...) in
/// a transaction that is durable when it returns, `tokaido.snapshot(f, ...)` calls f on a snapshot,
/// and `require` finds the files of --procedures. It may run as long as it wants and take what memory
/// there is, unless --time-limit and --memory-limit say otherwise; Ctrl-C stops it, and rolls back
/// the transaction that is open. What it returns is printed.
#[derive(Debug, clap::Args)]
#[command(
    verbatim_doc_comment,
    after_long_help = "\
Example:
  echo 'return tokaido.transact(function(tx) return tx.main:increment(\"runs\", 1) end)' > runs.lua
  tokaido run --dir data runs.lua

Exit status: 0 if the script ended, 1 if it raised an error or on failure, 2 for a wrong command
line, 3 if the store cannot be opened, 130 if Ctrl-C ended it."
)]
pub(crate) struct RunArgs {
    /// Script to run; - is standard input
    #[arg(value_name = "FILE.lua")]
    file: PathBuf,
    /// Arguments of the script
    #[arg(value_name = "ARGS", trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<String>,
    /// Directory of the store; made if it is not there [default: an empty one, gone at the end]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Directory of the procedure files that the script may require
    #[arg(long, value_name = "DIR")]
    procedures: Option<PathBuf>,
    /// Stop the script after this time, as 500ms, 30s, 15m, 12h or 7d
    #[arg(long, value_name = "TIME")]
    time_limit: Option<Duration>,
    /// Stop the script when it needs more memory than this, such as 512MiB
    #[arg(long, value_name = "SIZE")]
    memory_limit: Option<Bytes>,
}

pub(crate) fn run(args: &RunArgs) -> Result<ExitCode, Error> {
    let (text, name) = read_script(&args.file)?;
    // Held to the end: dropping it removes the directory.
    let temporary;
    let directory = match &args.dir {
        Some(directory) => directory,
        None => {
            let made = tempfile::tempdir();
            temporary = made.map_err(|source| Error::Io {
                what: "cannot make a temporary directory",
                source,
            })?;
            temporary.path()
        }
    };
    let store = open_store(directory, Missing::Create)?;
    let results = run_on(&store, args, &name, &text)?;
    let mut out = io::stdout().lock();
    for result in results {
        let mut line = value::print(&result);
        line.push(b'\n');
        out.write_all(&line).map_err(Error::Stdout)?;
    }
    out.flush().map_err(Error::Stdout)?;
    Ok(ExitCode::SUCCESS)
}

fn read_script(file: &Path) -> Result<(Vec<u8>, String), Error> {
    let mut text = Vec::new();
    if file == Path::new("-") {
        io::stdin().read_to_end(&mut text).map_err(Error::file(file))?;
        return Ok((text, "stdin".to_owned()));
    }
    text = std::fs::read(file).map_err(Error::file(file))?;
    Ok((text, file.display().to_string()))
}

fn run_on(
    store: &Arc<dyn Store>,
    args: &RunArgs,
    name: &str,
    text: &[u8],
) -> Result<Vec<Value>, Error> {
    let limits = Limits {
        script_time: args.time_limit.map(Duration::time),
        script_memory_bytes: args.memory_limit.map(|bytes| bytes.0),
        ..Limits::default()
    };
    let (mut vm, _) = procedures::start_vm(store, args.procedures.as_deref(), limits)?;
    interrupt::catch(vm.interrupt())?;
    let arguments: Vec<Value> =
        args.args.iter().map(|argument| Value::String(argument.clone().into_bytes())).collect();
    let mut writer = store.writer()?;
    let _running = Running::begin();
    vm.run_script(name, text, &arguments, Some(&mut *writer)).map_err(|error| lua_error(&error))
}
