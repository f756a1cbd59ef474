//! Examines each tree, and whether the trees are consistent with each other.

use std::collections::{BTreeMap, HashSet};

use crate::{
    CollectionId, DatabaseId, DatabaseStatistics, Record, database, limits, record,
    tree::{
        base::{
            long_key,
            pages::{Finder, PageFile, PageSet},
        },
        catalog::{self, CATALOG_TREE, CatalogEntry, DATABASE_TREES, EXPIRY_TREE},
        expiry,
    },
};

use super::{
    base,
    records::{Parts, Tree},
    report::{CheckReport, DatabaseReport, Finding},
};

/// Gets the name of a database, the keyspace of the record, its key and the record.
pub(in crate::tree) type Visitor<'v> = dyn FnMut(&str, DatabaseId, &[u8], &Record<'_>) + 'v;

/// The check of a store, as far as it has got.
pub(super) struct Examination<'p> {
    pub(super) parts: &'p Parts,
    /// The pages that have been visited.
    pub(super) pages: PageSet,
    pub(super) report: CheckReport,
}

const CATALOG: &str = "the catalog";
const EXPIRY_INDEX: &str = "the expiry index";

impl Examination<'_> {
    pub(super) fn run(mut self, visitor: &mut Visitor<'_>) -> CheckReport {
        let (catalog, is_catalog_readable) = self.catalog();
        self.check_names(&catalog);
        let mut links = Links::new(self.parts);
        let expiry_entries = self.walk_expiry(&mut links);
        links.are_whole = is_catalog_readable && links.is_expiry_readable;
        // Elements are checked after all databases, when all collections are known.
        for entry in &catalog {
            links.are_whole &= self.keyspace(entry, &catalog, &mut links, visitor);
        }
        let are_all_readable = self.walk_others(&catalog, is_catalog_readable) && links.are_whole;
        let Self { parts, mut pages, mut report } = self;
        if links.is_expiry_readable {
            report.expiry_entries_stale = expiry_entries.saturating_sub(links.expiry_entries);
        }
        base::check_free_pages(&parts.file, &mut pages, !are_all_readable, &mut report);
        report
    }

    /// Walks over a tree, which findings call `label`. Returns whether all of it could be read.
    fn walk(
        &mut self,
        tree: u32,
        label: &str,
        live: impl FnMut(&mut CheckReport, &[u8], &[u8]),
    ) -> bool {
        let tree = Tree { parts: self.parts, number: tree, label };
        tree.walk(&mut self.pages, &mut self.report, live)
    }

    /// The entries of the catalog, and whether all of it could be read.
    fn catalog(&mut self) -> (Vec<CatalogEntry>, bool) {
        let mut entries = Vec::new();
        let is_readable = self.walk(CATALOG_TREE, CATALOG, |report, key, stored| {
            let value = record::decode(stored).map(|record| record.value).unwrap_or_default();
            match catalog::parse(key, value) {
                Some(entry) => entries.push(entry),
                None => report.add(Finding::record(CATALOG, key, "it is no entry of a catalog")),
            }
        });
        (entries, is_readable)
    }

    fn check_names(&mut self, catalog: &[CatalogEntry]) {
        let report = &mut self.report;
        let mut names = BTreeMap::new();
        let mut trees = BTreeMap::new();
        for CatalogEntry { database, tree, name } in catalog {
            let index = database.index();
            if database.is_elements() {
                if !names.values().any(|other| *other == index) {
                    report.add_directory(format!(
                        "there are elements of database {index}, which is not there"
                    ));
                }
            } else {
                let is_internal = name == database::INTERNAL_NAME;
                if !is_internal && database::check_database_name(name).is_err() {
                    report.add_directory(format!(
                        "database {index} has the impossible name {name:?}"
                    ));
                }
                if let Some(other) = names.insert(name, index) {
                    report.add_directory(format!(
                        "databases {other} and {index} are both called {name}"
                    ));
                }
            }
            if !DATABASE_TREES.contains(tree) {
                report
                    .add_directory(format!("database {name} has tree {tree}, which none can have"));
            }
            if let Some(other) = trees.insert(tree, name) {
                report.add_directory(format!("databases {other} and {name} have the same tree"));
            }
        }
    }

    /// Walks over the expiry index. Returns how many entries it has for records.
    fn walk_expiry(&mut self, links: &mut Links<'_>) -> u64 {
        let mut entries = 0;
        links.is_expiry_readable = self.walk(EXPIRY_TREE, EXPIRY_INDEX, |report, entry, _| {
            let Some((_, keyspace, key)) = expiry::parse(entry) else {
                let what = "it is no entry of an expiry index";
                return report.add(Finding::record(EXPIRY_INDEX, entry, what));
            };
            match expiry::collection(keyspace, key) {
                Some(dropped) => drop(links.collections.insert((keyspace, dropped))),
                None => entries += 1,
            }
        });
        entries
    }

    /// Walks over a keyspace. Returns whether all of it could be read.
    fn keyspace(
        &mut self,
        entry: &CatalogEntry,
        catalog: &[CatalogEntry],
        links: &mut Links<'_>,
        visitor: &mut Visitor<'_>,
    ) -> bool {
        let keyspace = entry.database;
        let is_same = |other: &&CatalogEntry| other.database.index() == keyspace.index();
        let name = &catalog.iter().find(is_same).unwrap_or(entry).name;
        let of = if keyspace.is_elements() { "elements of " } else { "" };
        let label = format!("{of}database {name}");
        let mut found = DatabaseReport { name: name.clone(), ..DatabaseReport::default() };
        let mut strays = 0;
        let is_readable = self.walk(entry.tree, &label, |report, key, stored| {
            let Ok(record) = record::decode(stored) else { return };
            visitor(name, keyspace, key, &record);
            found.statistics.add(DatabaseStatistics::of_record(key.len(), record.value.len()));
            if let Err(error) = keyspace.check_key(key, limits::KEY_LEN_MAX) {
                report.add(Finding::record(&label, key, error.to_string()));
            }
            if keyspace.is_elements() {
                strays += u64::from(!links.has_collection(keyspace, key));
            } else if !links.add_collection(keyspace, &record) {
                let what = "its collection is another's, or dropped";
                report.add(Finding::record(&label, key, what));
            }
            let Some(expires_at_ms) = record.expires_at_ms else { return };
            found.expiring += 1;
            if !links.has_expiry_entry(&expiry::key(expires_at_ms, keyspace, key)) {
                let (tree, key) = (label.clone(), key.to_vec());
                report.add(Finding::ExpiryEntry { tree, key, expires_at_ms });
            }
        });
        if strays > 0 && is_readable && links.are_whole {
            self.report.add_directory(format!("{strays} {label} belong to no record"));
        }
        let databases = &mut self.report.databases;
        match databases.iter_mut().find(|other| keyspace.is_elements() && other.name == *name) {
            Some(database) => database.elements = found.statistics,
            None => databases.push(found),
        }
        is_readable
    }

    /// Walks over the trees of the base that no database has any more. A database that was cleared
    /// after the checkpoint has left one; the log gives the database another tree then.
    fn walk_others(&mut self, catalog: &[CatalogEntry], is_catalog_readable: bool) -> bool {
        let is_cleared = self.parts.overlay.tree(CATALOG_TREE).next().is_some();
        let mut are_all_readable = true;
        for tree in self.parts.survey.trees.keys().copied() {
            if tree <= EXPIRY_TREE || catalog.iter().any(|entry| entry.tree == tree) {
                continue;
            }
            if is_catalog_readable && !is_cleared {
                self.report.add_directory(format!("tree {tree} belongs to no database"));
            }
            are_all_readable &= self.walk(tree, &format!("tree {tree}"), |_, _, _| {});
        }
        are_all_readable
    }
}

/// What trees say about the records of others.
struct Links<'p> {
    parts: &'p Parts,
    finder: Finder<&'p PageFile>,
    /// How many entries of the expiry index were looked up and found.
    expiry_entries: u64,
    is_expiry_readable: bool,
    /// The collections that may have elements: those of records, and those whose elements are to
    /// be removed.
    collections: HashSet<(DatabaseId, CollectionId)>,
    /// Whether all trees could be read so far.
    are_whole: bool,
}

impl<'p> Links<'p> {
    fn new(parts: &'p Parts) -> Self {
        Self {
            parts,
            finder: Finder::new(&parts.file),
            expiry_entries: 0,
            is_expiry_readable: false,
            collections: HashSet::new(),
            are_whole: false,
        }
    }

    /// Records the collection of a record; returns whether it was not known yet.
    fn add_collection(&mut self, database: DatabaseId, record: &Record<'_>) -> bool {
        let added = |collection| self.collections.insert((database.elements(), collection));
        record.collection.is_none_or(added)
    }

    /// Whether an element's collection is known, or the element is the database's own.
    fn has_collection(&self, elements: DatabaseId, key: &[u8]) -> bool {
        if DatabaseId::has_own_element(key) {
            return true;
        }
        let prefix = key.get(..CollectionId::LEN).unwrap_or_default();
        let collection = expiry::collection(elements, prefix);
        collection.is_some_and(|collection| self.collections.contains(&(elements, collection)))
    }

    /// Whether the expiry index in base, runs and log together has an entry, or cannot be read.
    fn has_expiry_entry(&mut self, entry: &[u8]) -> bool {
        let has = match self.parts.overlay.get(EXPIRY_TREE, entry) {
            _ if !self.is_expiry_readable => return true,
            Some(change) => change.is_some(),
            None => match self.parts.runs.find(EXPIRY_TREE, entry) {
                Ok(Some(change)) => change.is_some(),
                _ => self.base_has_expiry_entry(entry),
            },
        };
        self.expiry_entries += u64::from(has);
        has
    }

    fn base_has_expiry_entry(&self, entry: &[u8]) -> bool {
        let Some(tree) = self.parts.survey.trees.get(&EXPIRY_TREE) else { return false };
        // The whole tree has been walked over, so none of it is damaged.
        let found = self.finder.find(tree.root, long_key::tree_key(entry)).ok().flatten();
        found.is_some_and(|bytes| {
            !long_key::is_long(entry) || matches!(long_key::find(&bytes, entry), Ok(Some(_)))
        })
    }
}
