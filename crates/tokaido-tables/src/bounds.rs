//! Bounds on the work of a command.

use crate::TableError;

/// What a command may use.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Maximum bytes of what it finds while it searches, and of its reply.
    pub bytes_max: usize,
    /// Whether it must stop; checked at every row.
    pub is_stopping: fn() -> bool,
}

impl Bounds {
    pub(crate) fn check_bytes(self, bytes: usize) -> Result<(), TableError> {
        let max = self.bytes_max;
        if bytes > max { Err(TableError::TooLarge { max }) } else { Ok(()) }
    }

    pub(crate) fn check_stop(self) -> Result<(), TableError> {
        if (self.is_stopping)() { Err(TableError::Stopped) } else { Ok(()) }
    }
}
