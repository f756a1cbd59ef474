//! Codecs of the protocols that Tokaido speaks, without sockets and without a store: bytes in,
//! requests out; replies in, bytes out. Each protocol is a module that is independent of the others;
//! [`base64`] serves all that write bytes as text, and [`lenient`] those that read numbers as C does.

#![deny(missing_docs)]

pub mod base64;
pub mod http;
pub mod kyoto;
pub mod lenient;
pub mod memcached;
pub mod rdb;
pub mod resp;
pub mod tyrant;
