//! How far a command may go.

use crate::TableError;

/// What a command may take.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Bytes that what it finds may have while it searches, and bytes of its reply.
    pub bytes_max: usize,
    /// Whether it is to stop; asked at every row.
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
