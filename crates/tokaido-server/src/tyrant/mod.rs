//! Tokyo Tyrant: its binary protocol, its memcached lines, and its kind of HTTP. The manual is
//! `docs/tokyo-tyrant.md`.
//!
//! The codec has the table of commands, `COMMANDS` of `tokaido_wire::tyrant`; the functions of
//! `misc` have one of their own, in `misc.rs`. From both tables follow the rights that are needed,
//! and the page of documentation. `records`, `search` and `lists` are what commands do to data; the
//! entry points are `binary`, `text` and `http/tyrant.rs`.

mod access;
mod binary;
mod commands;
mod documentation;
mod figures;
mod lists;
mod misc;
mod periodic;
mod records;
mod refusal;
mod restore;
mod rights;
mod scripted;
mod scripts;
mod search;
mod session;
mod stat;
mod state;
mod tables;
mod text;

pub(crate) use access::{allow_misc, allow_verb};
pub(crate) use binary::Binary;
pub use documentation::documentation;
pub(crate) use figures::Figure;
pub(crate) use misc::{Arguments, Misc, Results, Work, find as find_misc};
pub(crate) use periodic::{PERIODIC_MAX, Periodic};
pub(crate) use records::{get, out, put, putcat, putkeep};
pub(crate) use refusal::{ErrorCode, Refusal};
pub(crate) use rights::{Door, Rights};
pub(crate) use scripted::{is_table, misc_of_script};
pub(crate) use scripts::Script;
pub(crate) use stat::describe;
pub(crate) use state::State;
pub(crate) use tables::putcat as putcat_row;
pub(crate) use text::Text;

/// The only reply on a connection that is not served. The protocol has no room for a reason.
pub(crate) fn refusal() -> Vec<u8> {
    vec![tokaido_wire::tyrant::binary::FAILED]
}
