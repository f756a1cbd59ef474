//! `tokaido shell`: commands and Lua, line by line.

mod backend;
mod complete;
mod line;
pub(crate) mod reply;
mod session;

pub(crate) use session::{ShellArgs, shell};
