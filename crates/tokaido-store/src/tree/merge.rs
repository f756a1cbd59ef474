//! Merging runs: several of similar size into one, so that readers do not find too many, and in the
//! end all of them into the base.
//!
//! Neither changes what readers see. A merge yields to checkpoints and to syncs of the log between two pieces,
//! and may be cancelled there: the runs still hold whatever part of it is in the base by then.

use std::{
    ops::Range,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use super::{
    base::{BaseError, DATA_FILE, Layer},
    checkpoint::RUNS_PART,
    checkpointer::Checkpointer,
    read_ahead::ReadAhead,
    runs::{Merged, RunEntry, RunList, RunWriter, Runs, key_hash},
    signal::Waiting,
    totals::Totals,
};

/// This many runs of similar size are merged into one. With fewer, records are rewritten more often
/// on their way into the base; with more, readers look into more runs.
const RUNS_OF_A_SIZE_MAX: usize = 8;

/// Runs are not joined into one of more bytes than this: offsets in its index have 32 bits.
const JOINED_BYTES_MAX: u64 = u32::MAX as u64;

/// Like [`RUNS_PART`], for a store that is not being written to: it has time, readers find fewer runs, and fewer bytes on
/// disk are duplicates. If the part were smaller, a load that pauses often would rewrite pages for a few records each.
const RUNS_PART_AT_REST: u64 = 8;

/// Longest wait for the writer between two pieces, and how often it is checked. An idle writer
/// releases its view when it is tidied; a program may have a writer that it does not use.
const FOLLOWED_TIME_MAX: Duration = Duration::from_millis(200);
const FOLLOWED_LOOK: Duration = Duration::from_millis(1);

/// The next step.
#[derive(Debug, PartialEq, Eq)]
enum Plan {
    Nothing,
    /// Join the runs at these places into one.
    Join(Range<usize>),
    /// Merge all runs into the base.
    IntoBase,
}

/// Runs whose class is the same, or lower, are of similar size.
fn size_class(entry: &RunEntry) -> u32 {
    entry.bytes.max(1).ilog(RUNS_OF_A_SIZE_MAX as u64)
}

/// What to do about these runs, the newest first, which together may have up to `bytes_max` bytes.
fn plan(runs: &[RunEntry], bytes_max: u64) -> Plan {
    if runs.is_empty() {
        return Plan::Nothing;
    }
    if runs.iter().map(|run| run.bytes).sum::<u64>() >= bytes_max {
        return Plan::IntoBase;
    }
    let largest = runs.iter().map(size_class).max().unwrap_or(0);
    for class in 0..=largest {
        let count = runs.iter().take_while(|run| size_class(run) <= class).count();
        let bytes: u64 = runs[..count].iter().map(|run| run.bytes).sum();
        if count >= RUNS_OF_A_SIZE_MAX && bytes <= JOINED_BYTES_MAX {
            return Plan::Join(0..count);
        }
    }
    Plan::Nothing
}

impl Checkpointer<'_> {
    /// Merges runs as long as there is something to merge, sooner in a store at rest than in one that is being written to. A
    /// merge that fails or is cancelled is started again after the next checkpoint.
    pub(super) fn tidy_runs(&mut self) {
        loop {
            let runs = Arc::clone(&self.shared.visible.tables().runs);
            let bytes_max = self.runs_bytes_max(RUNS_PART).unwrap_or(0);
            let part = if self.is_at_rest { RUNS_PART_AT_REST } else { RUNS_PART };
            let bytes_kept = self.runs_bytes_max(part).unwrap_or(0);
            let plan = match self.has_merge_failed {
                true => Plan::IntoBase,
                false => plan(&runs.entries(), bytes_kept),
            };
            let merged = match plan {
                Plan::Nothing if self.is_at_rest => {
                    // It has failed or was done.
                    let _ = self.attempt("a count of records", Self::recount);
                    return;
                }
                Plan::Nothing => return,
                Plan::Join(places) => {
                    self.attempt("a merge of runs", |this| this.join_runs(&runs, places))
                }
                Plan::IntoBase => self.try_merge(&runs, bytes_max, Self::give_way),
            };
            if !merged.is_ok_and(|is_whole| is_whole) {
                return;
            }
        }
    }

    /// Retries the last merge if it failed, before more is written: a base without room must not
    /// collect runs without end, and the writer must be told.
    pub(super) fn retry_merge(&mut self) -> Result<(), String> {
        if !self.has_merge_failed {
            return Ok(());
        }
        let runs = Arc::clone(&self.shared.visible.tables().runs);
        self.try_merge(&runs, 0, |_| true).map(drop)
    }

    /// Merges runs into the base, and records whether that failed. If it yields to a checkpoint,
    /// that does not start another merge, since this one has not failed yet.
    fn try_merge(
        &mut self,
        runs: &Runs,
        bytes_max: u64,
        may_go_on: impl FnMut(&mut Self) -> bool,
    ) -> Result<bool, String> {
        self.has_merge_failed = false;
        let merged = self.attempt("a merge into the base", |this| {
            this.merge_into_base(runs, bytes_max, may_go_on)
        });
        self.has_merge_failed = merged.is_err();
        merged
    }

    /// Merges all runs into the base, for a caller that has stopped the checkpointer.
    pub(super) fn merge_all(&mut self) -> Result<(), String> {
        let runs = Arc::clone(&self.shared.visible.tables().runs);
        if runs.is_empty() {
            return Ok(());
        }
        let (_, trees) = self.shared.visible.trees();
        self.set_live(&trees);
        self.try_merge(&runs, 0, |_| true).map(drop)
    }

    /// Joins the runs at these places into one, without entries of dropped trees. Returns whether it was done.
    fn join_runs(&mut self, runs: &Runs, places: Range<usize>) -> Result<bool, BaseError> {
        let shared = self.shared;
        let part = runs.part(places.clone());
        let mut writer = RunWriter::begin(&shared.runs, shared.base.store, part.count() as usize)?;
        let mut entries = Merged::of(&part)?;
        while let Some(entry) = entries.next()? {
            let hash = key_hash(entry.tree, entry.key);
            let is_written = self.is_live(entry.tree)
                && writer.push(hash, entry.tree, entry.key, entry.change)?;
            if is_written && !self.give_way() {
                return Ok(false);
            }
        }
        let joined = match writer.is_empty() {
            true => None,
            false => Some(self.open_run(writer.finish()?)?),
        };
        // Runs that were added meanwhile are newer.
        let now = Arc::clone(&shared.visible.tables().runs);
        let newer = now.len() - runs.len();
        let places = newer + places.start..newer + places.end;
        let layer = Layer::begin(&shared.base)?;
        let totals = shared.visible.on_disk();
        let named = self.name_runs(layer, now.replaced(places, joined.clone()), totals);
        named.inspect_err(|_| self.give_up_run(joined.as_deref()))?;
        self.remove_runs(&part);
        Ok(true)
    }

    /// Merges runs into the base, piece by piece, and returns whether that was done. Runs that are
    /// added meanwhile stay; they should not exceed `bytes_max`.
    fn merge_into_base(
        &mut self,
        runs: &Runs,
        bytes_max: u64,
        mut may_go_on: impl FnMut(&mut Self) -> bool,
    ) -> Result<bool, BaseError> {
        let shared = self.shared;
        let merging = shared.merging.begin(runs, bytes_max);
        let before = shared.visible.on_disk();
        let pages_max = shared.options.checkpoint_pages.max(1);
        let mut read_ahead = match shared.base.is_large() {
            true => Some(ReadAhead::new(shared.durable.directory.join(DATA_FILE), runs)?),
            false => None,
        };
        let mut entries = Merged::of(runs)?;
        let mut done = 0;
        let mut layer = Layer::begin(&shared.base)?;
        while let Some(entry) = entries.next()? {
            // Without it, the merge only takes longer.
            if read_ahead.as_mut().is_some_and(|ahead| ahead.advance(done as u64).is_err()) {
                read_ahead = None;
            }
            if layer.pages_changed() >= pages_max {
                shared.base.commits.hold(|| layer.commit_piece())?;
                shared.visible.base_changed();
                merging.advance(done);
                self.wait_for_writer();
                if !may_go_on(self) {
                    return Ok(false);
                }
                layer = Layer::begin(&shared.base)?;
            }
            if self.is_live(entry.tree) {
                layer.apply(entry.tree, entry.key, entry.change)?;
            }
            done += 1;
        }
        let now = Arc::clone(&shared.visible.tables().runs);
        let rest = now.replaced(now.len() - runs.len()..now.len(), None);
        // The base has counted what it replaced.
        let mut totals = shared.visible.on_disk();
        totals.correct(&before, |tree| layer.in_base(tree), rest.is_empty());
        self.name_runs(layer, rest, totals)?;
        self.remove_runs(runs);
        Ok(true)
    }

    /// Waits a moment for the writer to renew its view to the last piece but one. The pages that
    /// its view holds are not reused, and a writer that has just become idle keeps it for a while:
    /// the base would grow by much of what is merged.
    fn wait_for_writer(&self) {
        let began = Instant::now();
        while !self.shared.visible.is_followed()
            && matches!(self.shared.signal.waiting(), Waiting::Nothing)
            && began.elapsed() < FOLLOWED_TIME_MAX
        {
            thread::sleep(FOLLOWED_LOOK);
        }
    }

    /// Commits the new list of runs, and the totals of base and runs.
    pub(super) fn name_runs(
        &self,
        mut layer: Layer,
        runs: Runs,
        totals: Totals,
    ) -> Result<(), BaseError> {
        let list = RunList { next: self.shared.runs.next(), entries: runs.entries() };
        layer.set_runs(list, &totals)?;
        self.shared.base.commits.hold(|| layer.commit_piece())?;
        self.shared.visible.merged(Arc::new(runs), totals);
        Ok(())
    }

    /// Removes the files of runs that the base no longer lists.
    fn remove_runs(&mut self, runs: &Runs) {
        self.retired.add_runs(runs);
        for entry in runs.entries() {
            self.shared.runs.remove(entry.number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(bytes: &[u64]) -> Vec<RunEntry> {
        let run = |(number, bytes): (usize, &u64)| RunEntry {
            number: number as u64,
            bytes: *bytes,
            entries: 1,
            sum: 0,
        };
        bytes.iter().enumerate().map(run).collect()
    }

    #[test]
    fn runs_are_joined_with_their_like_and_merged_when_they_are_much() {
        const MAX: u64 = 1 << 30;
        assert_eq!(plan(&[], 0), Plan::Nothing);
        assert_eq!(plan(&runs(&[40 << 20; 7]), MAX), Plan::Nothing);
        assert_eq!(plan(&runs(&[40 << 20; 8]), MAX), Plan::Join(0..8));
        assert_eq!(plan(&runs(&[40 << 20; 8]), 320 << 20), Plan::IntoBase);
        let mixed = [[4 << 20; 4].as_slice(), &[40 << 20; 3]].concat();
        assert_eq!(plan(&runs(&mixed), MAX), Plan::Nothing);
        // Smaller ones are included.
        let mixed = [[4 << 20; 4].as_slice(), &[40 << 20; 4]].concat();
        assert_eq!(plan(&runs(&mixed), MAX), Plan::Join(0..8));
        let mixed = [[4 << 20; 8].as_slice(), &[40 << 20; 7]].concat();
        assert_eq!(plan(&runs(&mixed), MAX), Plan::Join(0..8));
        assert_eq!(
            plan(&runs(&[1 << 30; 8]), u64::MAX),
            Plan::Nothing,
            "one of them had too many bytes"
        );
        // A large one between small ones does not keep them from being joined.
        let mixed = [[4 << 20; 3].as_slice(), &[40 << 20], &[4 << 20; 4]].concat();
        assert_eq!(plan(&runs(&mixed), MAX), Plan::Join(0..8));
    }

    #[test]
    fn there_are_few_runs_whatever_comes() {
        let (mut all, mut most) = (Vec::new(), 0);
        for number in 0..1_000_u64 {
            let bytes = 1_000_000 + number.wrapping_mul(2_654_435_761) % 40_000_000;
            all.insert(0, RunEntry { number, bytes, entries: 1, sum: 0 });
            while let Plan::Join(places) = plan(&all, u64::MAX) {
                let bytes = all[places.clone()].iter().map(|run| run.bytes).sum();
                all.splice(places, [RunEntry { number, bytes, entries: 1, sum: 0 }]);
            }
            most = most.max(all.len());
        }
        assert!(most <= 40, "{most}");
    }
}
