//! Scripts that clients send, in the dialect of Redis: a virtual machine of its own, apart from that
//! of procedures, and the libraries `cjson`, `cmsgpack` and `struct` on values.

pub(crate) mod codecs;
mod json;
mod json_decode;
mod message_pack;
mod number;
mod pack;
mod sha1;
mod texts;
mod vm;

pub use sha1::sha1_hex;
pub(crate) use texts::set_texts;
pub use vm::{RedisCall, RedisScript, RedisVm};
