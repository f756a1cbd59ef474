//! Every command of Redis 7.2: which of them are here, which are here but differ, and which are not.

mod page;
mod table;

pub(super) use page::section;
