//! What the dialect of OpenResty (`lua/ngx/`) has that is better done in Rust than in Lua.

pub(crate) mod digest;
pub(crate) mod regex;
pub(crate) mod regexes;
pub(crate) mod text;
