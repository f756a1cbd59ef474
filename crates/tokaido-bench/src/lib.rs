//! How Tokaido is measured: timing that does not mislead, and the statistics to report it with.
//!
//! `docs/performance.md` describes the method and the reason for each step. [`timing`] takes samples, [`statistics`]
//! says what they mean, [`machine`] says what they were taken on. [`lua`] times a Lua function, [`net`] puts a server
//! under load, [`suite`] compares Tokaido with its peers, and [`report`] presents the results.

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
