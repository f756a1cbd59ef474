//! The log: what was committed since the last checkpoint, on disk. docs/file-format.md has the
//! byte tables.

mod frame;
#[cfg(any(test, feature = "fuzzing"))]
pub(super) mod fuzzing;
mod operation;
mod recovery;
mod segment;
mod storage;

pub(super) use frame::FrameBuilder;
pub(super) use operation::{Operation, operations};
pub(super) use recovery::{RecoveryError, recover};
pub(super) use segment::{AppendError, Segment};
pub use storage::{DirectoryStorage, LogFile, LogStorage};
