//! The base as a whole: its directory, where its trees are, and which pages nobody owns.

use std::collections::BTreeMap;

use crate::{
    DatabaseStatistics,
    tree::{
        base::{
            Total,
            format::{self, TreeEntry},
            pages::{Entry, PageDamage, PageFile, PageSet, Root, walk},
        },
        runs::RunList,
    },
};

use super::report::{CheckReport, Finding};

/// A tree of the base.
pub(super) struct BaseTree {
    pub(super) root: Root,
    /// What the directory records about its contents.
    pub(super) recorded: DatabaseStatistics,
}

/// The layout of the base.
#[derive(Default)]
pub(super) struct BaseSurvey {
    /// The version of its format. If this program does not know it, the rest is meaningless.
    pub(super) version: Option<u32>,
    /// `None` if the directory does not say.
    pub(super) store: Option<u64>,
    pub(super) sequence: u64,
    pub(super) trees: BTreeMap<u32, BaseTree>,
    pub(super) runs: RunList,
    /// The totals of base and runs together, if there are runs.
    pub(super) totals: BTreeMap<u32, Total>,
}

/// Reports a damaged page, or one that could not be read.
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
    let mut found = Vec::new();
    walk(file, root, pages, &mut |entry| match entry {
        Ok(entry) => found.push(entry),
        Err(damage) => report.add(page_finding(damage, tree)),
    });
    found
}

/// Reads the directory.
pub(super) fn survey(file: &PageFile, pages: &mut PageSet, report: &mut CheckReport) -> BaseSurvey {
    if let Some(damage) = file.damage() {
        report.add(page_finding(damage.clone(), "the head of the file"));
    }
    let mut survey = BaseSurvey::default();
    let mut roots = roots(file, pages, report);
    let Some(directory) = roots.remove(format::BASE) else {
        report.add_directory("it has no directory, so it is not a store's or it is damaged");
        return survey;
    };
    for Entry { key, value, .. } in entries(file, directory.root, "the directory", pages, report) {
        let number = value[..].try_into().ok().map(u64::from_le_bytes);
        match (&key[..], number) {
            (format::FORMAT_KEY, _) => {
                survey.version = value[..].try_into().ok().map(u32::from_le_bytes);
            }
            (format::STORE_KEY, Some(_)) => survey.store = number,
            (format::LOG_KEY, Some(_)) => {}
            (format::SEQUENCE_KEY, Some(number)) => survey.sequence = number,
            (format::RUNS_KEY, _) => match RunList::decode(&value) {
                Some(runs) => survey.runs = runs,
                None => report.add_directory("its list of runs is damaged"),
            },
            (key, _) if format::parse_total_key(key).is_some() => {
                let (tree, total) = (format::parse_total_key(key), Total::decode(&value));
                match tree.zip(total) {
                    Some((tree, total)) => drop(survey.totals.insert(tree, total)),
                    None => report.add_directory("one of its totals is damaged"),
                }
            }
            _ => match (format::parse_tree_key(&key), TreeEntry::decode(&value)) {
                (Some(tree), Some(entry)) if tree != format::NO_TREE => {
                    survey.add_tree(tree, entry, &mut roots, report);
                }
                _ => {
                    let key = key.escape_ascii();
                    report.add_directory(format!("its directory has a damaged entry \"{key}\""));
                }
            },
        }
    }
    if survey.version.is_none() {
        report.add_directory("its directory does not say which version it has");
    }
    if survey.store.is_none() {
        report.add_directory("its directory does not say which store it belongs to");
    }
    for (name, NamedRoot { root, owner }) in &roots {
        if root.page.is_some() && owner.is_none() {
            report.add_directory(format!("the records in {name} belong to no tree"));
        }
    }
    survey
}

/// A named LMDB tree.
struct NamedRoot {
    root: Root,
    /// The tree whose entry refers to it.
    owner: Option<u32>,
}

impl BaseSurvey {
    fn add_tree(
        &mut self,
        tree: u32,
        entry: TreeEntry,
        roots: &mut BTreeMap<String, NamedRoot>,
        report: &mut CheckReport,
    ) {
        let Some(named) = roots.get_mut(&format::slot_name(entry.slot as usize)) else {
            return report.add_directory(format!("tree {tree} is nowhere"));
        };
        if let Some(other) = named.owner.replace(tree) {
            report.add_directory(format!("trees {other} and {tree} have the same place"));
        }
        self.trees.insert(tree, BaseTree { root: named.root, recorded: entry.statistics });
    }
}

/// The named trees of LMDB.
fn roots(
    file: &PageFile,
    pages: &mut PageSet,
    report: &mut CheckReport,
) -> BTreeMap<String, NamedRoot> {
    let mut roots = BTreeMap::new();
    for entry in entries(file, file.main(), "the names of trees", pages, report) {
        let name = String::from_utf8_lossy(&entry.key).into_owned();
        match Root::decode(&entry.value).filter(|_| entry.is_root) {
            Some(root) => drop(roots.insert(name, NamedRoot { root, owner: None })),
            None => report.add_directory(format!("the name {name:?} leads nowhere")),
        }
    }
    roots
}

/// Compares the pages of trees with those that are free. Must be called after all trees have
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
    // LMDB includes the two pages at the head of the file in the total.
    let all = file.pages().saturating_sub(2);
    let missing = all.saturating_sub(pages.count());
    report.base.pages = used + 2;
    report.base.pages_free = pages.count() - used;
    report.base.page_len = file.page_len() as u64;
    let findings = [
        (damaged > 0, format!("{TREE} has {damaged} damaged entries")),
        (twice > 0, format!("{twice} pages are in use and free at the same time")),
        // An unreadable page hides those below it.
        (missing > 0 && !is_any_damaged, format!("{missing} pages are neither in use nor free")),
    ];
    for (is_wrong, what) in findings {
        if is_wrong {
            report.add(Finding::Pages { what });
        }
    }
}
