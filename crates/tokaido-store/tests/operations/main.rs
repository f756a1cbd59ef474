//! Operations on a store as a whole: check, salvage, backup, restore, compaction; and the files
//! of earlier versions.

mod backup;
mod check;
mod collections;
mod compact;
mod fixtures;
mod runs;
mod salvage;
mod support;
