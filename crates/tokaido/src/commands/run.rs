//! `tokaido run`: runs a Lua or Ruby script on a store in this process.

use std::{
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
    sync::Arc,
};

use tokaido_script::{CallError, Limits, Value};
use tokaido_server::Bytes;
use tokaido_store::Store;

use crate::{
    duration::Duration,
    error::{Error, lua_error},
    interrupt::{self, Running},
    procedures,
    script::{Script, ScriptStore, ScriptText},
    shared_dictionary::SharedDictionary,
    value,
};

/// Run a Lua or Ruby script on a store, without a server
///
/// The script gets ARGS as `...` and as `arg`, as strings. In it, `tokaido.transact(f, ...)` calls
/// f(tx, ...) in a transaction that is durable when it returns, `tokaido.snapshot(f, ...)` calls f on a
/// snapshot, and `require` finds the files of --procedures. Its time and memory are not limited, unless
/// --time-limit and --memory-limit are given; Ctrl-C stops it and rolls back the open transaction. What it
/// returns is printed, and `os.exit(STATUS)` ends it.
///
/// It can be written in any dialect except mod_lua, selected by --dialect or by its first line, as in
/// `-- dialect: ngx`. A script for Kyoto Tycoon or Tokyo Tyrant is a single transaction as a whole.
///
/// A file that ends in .rb is Ruby, and so is anything run with --ruby: its arguments are in ARGV,
/// `Tokaido.transact { |tx| ... }` and `Tokaido.snapshot { |tx| ... }` call a block instead of f, `puts`
/// prints, and `exit STATUS` ends the script.
#[derive(Debug, clap::Args)]
#[command(
    verbatim_doc_comment,
    after_long_help = "\
Example:
  echo 'return tokaido.transact(function(tx) return tx.main:increment(\"runs\", 1) end)' > runs.lua
  tokaido run --dir data runs.lua
  tokaido run --dialect ngx -e 'ngx.say(\"hello, \", arg[1])' Hiroshige
  tokaido run --dialect ngx --shdict 'dogs 1m' -e 'ngx.say(ngx.shared.dogs:incr(\"n\", 1, 0))'
  tokaido run --ruby -e 'puts \"hello, #{ARGV[0]}\"' Hiroshige

Exit status: 0 if the script ended, or what it passed to os.exit, 1 if it raised an error or on
failure, 2 for a wrong command line, 3 if the store cannot be opened, 130 if Ctrl-C ended it."
)]
pub(crate) struct RunArgs {
    /// Script to run; - is standard input
    #[arg(value_name = "FILE", required_unless_present = "code")]
    file: Option<String>,
    /// Run this text instead of a file
    #[arg(short = 'e', value_name = "CODE")]
    code: Option<String>,
    /// Run the script as Ruby, whatever its name is
    #[arg(long, conflicts_with = "dialect")]
    ruby: bool,
    /// Dialect of Lua that the script is written in [default: the one that its first line names]
    #[arg(long, value_name = "NAME")]
    dialect: Option<String>,
    /// Arguments of the script
    #[arg(value_name = "ARGS", trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<String>,
    /// Directory of the store; created if it does not exist [default: an empty store, removed at the end]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Directory of the procedure files that the script may require; may be given several times, the first one that has a file counts
    #[arg(short = 'I', long, value_name = "DIR")]
    procedures: Vec<PathBuf>,
    /// Cache of this name and size for `ngx.shared.NAME`, and for transactions; may be given several times
    #[arg(long = "shdict", value_name = "NAME SIZE")]
    dictionaries: Vec<SharedDictionary>,
    /// Stop the script after this time, such as 500ms, 30s, 15m, 12h or 7d
    #[arg(long, value_name = "TIME")]
    time_limit: Option<Duration>,
    /// Stop the script if it needs more memory than this, such as 512MiB
    #[arg(long, value_name = "SIZE")]
    memory_limit: Option<Bytes>,
}

/// A script in the language that it is written in.
enum Prepared {
    Lua(Script),
    Ruby(ScriptText),
}

pub(crate) fn run(args: &RunArgs) -> Result<ExitCode, Error> {
    let (code, file) = (args.code.as_deref(), args.file.as_deref());
    let script = ScriptText::of(code, file, &args.args)?;
    let is_named_ruby = code.is_none() && args.dialect.is_none() && script.name.ends_with(".rb");
    let script = match args.ruby || is_named_ruby {
        true => Prepared::Ruby(script),
        false => Prepared::Lua(Script::of(script, args.dialect.as_deref())?),
    };
    let opened = ScriptStore::open(args.dir.as_deref(), &args.dictionaries)?;
    let results = match run_on(&script, &opened.store, args)? {
        Err(CallError::Exited { status }) => return Ok(status.into()),
        ran => ran.map_err(|error| lua_error(&error))?,
    };
    let mut out = io::stdout().lock();
    for result in results {
        let mut line = value::print(&result);
        line.push(b'\n');
        out.write_all(&line).map_err(Error::Stdout)?;
    }
    out.flush().map_err(Error::Stdout)?;
    Ok(ExitCode::SUCCESS)
}

fn run_on(
    script: &Prepared,
    store: &Arc<dyn Store>,
    args: &RunArgs,
) -> Result<Result<Vec<Value>, CallError>, Error> {
    let limits = Limits {
        script_time: args.time_limit.map(Duration::time),
        script_memory_bytes: args.memory_limit.map(|bytes| bytes.0),
        ..Limits::default()
    };
    let directories = &args.procedures;
    let script = match script {
        Prepared::Lua(script) => script,
        Prepared::Ruby(script) => return run_ruby(script, store, directories, limits),
    };
    let (mut vm, _failed) = procedures::start_vm_of(script.dialect, store, directories, limits)?;
    interrupt::catch([vm.interrupt()])?;
    let mut writer = store.writer()?;
    let _running = Running::begin();
    Ok(vm.run_script(&script.name, &script.text, &script.arguments, Some(&mut *writer)))
}

/// A Ruby script returns no results: it prints what it wants to.
#[cfg(feature = "ruby")]
fn run_ruby(
    script: &ScriptText,
    store: &Arc<dyn Store>,
    directories: &[PathBuf],
    limits: Limits,
) -> Result<Result<Vec<Value>, CallError>, Error> {
    let mut vm = procedures::start_ruby(store, directories, limits)?;
    interrupt::catch([vm.interrupt()])?;
    let mut writer = store.writer()?;
    let _running = Running::begin();
    let ran = vm.run_script(&script.name, &script.text, &script.arguments, &mut *writer);
    Ok(ran.map(|()| Vec::new()))
}

#[cfg(not(feature = "ruby"))]
fn run_ruby(
    _script: &ScriptText,
    _store: &Arc<dyn Store>,
    _directories: &[PathBuf],
    _limits: Limits,
) -> Result<Result<Vec<Value>, CallError>, Error> {
    Err(crate::error::without_ruby())
}
