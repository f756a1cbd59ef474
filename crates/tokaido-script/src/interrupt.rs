//! Stopping what runs in a VM from outside.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// Asks a VM to stop what it runs. Any thread may do so, and a signal handler, too.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Stops the call or script that runs, within some milliseconds, and all that are begun before
    /// [`clear`](Self::clear). Tells whether that had been asked for already.
    pub fn raise(&self) -> bool {
        self.0.swap(true, Ordering::SeqCst)
    }

    /// Whether it was raised, and not cleared since.
    #[must_use]
    pub fn is_raised(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// Lets calls and scripts run again.
    pub fn clear(&self) {
        self.0.store(false, Ordering::SeqCst);
    }
}
