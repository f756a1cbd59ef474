//! One file per subcommand: its flags, its help, and what it does.

pub(crate) mod backup;
pub(crate) mod bench;
pub(crate) mod call;
pub(crate) mod cdb;
pub(crate) mod check;
pub(crate) mod compact;
pub(crate) mod del;
pub(crate) mod demo;
pub(crate) mod drop;
pub(crate) mod dump;
pub(crate) mod get;
pub(crate) mod load;
pub(crate) mod put;
pub(crate) mod reload;
pub(crate) mod run;
pub(crate) mod scan;
pub(crate) mod serve;
pub(crate) mod shell;
