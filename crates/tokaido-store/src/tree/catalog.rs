//! The catalog: which trees each database has. It is a tree itself.
//!
//! A database's records are in a *tree*, a numbered space of keys, and the elements of its
//! collections in a second one, if there are any. Clearing a database gives it a new tree, which
//! takes no time and is rolled back like any other write, since the catalog itself consists of
//! records in a tree. Dropping a database removes its entry. A number is not reused as long as
//! anything is left of its tree.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ops::{Bound, Range},
};

use crate::{DatabaseId, Direction, ReadError, record};

use super::{base::format::NO_TREE, view::View};

/// The tree that holds the catalog: number of a keyspace, u16 big-endian → tree u32, name. A
/// keyspace of elements has no name.
pub(super) const CATALOG_TREE: u32 = 0;

/// The tree that holds the expiry index, see `expiry`.
pub(super) const EXPIRY_TREE: u32 = 1;

/// The first tree number that a database can have.
pub(super) const FIRST_TREE: u32 = 2;

/// The tree numbers that a database can have.
pub(super) const DATABASE_TREES: Range<u32> = FIRST_TREE..NO_TREE;

pub(super) fn catalog_key(database: DatabaseId) -> [u8; 2] {
    database.to_stored().to_be_bytes()
}

pub(super) fn catalog_value(tree: u32, name: &str) -> Vec<u8> {
    [&tree.to_le_bytes(), name.as_bytes()].concat()
}

/// The catalog's entry of one keyspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CatalogEntry {
    pub(super) database: DatabaseId,
    pub(super) tree: u32,
    pub(super) name: String,
}

/// All entries, in the order of their numbers: first the databases, then those that have elements.
/// `written` has the numbers of the entries that may be in the memtable: scanning the memtable
/// would sort all of it first, which costs more than everything else in opening a store with a
/// short log.
pub(super) fn read_catalog(
    view: &View,
    written: &BTreeSet<DatabaseId>,
) -> Result<Vec<CatalogEntry>, ReadError> {
    let mut entries = BTreeMap::new();
    let all = Bound::Unbounded;
    let mut scan = view.disk().scan(CATALOG_TREE, all, all, Direction::Forward)?;
    let mut found = scan.entry();
    while let Some((key, stored)) = found {
        let entry = decode(key, stored)?;
        entries.insert(entry.database, entry);
        found = scan.next(key)?;
    }
    for database in written {
        let key = catalog_key(*database);
        match view.find_written(CATALOG_TREE, &key) {
            None => {}
            Some(Some(stored)) => drop(entries.insert(*database, decode(&key, stored)?)),
            Some(None) => drop(entries.remove(database)),
        }
    }
    Ok(entries.into_values().collect())
}

/// The keyspace that an entry's key stands for.
pub(super) fn parse_key(key: &[u8]) -> Option<DatabaseId> {
    DatabaseId::from_stored(u16::from_be_bytes(key.try_into().ok()?))
}

/// Reads an entry of a keyspace that can be opened.
pub(super) fn decode(key: &[u8], stored: &[u8]) -> Result<CatalogEntry, ReadError> {
    let entry = parse(key, record::decode(stored)?.value);
    let entry = entry.filter(|entry| DATABASE_TREES.contains(&entry.tree));
    entry.ok_or_else(|| ReadError::damaged("the catalog"))
}

/// Reads an entry, whatever tree number it has.
pub(super) fn parse(key: &[u8], value: &[u8]) -> Option<CatalogEntry> {
    let (tree, name) = value.split_first_chunk::<4>()?;
    let database = parse_key(key)?;
    let name = std::str::from_utf8(name).ok()?.to_owned();
    Some(CatalogEntry { database, tree: u32::from_le_bytes(*tree), name })
}

/// The keyspaces by their trees.
pub(super) type Keyspaces = HashMap<u32, DatabaseId, foldhash::fast::RandomState>;

/// The tree of each keyspace.
#[derive(Clone, Debug, Default)]
pub(super) struct TreeMap {
    /// Two for each database: that of its records and that of its elements.
    trees: Vec<Option<u32>>,
}

impl TreeMap {
    pub(super) fn of(entries: &[CatalogEntry]) -> Self {
        let mut map = Self::default();
        for entry in entries {
            map.set(entry.database, Some(entry.tree));
        }
        map
    }

    #[inline]
    fn place(database: DatabaseId) -> usize {
        2 * database.index() + usize::from(database.is_elements())
    }

    #[inline]
    pub(super) fn get(&self, database: DatabaseId) -> Option<u32> {
        self.trees.get(Self::place(database)).copied().flatten()
    }

    pub(super) fn set(&mut self, database: DatabaseId, tree: Option<u32>) {
        let place = Self::place(database);
        if self.trees.len() <= place {
            self.trees.resize(place + 1, None);
        }
        self.trees[place] = tree;
    }

    /// Whether the records of a database may have elements.
    #[inline]
    pub(super) fn has_elements(&self, database: DatabaseId) -> bool {
        !database.is_elements() && self.get(database.elements()).is_some()
    }

    /// The keyspaces by their trees.
    pub(super) fn keyspaces(&self) -> Keyspaces {
        let places = self.trees.iter().enumerate();
        let keyspace = |(place, tree): (usize, &Option<u32>)| {
            let database = DatabaseId::from_index(place / 2);
            let is_records = place.is_multiple_of(2);
            Some(((*tree)?, if is_records { database } else { database.elements() }))
        };
        places.filter_map(keyspace).collect()
    }
}
