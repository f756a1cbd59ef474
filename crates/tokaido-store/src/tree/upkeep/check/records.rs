//! The records of one tree: those of the base, each checked, and what the log makes of them.

use crate::{
    DatabaseStatistics, record,
    tree::{
        base::{
            long_key,
            pages::{PageFile, PageSet, walk},
        },
        open,
    },
};

use super::{
    base::{BaseSurvey, page_finding},
    overlay::Overlay,
    report::{CheckReport, Finding},
};

/// What a store consists of.
pub(super) struct Parts {
    pub(super) file: PageFile,
    pub(super) survey: BaseSurvey,
    pub(super) overlay: Overlay,
}

/// A tree that is walked over.
pub(super) struct Tree<'a> {
    pub(super) parts: &'a Parts,
    pub(super) number: u32,
    /// How it is called in findings.
    pub(super) label: &'a str,
}

impl Tree<'_> {
    /// Gives every record of base and log to `live`, in the order of keys, and checks those of the
    /// base on the way; those of the log have been. Tells whether the base was readable.
    pub(super) fn walk(
        &self,
        pages: &mut PageSet,
        report: &mut CheckReport,
        mut live: impl FnMut(&mut CheckReport, &[u8], &[u8]),
    ) -> bool {
        let mut changes = self.parts.overlay.tree(self.number).peekable();
        let is_readable = self.walk_base(pages, report, |report, key, stored| {
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

    /// Gives every record of the base that can be read to `visit`. Where everything could be read,
    /// the statistics must be right.
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

    /// Gives the records of a bucket of long keys to `check`. Tells whether all could be read.
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

    /// Counts a record and says what is wrong with it.
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
        // A checkpoint that was interrupted has left some of what stands in the log.
        let last = self.parts.overlay.last_sequence();
        if found > last {
            return Err(format!("transaction {found} wrote it, but the last one is {last}"));
        }
        open::check_key(self.number, key).map_err(|error| error.to_string())
    }
}
