//! Stopping from outside what runs in a VM.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// Asks a VM to stop what it runs. Any thread may do so, even a signal handler.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Stops the running call or script within some milliseconds, and all that begin before
    /// [`clear`](Self::clear). Tells whether it was raised already.
    pub fn raise(&self) -> bool {
        self.0.swap(true, Ordering::SeqCst)
    }

    /// Whether it was raised and not cleared since.
    #[must_use]
    pub fn is_raised(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// Lets calls and scripts run again.
    pub fn clear(&self) {
        self.0.store(false, Ordering::SeqCst);
    }
}
