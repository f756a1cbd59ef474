//! What a worker, or a pool thread, reads with.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tokaido_store::{ReadError, Snapshot};

use crate::procedures::LocalProgram;

/// What reads use on their thread.
pub(crate) struct ReadContext {
    pub(crate) snapshot: Box<dyn Snapshot>,
    pub(crate) program: LocalProgram,
}

impl ReadContext {
    /// Runs `work` on what is committed now. The snapshot is released afterwards, since the pages
    /// that it holds cannot be reused; taking it anew costs no more than renewing it would.
    ///
    /// # Errors
    /// If no snapshot is available, or if `work` panics.
    pub(crate) fn run<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> Result<T, ReadError> {
        self.snapshot.renew()?;
        self.program.heartbeat().begin_job();
        let result = catch_unwind(AssertUnwindSafe(|| work(self)));
        self.program.heartbeat().idle();
        self.snapshot.release();
        result.map_err(|_| {
            tracing::error!("a panic in a read; its client gets an error");
            ReadError::Engine { message: "an error in the server itself, see its log".to_owned() }
        })
    }
}
