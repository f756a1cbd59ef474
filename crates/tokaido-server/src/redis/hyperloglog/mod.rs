//! Estimated counts of distinct elements: PFADD, PFCOUNT, PFMERGE.

mod commands;
mod sketch;

pub(super) use commands::COMMANDS;
