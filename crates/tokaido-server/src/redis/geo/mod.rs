//! Points on the earth as members of sorted sets, whose scores are cells of its surface.

mod cell;
mod points;
mod query;
mod search;
mod shape;

pub(super) use points::COMMANDS as POINTS;
pub(super) use search::COMMANDS as SEARCHES;
