//! What the dialect of OpenResty asks of Rust.

pub(crate) mod dictionary;
pub(crate) mod regex;
pub(crate) mod sockets;
pub(crate) mod text;

pub(super) use crate::openresty::regexes::Regexes;
