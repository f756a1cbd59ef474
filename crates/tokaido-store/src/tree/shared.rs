//! What snapshots, the writer and the checkpointer share.

use std::sync::Arc;

use crate::{Clock, observer::Observers};

use super::{
    base::Base, durable::Durable, merge_pace::MergePace, names::Names, options::Options,
    pace::Pace, runs::RunDirectory, signal::Signal, upkeep_requests::UpkeepRequests,
    visible::Visible,
};

pub(super) struct Shared {
    pub(super) base: Arc<Base>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) options: Options,
    pub(super) names: Names,
    pub(super) visible: Visible,
    pub(super) durable: Durable,
    /// How the writer and the checkpointer communicate.
    pub(super) signal: Signal,
    pub(super) pace: Pace,
    pub(super) runs: RunDirectory,
    /// How fast runs are merged into the base, beside new ones.
    pub(super) merging: MergePace,
    pub(super) observers: Arc<Observers>,
    pub(super) upkeep_requests: UpkeepRequests,
}
