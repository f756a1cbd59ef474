//! What the dialect of Kyoto Tycoon (`lua/kyoto/`) has that is better done in Rust than in Lua.

mod codec;
mod distance;
mod expression;
mod hash;
#[cfg(test)]
mod names;

pub(crate) use codec::{CodecError, codec};
pub use distance::{characters, distance};
pub use expression::compile;
pub(crate) use expression::replace;
pub(crate) use hash::{fnv, murmur};
