//! The `tokaido` binary: a thin layer of subcommands over the library crates.

mod client;
mod commands;
mod duration;
mod endpoint;
mod error;
mod formats;
mod http;
mod interrupt;
mod loader;
mod logging;
mod procedures;
mod progress;
mod script;
mod shared_dictionary;
mod stream;
mod style;
mod value;

use std::{io::Write, process::ExitCode};

use clap::{Parser, Subcommand};

// LuaJIT allocates and frees a string for each key that a procedure touches, and its memory
// comes from this allocator like all other memory.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

use commands::{
    backup, bench, call, cdb, check, compact, del, demo, drop, dump, get, load, put, reload, run,
    scan, serve, shell,
};

/// A programmable key-value server: procedures in Lua, each one a transaction, called over the
/// Redis protocol and HTTP.
#[derive(Parser)]
#[command(name = "tokaido", version)]
#[command(after_help = "\
New here? `tokaido demo` is a tour that takes a minute. `tokaido COMMAND --help` is the manual.

Exit status: 0 on success, 1 if a key does not exist or the command failed, 2 for a wrong command
line or configuration, 3 if no server answers or the store cannot be opened, 130 after Ctrl-C.")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Serve(Box<serve::ServeArgs>),
    Run(run::RunArgs),
    Call(call::CallArgs),
    Shell(shell::ShellArgs),
    Reload(reload::ReloadArgs),
    Load(load::LoadArgs),
    Dump(dump::DumpArgs),
    Get(get::GetArgs),
    Put(put::PutArgs),
    Del(del::DelArgs),
    Drop(drop::DropArgs),
    Scan(scan::ScanArgs),
    Backup(backup::BackupArgs),
    Restore(backup::RestoreArgs),
    Check(check::CheckArgs),
    Compact(compact::CompactArgs),
    Cdb(cdb::CdbArgs),
    Bench(bench::BenchArgs),
    Demo(demo::DemoArgs),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Serve(args) => serve::serve(*args),
        Command::Run(args) => run::run(&args),
        Command::Call(args) => call::call(&args),
        Command::Shell(args) => shell::shell(&args),
        Command::Reload(args) => reload::reload(&args),
        Command::Load(args) => load::load(&args),
        Command::Dump(args) => dump::dump(&args),
        Command::Get(args) => get::get(&args).map_err(error::Error::looking_up),
        Command::Put(args) => put::put(&args),
        Command::Del(args) => del::del(&args).map_err(error::Error::looking_up),
        Command::Drop(args) => drop::drop(&args).map_err(error::Error::looking_up),
        Command::Scan(args) => scan::scan(&args),
        Command::Backup(args) => backup::backup(&args),
        Command::Restore(args) => backup::restore(&args),
        Command::Check(args) => check::check(&args),
        Command::Compact(args) => compact::compact(&args),
        Command::Cdb(args) => cdb::cdb(&args),
        Command::Bench(args) => bench::bench(&args),
        Command::Demo(args) => demo::demo(&args),
    };
    match result {
        Ok(code) => code,
        Err(error) if error.is_broken_pipe() => ExitCode::SUCCESS,
        Err(error) => {
            // If standard error is closed, the exit code still tells.
            let _ = writeln!(std::io::stderr(), "tokaido: {error}");
            error.exit_code().into()
        }
    }
}
