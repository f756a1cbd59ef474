//! What the dialects of Kyoto Tycoon and Tokyo Tyrant do with texts, which is better done in Rust than in Lua.
//! Both have it of libraries, Kyoto Cabinet and Tokyo Cabinet, that have much in common.

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
