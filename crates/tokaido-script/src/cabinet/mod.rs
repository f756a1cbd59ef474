//! What the Kyoto Tycoon and Tokyo Tyrant dialects do with texts that is better done in Rust than in Lua.
//! Both have it from libraries, Kyoto Cabinet and Tokyo Cabinet, that have much in common.

mod codec;
mod distance;
mod expression;
mod hash;
mod tokyo_codec;

pub(crate) use codec::{CodecError, codec};
pub use distance::{characters, distance};
pub use expression::compile;
pub(crate) use expression::{Expression, Groups, Replacement};
pub(crate) use hash::{fnv, murmur};
pub(crate) use tokyo_codec::tokyo_codec;
