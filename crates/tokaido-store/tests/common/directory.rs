//! Where tests keep their stores.

use tempfile::TempDir;

/// A directory in memory where the system has one: the base syncs its file at every opening and
/// every checkpoint, which takes most of the time of a test with hundreds of them.
pub(crate) fn fast_directory() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}
