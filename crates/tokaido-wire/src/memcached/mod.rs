//! The memcached protocol, for servers: the text protocol with its meta commands, and the binary one.
//!
//! A server keeps a [`TextDecoder`] per connection and answers with the functions of [`text`]:
//!
//! ```
//! use tokaido_wire::memcached::{Decoded, Limits, Request, TextDecoder, text};
//!
//! let mut input: &[u8] = b"set k 7 0 5\r\nhello\r\nget k\r\nset k 7 0 5\r\nhe";
//! let mut output = Vec::new();
//! let mut decoder = TextDecoder::new(Limits::default());
//! while let Decoded::Complete { consumed, request, .. } = decoder.decode(input)? {
//!     match request {
//!         Request::Store(_) => text::line(&mut output, "STORED"),
//!         Request::Get { keys, .. } => {
//!             for key in keys {
//!                 text::value(&mut output, key, 7, b"hello", None);
//!             }
//!             text::line(&mut output, "END");
//!         }
//!         _ => text::line(&mut output, "ERROR"),
//!     }
//!     input = &input[consumed..];
//! }
//! assert_eq!(output, b"STORED\r\nVALUE k 7 5\r\nhello\r\nEND\r\n");
//! assert_eq!(input, b"set k 7 0 5\r\nhe"); // kept until more of it arrives
//! # Ok::<(), tokaido_wire::memcached::ProtocolError>(())
//! ```
//!
//! For a connection that begins with [`binary::REQUEST_MAGIC`], it keeps a [`BinaryDecoder`] and
//! answers with [`binary::reply`].

pub mod binary;
mod binary_decoder;
mod commands;
mod error;
mod limits;
mod meta;
mod number;
mod opcodes;
mod request;
pub mod text;
mod text_decoder;

pub use binary_decoder::{BinaryDecoded, BinaryDecoder, BinaryRequest};
pub use commands::{COMMANDS, Command, Effect, Mode, Verb, find};
pub use error::{ProtocolError, RequestError};
pub use limits::{
    CREDENTIALS_LEN_MAX, KEY_LEN_MAX, KEYS_LINE_LEN_MAX, LINE_LEN_MAX, Limits, META_WORDS_MAX,
    OPAQUE_LEN_MAX, VALUE_LEN_MAX,
};
pub use meta::{Meta, MetaFlags, MetaKey};
pub use number::unsigned;
pub use opcodes::{BinaryVerb, OPERATIONS, Operation, find_operation};
pub use request::{Decoded, Exptime, Request, Store, Words};
pub use text_decoder::{Credentials, TextDecoder};
