//! Scripts that clients send, in Redis's dialect: a virtual machine of their own, separate from that of
//! procedures, another for libraries of functions, and the libraries `cmsgpack` and `struct` on values.

pub(crate) mod codecs;
mod functions;
mod message_pack;
pub(crate) mod number;
mod pack;
mod sha1;
mod texts;
mod vm;

pub use functions::{FunctionCall, FunctionFlags, FunctionVm, LibraryError, RegisteredFunction};
pub use sha1::sha1_hex;
pub(crate) use texts::{push_texts, set_texts};
pub use vm::{RedisCall, RedisScript, RedisVm};
