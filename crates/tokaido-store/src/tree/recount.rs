//! Counting what base and runs hold, in a store at rest, where that was estimated.

use std::{collections::HashMap, sync::Arc};

use crate::{DatabaseStatistics, record};

use super::{
    base::{BaseError, Layer},
    checkpointer::Checkpointer,
    runs::{Merged, Runs},
};

/// After so many entries of the runs, more urgent work goes first. Each may read a page from disk.
const ENTRIES_PER_LOOK: usize = 256;

impl Checkpointer<'_> {
    /// Replaces estimated totals by exact ones, if there are any. It reads all entries of the runs, and what they replace in the
    /// base. Returns whether it was done; if not, the next rest is another occasion.
    pub(super) fn recount(&mut self) -> Result<bool, BaseError> {
        let shared = self.shared;
        let before = shared.visible.on_disk();
        if !before.has_estimates() {
            return Ok(true);
        }
        let runs = Arc::clone(&shared.visible.tables().runs);
        let mut base = shared.visible.base_view()?;
        base.renew()?;
        let mut changed: HashMap<u32, DatabaseStatistics> = HashMap::new();
        let mut entries = Merged::of(&runs)?;
        let mut done = 0_usize;
        while let Some(entry) = entries.next()? {
            done += 1;
            if done.is_multiple_of(ENTRIES_PER_LOOK) && !self.give_way() {
                return Ok(false);
            }
            let (tree, key) = (entry.tree, entry.key);
            if !before.get(tree).is_estimate {
                continue;
            }
            let changed = changed.entry(tree).or_default();
            if let Some(new) = entry.change {
                changed.add(record::statistics(key, new)?);
            }
            if let Some(old) = base.find(tree, key)? {
                changed.subtract(record::statistics(key, old)?);
            }
        }
        drop((entries, base));
        let layer = Layer::begin(&shared.base)?;
        let counted = |tree| {
            let mut sum = layer.in_base(tree);
            sum.add(changed.get(&tree).copied().unwrap_or_default());
            sum
        };
        let mut totals = shared.visible.on_disk();
        let now = Arc::clone(&shared.visible.tables().runs);
        totals.correct(&before, counted, now.len() == runs.len());
        self.name_runs(layer, Runs::clone(&now), totals)?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests;
