//! How many different elements were added, about: PFADD, PFCOUNT, PFMERGE.

mod commands;
mod sketch;

pub(super) use commands::COMMANDS;
