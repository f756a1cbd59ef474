//! The log: what was committed since the last checkpoint, on disk. docs/file-format.md has the
//! byte tables.

mod capture;
mod end;
mod frame;
#[cfg(any(test, feature = "fuzzing"))]
#[path = "../../../tests/checks/log.rs"]
pub(super) mod fuzzing;
mod operation;
mod recovery;
mod segment;
mod storage;

pub(super) use capture::{Captured, capture};
pub(super) use end::{LogEnd, LogError, LogPlace};
pub(super) use frame::FrameBuilder;
pub(super) use operation::{Operation, operations};
pub(super) use recovery::{Recovered, RecoveryError, count_behind, read_log, recover};
pub(super) use segment::Tail;
pub(crate) use segment::VERSION;
pub(super) use storage::LOG_DIRECTORY;
pub use storage::{DirectoryStorage, LogFile, LogStorage};
