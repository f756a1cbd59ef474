//! The databases: their names in memory, and which tree each has in a tree of its own.
//!
//! A database's records stand in a *tree*, a numbered space of keys. Clearing a database gives it
//! a new tree, which takes no time and is rolled back like any other write, since the catalog is
//! itself records in a tree. A number is not used again as long as anything is left of its tree.

use std::{
    collections::{BTreeMap, HashMap},
    ops::{Bound, Range},
    sync::{PoisonError, RwLock, RwLockReadGuard},
};

use crate::{DatabaseError, DatabaseId, Direction, ReadError, database, limits, record};

use super::{base::format::NO_TREE, view::View};

/// The tree that holds the catalog: index of the database, u16 big-endian → tree u32, name.
pub(super) const CATALOG_TREE: u32 = 0;

/// The tree that holds the expiry index, see `expiry`.
pub(super) const EXPIRY_TREE: u32 = 1;

/// The first tree that a database can have.
pub(super) const FIRST_TREE: u32 = 2;

/// The trees that a database can have.
pub(super) const DATABASE_TREES: Range<u32> = FIRST_TREE..NO_TREE;

pub(super) fn catalog_key(index: usize) -> [u8; 2] {
    (index as u16).to_be_bytes()
}

pub(super) fn catalog_value(tree: u32, name: &str) -> Vec<u8> {
    [&tree.to_le_bytes(), name.as_bytes()].concat()
}

/// What the catalog says of one database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CatalogEntry {
    pub(super) index: usize,
    pub(super) tree: u32,
    pub(super) name: String,
}

/// All entries, in the order of their indexes.
pub(super) fn read_catalog(view: &View) -> Result<Vec<CatalogEntry>, ReadError> {
    let damaged = || ReadError::Damaged { what: "the catalog".to_owned() };
    let entry = |key: &[u8], stored: &[u8]| {
        let entry = parse(key, record::decode(stored)?.value);
        entry.filter(|entry| DATABASE_TREES.contains(&entry.tree)).ok_or_else(damaged)
    };
    let mut entries = BTreeMap::new();
    let mut from = Bound::Unbounded;
    while let Some((key, stored)) = view.base.seek(CATALOG_TREE, from, Direction::Forward)? {
        let entry = entry(key, stored)?;
        entries.insert(entry.index, entry);
        from = Bound::Excluded(key);
    }
    // A scan would have the whole memtable put into order first, which costs more than all else
    // that opening a store with a short log does. So its keys, of which few are possible, are
    // looked up.
    if view.tables.each().any(|table| table.len() > 0) {
        for index in 0..limits::DATABASES_MAX {
            let key = catalog_key(index);
            match view.find_written(CATALOG_TREE, &key) {
                None => {}
                Some(Some(stored)) => drop(entries.insert(index, entry(&key, stored)?)),
                Some(None) => drop(entries.remove(&index)),
            }
        }
    }
    Ok(entries.into_values().collect())
}

fn parse_key(key: &[u8]) -> Option<usize> {
    Some(u16::from_be_bytes(key.try_into().ok()?) as usize)
}

/// Reads an entry.
pub(super) fn parse(key: &[u8], value: &[u8]) -> Option<CatalogEntry> {
    let (tree, name) = value.split_first_chunk::<4>()?;
    entry(parse_key(key)?, u32::from_le_bytes(*tree), name)
}

/// An entry, if there can be one like that.
pub(super) fn entry(index: usize, tree: u32, name: &[u8]) -> Option<CatalogEntry> {
    let name = std::str::from_utf8(name).ok()?.to_owned();
    (index < limits::DATABASES_MAX).then_some(CatalogEntry { index, tree, name })
}

/// Which tree each database has, by index.
#[derive(Clone, Debug, Default)]
pub(super) struct TreeMap {
    trees: Vec<Option<u32>>,
}

impl TreeMap {
    pub(super) fn read(view: &View) -> Result<Self, ReadError> {
        Ok(Self::of(&read_catalog(view)?))
    }

    pub(super) fn of(entries: &[CatalogEntry]) -> Self {
        let mut map = Self::default();
        for entry in entries {
            map.set(entry.index, entry.tree);
        }
        map
    }

    #[inline]
    pub(super) fn get(&self, database: DatabaseId) -> Option<u32> {
        self.trees.get(database.index()).copied().flatten()
    }

    pub(super) fn set(&mut self, index: usize, tree: u32) {
        if self.trees.len() <= index {
            self.trees.resize(index + 1, None);
        }
        self.trees[index] = Some(tree);
    }

    /// Whether anybody has the tree.
    pub(super) fn has(&self, tree: u32) -> bool {
        tree < FIRST_TREE || self.trees.contains(&Some(tree))
    }
}

/// The names of the databases, registered by whoever asks for one.
#[derive(Default)]
pub(super) struct Names {
    state: RwLock<NamesState>,
}

#[derive(Default)]
struct NamesState {
    /// `None` where the catalog has a gap: names are registered in one order and written in another.
    by_index: Vec<Option<String>>,
    by_name: HashMap<String, DatabaseId, foldhash::fast::RandomState>,
}

impl Names {
    pub(super) fn new(entries: &[CatalogEntry]) -> Self {
        let mut state = NamesState::default();
        for entry in entries {
            if state.by_index.len() <= entry.index {
                state.by_index.resize(entry.index + 1, None);
            }
            state.by_index[entry.index] = Some(entry.name.clone());
            state.by_name.insert(entry.name.clone(), DatabaseId::from_index(entry.index));
        }
        Self { state: RwLock::new(state) }
    }

    pub(super) fn find(&self, name: &str) -> Option<DatabaseId> {
        self.read().by_name.get(name).copied()
    }

    pub(super) fn register(&self, name: &str) -> Result<DatabaseId, DatabaseError> {
        if let Some(id) = self.find(name) {
            return Ok(id);
        }
        database::check_database_name(name)?;
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(id) = state.by_name.get(name) {
            return Ok(*id);
        }
        let gap = state.by_index.iter().position(Option::is_none);
        let index = gap.unwrap_or(state.by_index.len());
        if index == limits::DATABASES_MAX {
            return Err(DatabaseError::TooMany);
        }
        if gap.is_none() {
            state.by_index.push(None);
        }
        state.by_index[index] = Some(name.to_owned());
        let id = DatabaseId::from_index(index);
        state.by_name.insert(name.to_owned(), id);
        Ok(id)
    }

    pub(super) fn all(&self) -> Vec<(DatabaseId, String)> {
        let state = self.read();
        let named = state.by_index.iter().enumerate();
        named
            .filter_map(|(index, name)| Some((DatabaseId::from_index(index), name.clone()?)))
            .collect()
    }

    pub(super) fn name(&self, index: usize) -> String {
        self.read().by_index.get(index).cloned().flatten().unwrap_or_default()
    }

    fn read(&self) -> RwLockReadGuard<'_, NamesState> {
        // A panic under the lock cannot leave the two maps apart: see `register`.
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }
}
