//! `tokaido bench`: measures by methods that do not mislead.

mod lua;
mod net;

use std::process::ExitCode;

use crate::error::Error;

/// Measure a function of Lua, or a server
///
/// What is measured, and why the obvious ways to do it mislead, is told in docs/bench.md.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    command: BenchCommand,
}

#[derive(Debug, clap::Subcommand)]
enum BenchCommand {
    Lua(lua::LuaArgs),
    Net(Box<net::NetArgs>),
}

pub(crate) fn bench(args: &BenchArgs) -> Result<ExitCode, Error> {
    match &args.command {
        BenchCommand::Lua(args) => lua::lua(args),
        BenchCommand::Net(args) => net::net(args),
    }
}
