//! The protocols of Tokyo Tyrant, for servers: its own binary one, and the parts of memcached's
//! text protocol that it understands, in its own way. (Source: the specification that comes with
//! Tokyo Tyrant, `doc/spex.html`, and `ttserver.c`.)
//!
//! A server keeps a [`binary::Decoder`] or a [`text::Decoder`] per connection.
//!
//! ```
//! use tokaido_wire::tyrant::{Verb, binary::{Decoded, Decoder}};
//!
//! let mut decoder = Decoder::new(1 << 20);
//! let input = b"\xc8\x30\0\0\0\x05japan";
//! let Decoded::Complete { consumed, request } = decoder.decode(input)? else { panic!("it is whole") };
//! assert_eq!((consumed, request.command.verb, request.key()), (input.len(), Verb::Get, &b"japan"[..]));
//! # Ok::<(), tokaido_wire::tyrant::binary::BinaryError>(())
//! ```

pub mod binary;
mod commands;
pub mod number;
pub mod text;
pub mod update_log;

pub use commands::{COMMANDS, Command, Effect, Field, Verb, of_id, of_name};
