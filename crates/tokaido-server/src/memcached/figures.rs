//! What sessions count, for `stats`.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::metrics;

macro_rules! figures {
    ($($figure:ident $name:literal)*) => {
        /// Something that is counted.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Figure {
            $($figure,)*
        }

        /// Their names in `stats`, in its order.
        pub(super) const NAMES: &[&str] = &[$($name),*];
    };
}

figures! {
    CmdGet "cmd_get"
    CmdSet "cmd_set"
    CmdFlush "cmd_flush"
    CmdTouch "cmd_touch"
    CmdMeta "cmd_meta"
    GetHits "get_hits"
    GetMisses "get_misses"
    DeleteMisses "delete_misses"
    DeleteHits "delete_hits"
    IncrMisses "incr_misses"
    IncrHits "incr_hits"
    DecrMisses "decr_misses"
    DecrHits "decr_hits"
    CasMisses "cas_misses"
    CasHits "cas_hits"
    CasBadval "cas_badval"
    TouchHits "touch_hits"
    TouchMisses "touch_misses"
    StoreTooLarge "store_too_large"
    AuthCmds "auth_cmds"
    AuthErrors "auth_errors"
    BytesRead "bytes_read"
    BytesWritten "bytes_written"
}

/// How often each has happened. Only one session writes to it.
#[derive(Debug)]
pub(super) struct Figures([AtomicU64; NAMES.len()]);

impl Default for Figures {
    fn default() -> Self {
        Self(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}

impl Figures {
    pub(super) fn count(&self, figure: Figure) {
        self.add(figure, 1);
    }

    pub(super) fn add(&self, figure: Figure, n: u64) {
        metrics::add(&self.0[figure as usize], n);
    }

    pub(super) fn read(&self) -> Counts {
        std::array::from_fn(|i| self.0[i].load(Relaxed))
    }
}

/// The figures at one moment.
pub(super) type Counts = [u64; NAMES.len()];
