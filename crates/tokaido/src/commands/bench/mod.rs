//! `tokaido bench`: measures by methods that do not mislead.

mod dictionary;
mod lua;
mod net;
mod suite;

use std::process::ExitCode;

use crate::error::Error;

/// Measure a Lua function, a server, or Tokaido against its peers
///
/// docs/bench.md explains what is measured, and why the obvious ways to do it are misleading.
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
    Suite(suite::SuiteArgs),
    Peers(suite::PeersArgs),
    Compare(suite::CompareArgs),
}

pub(crate) fn bench(args: &BenchArgs) -> Result<ExitCode, Error> {
    match &args.command {
        BenchCommand::Lua(args) => lua::lua(args),
        BenchCommand::Net(args) => net::net(args),
        BenchCommand::Suite(args) => suite::suite(args),
        BenchCommand::Peers(args) => suite::peers(args),
        BenchCommand::Compare(args) => suite::compare(args),
    }
}
