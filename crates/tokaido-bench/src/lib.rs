//! How Tokaido measures: timing that does not mislead, and the statistics to report it with.
//!
//! The method, and why each step is there: `docs/performance.md`. [`timing`] takes samples,
//! [`statistics`] says what they mean, [`machine`] says what they were taken on. [`lua`] times a function of
//! Lua, [`net`] puts a server to work, [`suite`] puts Tokaido beside its peers, and [`report`] shows what came of it.

#![deny(missing_docs)]

pub mod lua;
pub mod machine;
pub mod net;
pub mod ports;
mod random;
pub mod report;
pub mod statistics;
pub mod suite;
pub mod timing;
pub mod units;
