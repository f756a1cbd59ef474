//! How Tokaido measures: timing that does not mislead, and the statistics to report it with.
//!
//! The method, and why each step is there: `docs/performance.md`. [`timing`] takes samples,
//! [`statistics`] says what they mean, [`machine`] says what they were taken on. [`lua`] times a function of
//! Lua, [`net`] puts a server to work.

#![deny(missing_docs)]

pub mod lua;
pub mod machine;
pub mod net;
pub mod statistics;
pub mod timing;
pub mod units;
