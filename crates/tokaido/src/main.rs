//! The `tokaido` binary: a thin layer of subcommands over the library crates.

mod client;
mod commands;
mod duration;
mod endpoint;
mod error;
mod formats;
mod http;
mod loader;
mod logging;
mod procedures;
mod progress;
mod style;
mod value;

use std::{io::Write, process::ExitCode};

use clap::{Parser, Subcommand};

// LuaJIT makes and frees a string for each key that a procedure touches, and its memory goes
// through this allocator like all other.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

use commands::{
    backup, call, cdb, check, compact, del, demo, dump, get, load, put, run, scan, serve, shell,
};

/// A programmable key-value server: procedures in Lua, each one a transaction, called over the
/// Redis protocol and HTTP.
#[derive(Parser)]
#[command(name = "tokaido", version)]
#[command(after_help = "\
New here? `tokaido demo` shows all of it in a minute. `tokaido COMMAND --help` is the manual.")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Serve(serve::ServeArgs),
    Run(run::RunArgs),
    Call(call::CallArgs),
    Shell(shell::ShellArgs),
    Load(load::LoadArgs),
    Dump(dump::DumpArgs),
    Get(get::GetArgs),
    Put(put::PutArgs),
    Del(del::DelArgs),
    Scan(scan::ScanArgs),
    Backup(backup::BackupArgs),
    Restore(backup::RestoreArgs),
    Check(check::CheckArgs),
    Compact(compact::CompactArgs),
    Cdb(cdb::CdbArgs),
    Demo(demo::DemoArgs),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Serve(args) => serve::serve(args),
        Command::Run(args) => run::run(&args),
        Command::Call(args) => call::call(&args),
        Command::Shell(args) => shell::shell(&args),
        Command::Load(args) => load::load(&args),
        Command::Dump(args) => dump::dump(&args),
        Command::Get(args) => get::get(&args),
        Command::Put(args) => put::put(&args),
        Command::Del(args) => del::del(&args),
        Command::Scan(args) => scan::scan(&args),
        Command::Backup(args) => backup::backup(&args),
        Command::Restore(args) => backup::restore(&args),
        Command::Check(args) => check::check(&args),
        Command::Compact(args) => compact::compact(&args),
        Command::Cdb(args) => cdb::cdb(&args),
        Command::Demo(args) => demo::demo(&args),
    };
    match result {
        Ok(code) => code,
        Err(error) if error.is_broken_pipe() => ExitCode::SUCCESS,
        Err(error) => {
            // With standard error gone, the exit code still tells.
            let _ = writeln!(std::io::stderr(), "tokaido: {error}");
            error.exit_code().into()
        }
    }
}
