//! `tokaido shell`: commands and Lua, line by line.

mod backend;
mod complete;
mod line;
mod lua;
mod place;
mod remote;
pub(crate) mod reply;
mod session;

pub(crate) use session::{ShellArgs, shell};
