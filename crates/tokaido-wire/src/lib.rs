//! Codecs of the protocols that Tokaido speaks, without sockets and without a store: bytes in,
//! requests out; replies in, bytes out. Each protocol is a module that knows none of the others.

#![deny(missing_docs)]

pub mod resp;
