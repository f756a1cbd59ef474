//! What the OpenResty dialect needs from Rust.

pub(crate) mod dictionary;
pub(crate) mod regex;
pub(crate) mod sockets;
pub(crate) mod text;

pub(super) use crate::openresty::regexes::Regexes;
