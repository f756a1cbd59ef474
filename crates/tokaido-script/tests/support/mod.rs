//! What the tests of this crate share.
#![allow(dead_code, unused_imports, unreachable_pub)]

pub mod bed;
pub mod guest;
pub mod kyoto;
pub mod redis;
pub mod store;
pub mod tyrant;

pub use bed::{Bed, limits, request, sources, text, write_body};
pub use store::{MemoryStore, START_MS};
