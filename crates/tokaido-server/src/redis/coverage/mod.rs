//! Every command of Redis 7.2: those that work the same here, those that differ, and those absent.

mod page;
mod table;

pub(super) use page::section;
