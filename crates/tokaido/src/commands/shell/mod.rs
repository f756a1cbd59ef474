//! `tokaido shell`: commands, Lua and Ruby, line by line.

mod backend;
mod complete;
mod language;
mod line;
mod lua;
mod place;
mod remote;
pub(crate) mod reply;
#[cfg_attr(not(feature = "ruby"), path = "no_ruby.rs")]
mod ruby;
mod session;

pub(crate) use session::{ShellArgs, shell};
