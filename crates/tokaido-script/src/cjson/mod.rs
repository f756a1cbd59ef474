//! `cjson`: JSON as lua-cjson reads and writes it, with its messages and its leniency about numbers. It works on Lua's
//! values where they are. Its settings, and what a failure does, are in `lua/cjson.lua` and the dialects.

mod decode;
mod encode;
mod tokens;

pub(crate) use decode::lua_decode;
pub(crate) use encode::lua_encode;

/// Maximum nesting of tables, whatever the settings say: each level takes some of the thread's stack.
const DEPTH_MAX: usize = 1000;
