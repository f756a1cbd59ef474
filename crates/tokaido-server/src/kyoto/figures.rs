//! Counts of what clients did, for `report`.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Figure {
    Set,
    SetMisses,
    Remove,
    RemoveMisses,
    Get,
    GetMisses,
    Script,
    Misc,
}

impl Figure {
    const ALL: [(Self, &'static str); 8] = [
        (Self::Set, "cnt_set"),
        (Self::SetMisses, "cnt_set_misses"),
        (Self::Remove, "cnt_remove"),
        (Self::RemoveMisses, "cnt_remove_misses"),
        (Self::Get, "cnt_get"),
        (Self::GetMisses, "cnt_get_misses"),
        (Self::Script, "cnt_script"),
        (Self::Misc, "cnt_misc"),
    ];
}

/// Each is added to once for each request, however many records that concerns, so that threads
/// rarely contend here.
#[derive(Default)]
pub(crate) struct Figures([AtomicU64; Figure::ALL.len()]);

impl Figures {
    pub(crate) fn add(&self, figure: Figure, n: usize) {
        if n > 0 {
            self.0[figure as usize].fetch_add(n as u64, Relaxed);
        }
    }

    /// Each count with its name.
    pub(super) fn each(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Figure::ALL.iter().map(|&(figure, name)| (name, self.0[figure as usize].load(Relaxed)))
    }
}
