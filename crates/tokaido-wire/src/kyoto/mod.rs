//! The protocols of Kyoto Tycoon, for servers: TSV-RPC, whose requests and replies are pairs of
//! names and values in HTTP bodies, and the binary protocol of its bulk commands. (Source: the
//! specification that comes with Kyoto Tycoon, `doc/spex.html`, and `ktserver.cc`.)
//!
//! The pairs of a call are read with [`ContentType`] and written with [`columns::write`]:
//!
//! ```
//! use tokaido_wire::kyoto::{ContentType, Pairs, columns};
//!
//! let mut inputs = Pairs::new();
//! let content_type = ContentType::parse("text/tab-separated-values; colenc=B");
//! content_type.read(b"a2V5\tamFwYW4=\n", &mut inputs)?;
//! assert_eq!(inputs[b"key".as_slice()], b"japan");
//!
//! let (content_type, body) = columns::write(&inputs);
//! assert_eq!((content_type, body.as_slice()), ("text/tab-separated-values", &b"key\tjapan\n"[..]));
//! # Ok::<(), tokaido_wire::kyoto::ColumnError>(())
//! ```
//!
//! For the binary protocol a server keeps a [`binary::Decoder`] per connection.

pub mod binary;
pub mod columns;
mod fixed;
mod procedures;
pub mod quoted;

pub use columns::{ColumnError, ContentType, Encoding, Pairs};
pub use fixed::Fixed;
pub use procedures::{Effect, PROCEDURES, Procedure, Verb, find};
