//! The records of one tree: those of base and runs, each checked, and what the log makes of them.

use crate::{
    DatabaseStatistics, ReadError, record,
    tree::{
        base::{
            long_key,
            pages::{PageFile, PageSet, walk},
        },
        open,
        runs::{Change, Merged, MergedEntry, Runs},
    },
};

use super::{
    base::{BaseSurvey, page_finding},
    overlay::Overlay,
    report::{CheckReport, Finding},
};

/// The parts of a store.
pub(super) struct Parts {
    pub(super) file: PageFile,
    pub(super) survey: BaseSurvey,
    /// Those runs that can be opened.
    pub(super) runs: Runs,
    pub(super) overlay: Overlay,
}

/// A tree that is being checked.
pub(super) struct Tree<'a> {
    pub(super) parts: &'a Parts,
    pub(super) number: u32,
    /// Its name in findings.
    pub(super) label: &'a str,
}

impl Tree<'_> {
    /// Passes every record of base, runs and log to `live`, in the order of keys, and checks those of base and
    /// runs on the way; those of the log have been checked. Returns whether base and runs were readable.
    pub(super) fn walk(
        &self,
        pages: &mut PageSet,
        report: &mut CheckReport,
        mut live: impl FnMut(&mut CheckReport, &[u8], &[u8]),
    ) -> bool {
        let mut changes = self.parts.overlay.tree(self.number).peekable();
        let is_readable = self.walk_disk(pages, report, |report, key, stored| {
            while let Some((changed, new)) = changes.next_if(|(changed, _)| *changed < key) {
                new.into_iter().for_each(|new| live(report, changed, new));
            }
            if changes.peek().is_none_or(|(changed, _)| *changed != key) {
                live(report, key, stored);
            }
        });
        for (key, stored) in changes {
            stored.into_iter().for_each(|stored| live(report, key, stored));
        }
        is_readable
    }

    /// Passes every readable record of base and runs to `visit`. If everything could be read, the
    /// totals must be correct, unless they are estimates.
    fn walk_disk(
        &self,
        pages: &mut PageSet,
        report: &mut CheckReport,
        mut visit: impl FnMut(&mut CheckReport, &[u8], &[u8]),
    ) -> bool {
        if self.parts.survey.runs.entries.is_empty() {
            return self.walk_base(pages, report, visit);
        }
        let mut counted = DatabaseStatistics::default();
        let mut are_records_sound = true;
        let mut give = |report: &mut CheckReport, key: &[u8], stored: &[u8], is_of_run: bool| {
            match self.check(key, stored, &mut counted) {
                // Records of the base were found sound before.
                Err(what) if is_of_run => {
                    are_records_sound = false;
                    report.add(Finding::record(self.label, key, what));
                }
                _ => visit(report, key, stored),
            }
        };
        let mut changes = RunChanges::of(&self.parts.runs, self.number);
        let mut is_readable = self.walk_base(pages, report, |report, key, stored| {
            while let Some((changed, new)) = changes.next_if(|changed| changed < key) {
                new.into_iter().for_each(|new| give(report, changed, new, true));
            }
            match changes.next_if(|changed| changed == key) {
                Some((_, new)) => new.into_iter().for_each(|new| give(report, key, new, true)),
                None => give(report, key, stored, false),
            }
        });
        while let Some((changed, new)) = changes.next_if(|_| true) {
            new.into_iter().for_each(|new| give(report, changed, new, true));
        }
        for error in changes.into_damage() {
            is_readable = false;
            report.add(Finding::Run { what: error.to_string() });
        }
        is_readable &= are_records_sound;
        let total = self.parts.survey.totals.get(&self.number).copied().unwrap_or_default();
        if is_readable && total.sum != counted && !total.is_estimate {
            let recorded = total.sum;
            report.add(Finding::Statistics { tree: self.label.to_owned(), recorded, counted });
        }
        is_readable
    }

    /// Passes every readable record of the base to `visit`. If everything could be read, the
    /// statistics must be correct.
    fn walk_base(
        &self,
        pages: &mut PageSet,
        report: &mut CheckReport,
        mut visit: impl FnMut(&mut CheckReport, &[u8], &[u8]),
    ) -> bool {
        let Some(base) = self.parts.survey.trees.get(&self.number) else { return true };
        let mut counted = DatabaseStatistics::default();
        let mut check = |report: &mut CheckReport, key: &[u8], stored: &[u8]| match self.check(
            key,
            stored,
            &mut counted,
        ) {
            Ok(()) => visit(report, key, stored),
            Err(what) => report.add(Finding::record(self.label, key, what)),
        };
        let mut are_buckets_sound = true;
        let are_pages_sound = walk(&self.parts.file, base.root, pages, &mut |entry| match entry {
            Err(damage) => report.add(page_finding(damage, self.label)),
            Ok(entry) if long_key::is_bucket(&entry.key) => {
                let (head, bytes) = (&entry.key, &entry.value);
                are_buckets_sound &= self.open_bucket(head, bytes, report, &mut check);
            }
            Ok(entry) => check(report, &entry.key, &entry.value),
        });
        let is_readable = are_pages_sound && are_buckets_sound;
        if is_readable && base.recorded != counted {
            let (tree, recorded) = (self.label.to_owned(), base.recorded);
            report.add(Finding::Statistics { tree, recorded, counted });
        }
        is_readable
    }

    /// Passes the records of a bucket of long keys to `check`. Returns whether all could be read.
    fn open_bucket(
        &self,
        head: &[u8],
        bytes: &[u8],
        report: &mut CheckReport,
        check: &mut impl FnMut(&mut CheckReport, &[u8], &[u8]),
    ) -> bool {
        let mut last: Option<&[u8]> = None;
        for pair in long_key::pairs(bytes) {
            let is_right = pair.is_ok_and(|(key, stored)| {
                check(report, key, stored);
                key.starts_with(head) && last.replace(key).is_none_or(|last| key > last)
            });
            if !is_right {
                let what = "the bucket of keys that begin so is damaged";
                report.add(Finding::record(self.label, head, what));
                return false;
            }
        }
        if last.is_none() {
            report.add(Finding::record(self.label, head, "a bucket of long keys is empty"));
        }
        true
    }

    /// Counts a record and returns what is wrong with it.
    fn check(
        &self,
        key: &[u8],
        stored: &[u8],
        counted: &mut DatabaseStatistics,
    ) -> Result<(), String> {
        let record = record::decode(stored);
        let value_len = record.as_ref().map_or(0, |record| record.value.len());
        counted.add(DatabaseStatistics::of_record(key.len(), value_len));
        let found = record.map_err(|error| error.to_string())?.version;
        // An interrupted checkpoint may have written some of the log's records.
        let last = self.parts.overlay.last_sequence();
        if found > last {
            return Err(format!("transaction {found} wrote it, but the last one is {last}"));
        }
        open::check_key(self.number, key).map_err(|error| error.to_string())
    }
}

/// The changes of one tree in the runs, in the order of keys.
struct RunChanges<'r> {
    entries: Merged<'r>,
    tree: u32,
    next: Option<MergedEntry<'r>>,
}

impl<'r> RunChanges<'r> {
    fn of(runs: &'r Runs, tree: u32) -> Self {
        let mut changes = Self { entries: Merged::rescue(runs, tree), tree, next: None };
        changes.advance();
        changes
    }

    fn advance(&mut self) {
        // An iterator that skips damage returns no error.
        let next = self.entries.next().ok().flatten();
        self.next = next.filter(|entry| entry.tree == self.tree);
    }

    /// The next key with its record or tombstone, if `is_such` is true for the key.
    fn next_if(&mut self, is_such: impl Fn(&[u8]) -> bool) -> Option<(&'r [u8], Change<'r>)> {
        let next = self.next.filter(|entry| is_such(entry.key))?;
        self.advance();
        Some((next.key, next.change))
    }

    fn into_damage(self) -> Vec<ReadError> {
        self.entries.into_damage()
    }
}
