//! The base as a whole: its directory, where its trees are, and which pages nobody has.

use std::{collections::BTreeMap, path::Path};

use crate::{
    DatabaseStatistics,
    tree::base::{
        FORMAT_VERSION, PageDirectory, PageTree,
        format::{self, TreeEntry},
        pages::{Entry, PageDamage, PageFile, PageSet, Root, Walk},
    },
};

use super::report::{CheckReport, Finding};

/// A tree of the base.
#[derive(Clone, Copy, Default)]
pub(super) struct BaseTree {
    pub(super) root: Root,
    /// What the directory says that it holds.
    pub(super) recorded: DatabaseStatistics,
}

/// What is where in the base.
#[derive(Default)]
pub(super) struct BaseSurvey {
    has_version: bool,
    /// `None` if the directory does not say.
    pub(super) store: Option<u64>,
    pub(super) sequence: u64,
    pub(super) trees: BTreeMap<u32, BaseTree>,
}

impl BaseSurvey {
    /// The same without what only a check needs. `None` if it does not say which store's it is.
    pub(super) fn directory(&self, file: &PageFile) -> Option<PageDirectory> {
        let trees = self.trees.iter().map(|(tree, found)| {
            let root = Root::of(found.root.depth, found.root.page.unwrap_or(0))?;
            Some(PageTree { tree: *tree, root, statistics: found.recorded })
        });
        Some(PageDirectory {
            trees: trees.collect::<Option<_>>()?,
            store: self.store?,
            sequence: self.sequence,
            commit: file.commit(),
            meta_crc: file.meta_crc(),
        })
    }
}

/// The base is of a version that this program does not know.
pub(super) struct UnknownVersion(pub(super) u32);

/// The file of the base in the directory of a store.
pub(super) fn data_file(directory: &Path) -> std::path::PathBuf {
    directory.join(crate::tree::base::DATA_FILE)
}

/// Notes a damaged page, or one that could not be read.
pub(super) fn page_finding(damage: PageDamage, tree: &str) -> Finding {
    let PageDamage { page, what, is_unread } = damage;
    let tree = tree.to_owned();
    match is_unread {
        true => Finding::Unread { page, tree, what },
        false => Finding::Page { page, tree, what },
    }
}

/// Reads all entries of a small tree.
fn entries(
    file: &PageFile,
    root: Root,
    tree: &str,
    pages: &mut PageSet,
    report: &mut CheckReport,
) -> Vec<Entry> {
    let mut walk = Walk::new(file, root);
    let mut found = Vec::new();
    while let Some(entry) = walk.next(pages) {
        match entry {
            Ok(entry) => found.push(entry),
            Err(damage) => report.add(page_finding(damage, tree)),
        }
    }
    found
}

/// Reads the directory.
pub(super) fn survey(
    file: &PageFile,
    pages: &mut PageSet,
    report: &mut CheckReport,
) -> Result<BaseSurvey, UnknownVersion> {
    if let Some(damage) = file.damage() {
        report.add(page_finding(damage.clone(), "the head of the file"));
    }
    let mut roots = roots(file, pages, report);
    let mut survey = BaseSurvey::default();
    let Some(directory) = roots.remove(format::BASE) else {
        directory_finding(report, "it has no directory, so it is not a store's or it is damaged");
        return Ok(survey);
    };
    let mut slots = BTreeMap::new();
    for entry in entries(file, directory, "the directory", pages, report) {
        directory_entry(&entry, &mut survey, &mut slots, report)?;
    }
    if !survey.has_version {
        directory_finding(report, "its directory does not say which version it has");
    }
    if survey.store.is_none() {
        directory_finding(report, "its directory does not say which store it belongs to");
    }
    let mut owners: BTreeMap<u32, u32> = BTreeMap::new();
    for (tree, entry) in slots {
        if let Some(other) = owners.insert(entry.slot, tree) {
            directory_finding(report, &format!("trees {other} and {tree} have the same place"));
        }
        match roots.get(&format::slot_name(entry.slot as usize)) {
            Some(root) => {
                let base_tree = BaseTree { root: *root, recorded: entry.statistics };
                survey.trees.insert(tree, base_tree);
            }
            None => directory_finding(report, &format!("tree {tree} is nowhere")),
        }
    }
    let is_owned = |name: &str| owners.keys().any(|slot| format::slot_name(*slot as usize) == name);
    for (name, root) in &roots {
        if root.page.is_some() && !is_owned(name) {
            let what = format!("the records in {name} belong to no tree");
            directory_finding(report, &what);
        }
    }
    Ok(survey)
}

fn directory_finding(report: &mut CheckReport, what: &str) {
    report.add(Finding::Directory { what: what.to_owned() });
}

/// The roots of the named trees of LMDB.
fn roots(file: &PageFile, pages: &mut PageSet, report: &mut CheckReport) -> BTreeMap<String, Root> {
    let mut roots = BTreeMap::new();
    for entry in entries(file, file.main(), "the names of trees", pages, report) {
        let name = String::from_utf8_lossy(&entry.key).into_owned();
        let root = entry.is_root.then(|| Root::decode(&entry.value)).flatten();
        match root {
            Some(root) => drop(roots.insert(name, root)),
            None => directory_finding(report, &format!("the name {name:?} leads nowhere")),
        }
    }
    roots
}

fn directory_entry(
    entry: &Entry,
    survey: &mut BaseSurvey,
    slots: &mut BTreeMap<u32, TreeEntry>,
    report: &mut CheckReport,
) -> Result<(), UnknownVersion> {
    let number = entry.value.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
    let number = number.filter(|_| entry.value.len() == 8);
    match &entry.key[..] {
        format::FORMAT_KEY => {
            match entry.value[..].try_into().map(u32::from_le_bytes) {
                Ok(FORMAT_VERSION) => survey.has_version = true,
                Ok(version) => return Err(UnknownVersion(version)),
                Err(_) => {}
            }
            return Ok(());
        }
        format::STORE_KEY if number.is_some() => survey.store = number,
        format::SEQUENCE_KEY if number.is_some() => survey.sequence = number.unwrap_or(0),
        key => match (format::parse_tree_key(key), TreeEntry::decode(&entry.value)) {
            (Some(tree), Some(entry)) if tree != format::NO_TREE => {
                slots.insert(tree, entry);
            }
            _ => {
                let what = format!("its directory has a damaged entry \"{}\"", key.escape_ascii());
                directory_finding(report, &what);
            }
        },
    }
    Ok(())
}

/// Compares the pages that trees have with those that are free. To be called once all trees have
/// been walked over.
pub(super) fn check_free_pages(
    file: &PageFile,
    pages: &mut PageSet,
    is_any_damaged: bool,
    report: &mut CheckReport,
) {
    const TREE: &str = "the list of free pages";
    let listed = entries(file, file.free(), TREE, pages, report);
    let used = pages.count();
    let mut twice = 0;
    let mut damaged = 0;
    for entry in &listed {
        let mut numbers = entry.value.as_chunks::<8>().0.iter().map(|n| u64::from_le_bytes(*n));
        let count = numbers.next().unwrap_or(0);
        damaged += usize::from(numbers.len() as u64 != count);
        for page in numbers {
            match file.has_page(page) {
                true => twice += usize::from(!pages.insert(page)),
                false => damaged += 1,
            }
        }
    }
    // LMDB counts the two pages at the head of the file among all.
    let all = file.pages().saturating_sub(2);
    let missing = all.saturating_sub(pages.count());
    report.base.pages = used + 2;
    report.base.pages_free = pages.count() - used;
    report.base.page_len = file.page_len() as u64;
    if damaged > 0 {
        let what = format!("{TREE} has {damaged} damaged entries");
        report.add(Finding::Pages { what });
    }
    if twice > 0 {
        let what = format!("{twice} pages are in use and free at the same time");
        report.add(Finding::Pages { what });
    }
    // Below a page that cannot be read there are others, of which nothing is known.
    if missing > 0 && !is_any_damaged {
        let what = format!("{missing} pages are neither in use nor free");
        report.add(Finding::Pages { what });
    }
}
