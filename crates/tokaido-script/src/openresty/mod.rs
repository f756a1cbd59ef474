//! The parts of the OpenResty dialect (`lua/ngx/`) that are better done in Rust than in Lua.

pub(crate) mod digest;
pub(crate) mod regex;
pub(crate) mod regexes;
pub(crate) mod text;
