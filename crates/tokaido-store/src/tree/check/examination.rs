//! What is looked at, tree by tree, and what the trees must say of each other.

use std::collections::BTreeMap;

use crate::{
    DatabaseId, database, record,
    tree::{
        base::{
            long_key,
            pages::{Finder, Found, PageFile, PageSet},
        },
        catalog::{self, CATALOG_TREE, CatalogEntry, DATABASE_TREES, EXPIRY_TREE},
        expiry,
    },
};

use super::{
    base::{self, BaseSurvey},
    overlay::Overlay,
    records::Place,
    report::{CheckReport, DatabaseReport, Finding},
    seal::{self, Sealed},
};

/// Gets the name of a database, a key and its stored record.
pub(in crate::tree) type Visitor<'v> = dyn FnMut(&str, &[u8], &[u8]) + 'v;

/// What a store consists of.
pub(super) struct Parts {
    pub(super) file: PageFile,
    pub(super) survey: BaseSurvey,
    pub(super) overlay: Overlay,
    /// The seal, if an opening would believe it.
    pub(super) seal: Option<Sealed>,
}

impl Parts {
    fn place<'a>(&'a self, tree: u32, label: &'a str) -> Place<'a> {
        Place {
            file: &self.file,
            overlay: &self.overlay,
            sequence: self.survey.sequence,
            base: self.survey.trees.get(&tree).copied(),
            tree,
            label,
        }
    }
}

/// The check of a store, as far as it has come.
pub(super) struct Examination<'p> {
    pub(super) parts: &'p Parts,
    /// The pages that have been stepped on.
    pub(super) pages: PageSet,
    pub(super) report: CheckReport,
}

const CATALOG: &str = "the catalog";
const EXPIRY_INDEX: &str = "the expiry index";

impl Examination<'_> {
    pub(super) fn run(&mut self, visitor: &mut Visitor<'_>) {
        let (catalog, is_catalog_readable) = self.catalog();
        self.check_names(&catalog);
        let databases = is_catalog_readable.then_some(&catalog[..]);
        seal::check(self.parts, databases, &mut self.report);
        let (expiry_entries, is_expiry_readable) = self.walk_expiry();
        let mut are_all_readable = is_catalog_readable && is_expiry_readable;
        let mut expiry = is_expiry_readable.then(|| ExpiryIndex::new(self.parts));
        for entry in &catalog {
            are_all_readable &= self.database(entry, expiry.as_mut(), visitor);
        }
        are_all_readable &= self.walk_others(&catalog, is_catalog_readable);
        if let Some(expiry) = expiry {
            self.report.expiry_entries_stale = expiry_entries.saturating_sub(expiry.found);
        }
        let Self { parts, pages, report } = self;
        base::check_free_pages(&parts.file, pages, !are_all_readable, report);
    }

    fn add(&mut self, what: String) {
        self.report.add(Finding::Directory { what });
    }

    /// The entries of the catalog, and whether all of it could be read.
    fn catalog(&mut self) -> (Vec<CatalogEntry>, bool) {
        let mut entries = Vec::new();
        let place = self.parts.place(CATALOG_TREE, CATALOG);
        let is_readable = place.walk(&mut self.pages, &mut self.report, |report, key, stored| {
            let value = record::decode(stored).map(|record| record.value).unwrap_or_default();
            match catalog::parse(key, value) {
                Some(entry) => entries.push(entry),
                None => report.add(place.record_finding(key, "it is no entry of a catalog")),
            }
        });
        (entries, is_readable)
    }

    fn check_names(&mut self, catalog: &[CatalogEntry]) {
        let mut names = BTreeMap::new();
        let mut trees = BTreeMap::new();
        for CatalogEntry { index, tree, name } in catalog {
            if database::check_database_name(name).is_err() {
                self.add(format!("database {index} has the impossible name {name:?}"));
            }
            if !DATABASE_TREES.contains(tree) {
                self.add(format!("database {name} has tree {tree}, which none can have"));
            }
            if let Some(other) = names.insert(name, index) {
                self.add(format!("databases {other} and {index} are both called {name}"));
            }
            if let Some(other) = trees.insert(tree, name) {
                self.add(format!("databases {other} and {name} have the same tree"));
            }
        }
    }

    /// Walks over the expiry index. Gives how many entries it has, and whether all could be read.
    fn walk_expiry(&mut self) -> (u64, bool) {
        let mut entries = 0;
        let place = self.parts.place(EXPIRY_TREE, EXPIRY_INDEX);
        let is_readable = place.walk(&mut self.pages, &mut self.report, |report, key, _| {
            entries += 1;
            if expiry::parse(key).is_none() {
                report.add(place.record_finding(key, "it is no entry of an expiry index"));
            }
        });
        (entries, is_readable)
    }

    /// Walks over a database. Tells whether all of it could be read.
    fn database(
        &mut self,
        entry: &CatalogEntry,
        mut expiry: Option<&mut ExpiryIndex<'_>>,
        visitor: &mut Visitor<'_>,
    ) -> bool {
        let database = DatabaseId::from_index(entry.index);
        let name = &entry.name;
        let label = format!("database {name}");
        let mut found = DatabaseReport { name: name.clone(), ..DatabaseReport::default() };
        let place = self.parts.place(entry.tree, &label);
        let is_readable = place.walk(&mut self.pages, &mut self.report, |report, key, stored| {
            let Ok(record) = record::decode(stored) else { return };
            visitor(name, key, stored);
            found.statistics.records += 1;
            found.statistics.key_bytes += key.len() as u64;
            found.statistics.value_bytes += record.value.len() as u64;
            let Some(expires_at_ms) = record.expires_at_ms else { return };
            found.expiring += 1;
            let Some(expiry) = &mut expiry else { return };
            if !expiry.has(&expiry::key(expires_at_ms, database, key)) {
                let (tree, key) = (label.clone(), key.to_vec());
                report.add(Finding::ExpiryEntry { tree, key, expires_at_ms });
            }
        });
        self.report.databases.push(found);
        is_readable
    }

    /// Walks over the trees of the base that no database has any more. A database that was cleared
    /// after the checkpoint has left one; then the log gives the database another tree.
    fn walk_others(&mut self, catalog: &[CatalogEntry], is_catalog_readable: bool) -> bool {
        let is_cleared = self.parts.overlay.tree(CATALOG_TREE).next().is_some();
        let mut are_all_readable = true;
        for tree in self.parts.survey.trees.keys().copied() {
            if tree <= EXPIRY_TREE || catalog.iter().any(|entry| entry.tree == tree) {
                continue;
            }
            if is_catalog_readable && !is_cleared {
                self.add(format!("tree {tree} belongs to no database"));
            }
            let label = format!("tree {tree}");
            let place = self.parts.place(tree, &label);
            are_all_readable &= place.walk(&mut self.pages, &mut self.report, |_, _, _| {});
        }
        are_all_readable
    }
}

/// Looks into the expiry index, of base and log together.
struct ExpiryIndex<'p> {
    parts: &'p Parts,
    finder: Finder<&'p PageFile>,
    /// How many entries were asked for and are there.
    found: u64,
}

impl<'p> ExpiryIndex<'p> {
    fn new(parts: &'p Parts) -> Self {
        Self { parts, finder: Finder::new(&parts.file), found: 0 }
    }

    fn has(&mut self, entry: &[u8]) -> bool {
        let has = match self.parts.overlay.get(EXPIRY_TREE, entry) {
            Some(change) => change.is_some(),
            None => self.base_has(entry),
        };
        self.found += u64::from(has);
        has
    }

    fn base_has(&self, entry: &[u8]) -> bool {
        let Some(tree) = self.parts.survey.trees.get(&EXPIRY_TREE) else { return false };
        // The whole tree has been walked over, so nothing of it is damaged.
        match self.finder.find(tree.root, long_key::tree_key(entry), usize::MAX) {
            Ok(Some(Found::Value(bytes))) if long_key::is_long(entry) => {
                matches!(long_key::find(&bytes, entry), Ok(Some(_)))
            }
            Ok(found) => found.is_some(),
            Err(_) => false,
        }
    }
}
