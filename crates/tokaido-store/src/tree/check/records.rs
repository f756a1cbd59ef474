//! The records of one tree: those of the base, each checked, and what the log makes of them.

use std::{cmp::Ordering, collections::VecDeque};

use crate::{
    DatabaseStatistics, record,
    tree::{
        base::{
            long_key,
            pages::{PageFile, PageSet, Walk},
        },
        open,
    },
};

use super::{
    base::{BaseTree, page_finding},
    overlay::Overlay,
    report::{CheckReport, Finding},
};

/// What is walked over.
pub(super) struct Place<'a> {
    pub(super) file: &'a PageFile,
    pub(super) overlay: &'a Overlay,
    /// The last transaction in the base.
    pub(super) sequence: u64,
    pub(super) base: Option<BaseTree>,
    pub(super) tree: u32,
    /// How it is called in findings.
    pub(super) label: &'a str,
}

impl Place<'_> {
    /// Notes that a record is not as it should be.
    pub(super) fn record_finding(&self, key: &[u8], what: &str) -> Finding {
        Finding::Record { tree: self.label.to_owned(), key: key.to_vec(), what: what.to_owned() }
    }

    /// Gives every record of base and log to `live`, in the order of keys, and checks those of the
    /// base on the way; those of the log have been. Tells whether the base was readable.
    pub(super) fn walk(
        &self,
        pages: &mut PageSet,
        report: &mut CheckReport,
        mut live: impl FnMut(&mut CheckReport, &[u8], &[u8]),
    ) -> bool {
        let mut base = BaseRecords::new(self);
        let mut from_base = base.next(pages, report);
        let mut changes = self.overlay.tree(self.tree).peekable();
        loop {
            let order = match (&from_base, changes.peek()) {
                (None, None) => break,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some((key, _)), Some((changed, _))) => key[..].cmp(changed),
            };
            if order == Ordering::Less {
                if let Some((key, stored)) = from_base.take() {
                    live(report, &key, &stored);
                }
            } else if let Some((key, Some(stored))) = changes.next() {
                live(report, key, stored);
            }
            if order != Ordering::Greater {
                from_base = base.next(pages, report);
            }
        }
        base.check_statistics(report);
        !base.is_damaged()
    }
}

/// The records of a tree of the base.
struct BaseRecords<'a> {
    place: &'a Place<'a>,
    walk: Option<Walk<'a>>,
    /// What is left of a bucket of long keys.
    bucket: VecDeque<(Vec<u8>, Vec<u8>)>,
    counted: DatabaseStatistics,
    is_bucket_damaged: bool,
}

impl<'a> BaseRecords<'a> {
    fn new(place: &'a Place<'a>) -> Self {
        let walk = place.base.map(|base| Walk::new(place.file, base.root));
        Self {
            place,
            walk,
            bucket: VecDeque::new(),
            counted: DatabaseStatistics::default(),
            is_bucket_damaged: false,
        }
    }

    fn is_damaged(&self) -> bool {
        self.is_bucket_damaged || self.walk.as_ref().is_some_and(Walk::is_damaged)
    }

    /// The next record that can be read.
    fn next(
        &mut self,
        pages: &mut PageSet,
        report: &mut CheckReport,
    ) -> Option<(Vec<u8>, Vec<u8>)> {
        loop {
            if let Some((key, stored)) = self.bucket.pop_front() {
                match self.check(&key, &stored) {
                    Ok(()) => return Some((key, stored)),
                    Err(what) => report.add(self.place.record_finding(&key, &what)),
                }
                continue;
            }
            match self.walk.as_mut()?.next(pages)? {
                Err(damage) => report.add(page_finding(damage, self.place.label)),
                Ok(entry) if long_key::is_bucket(&entry.key) => {
                    self.open_bucket(&entry.key, &entry.value, report);
                }
                Ok(entry) => self.bucket.push_back((entry.key, entry.value)),
            }
        }
    }

    fn open_bucket(&mut self, head: &[u8], bytes: &[u8], report: &mut CheckReport) {
        let mut last: Option<&[u8]> = None;
        for pair in long_key::pairs(bytes) {
            let is_right = pair.is_ok_and(|(key, stored)| {
                let is_right = key.starts_with(head) && last.is_none_or(|last| key > last);
                last = Some(key);
                self.bucket.push_back((key.to_vec(), stored.to_vec()));
                is_right
            });
            if !is_right {
                self.is_bucket_damaged = true;
                let what = "the bucket of keys that begin so is damaged";
                report.add(self.place.record_finding(head, what));
                return;
            }
        }
        if last.is_none() {
            report.add(self.place.record_finding(head, "a bucket of long keys is empty"));
        }
    }

    /// Counts a record and says what is wrong with it.
    fn check(&mut self, key: &[u8], stored: &[u8]) -> Result<(), String> {
        let record = record::decode(stored).map_err(|error| error.to_string());
        self.counted.records += 1;
        self.counted.key_bytes += key.len() as u64;
        let record = record?;
        self.counted.value_bytes += record.value.len() as u64;
        if record.version > self.place.sequence {
            let (found, last) = (record.version, self.place.sequence);
            return Err(format!("transaction {found} wrote it, but the base has only {last}"));
        }
        open::check_key(self.place.tree, key).map_err(|error| error.to_string())
    }

    /// Where everything could be read, the statistics must be right.
    fn check_statistics(&self, report: &mut CheckReport) {
        let Some(base) = self.place.base.filter(|_| !self.is_damaged()) else { return };
        if base.recorded != self.counted {
            report.add(Finding::Statistics {
                tree: self.place.label.to_owned(),
                recorded: base.recorded,
                counted: self.counted,
            });
        }
    }
}
