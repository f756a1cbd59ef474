//! The databases of a store: their names in memory, their trees and sizes in `meta`.

use std::{
    collections::HashMap,
    sync::{
        RwLock,
        atomic::{AtomicU64, Ordering},
    },
};

use crate::{DatabaseError, DatabaseId, ReadError, database, limits};

use super::{
    layout::{self, DatabaseEntry},
    lmdb::{Dbi, Step, Txn},
};

/// The names of the databases, registered by whoever asks for one.
#[derive(Default)]
pub(super) struct Names {
    state: RwLock<NamesState>,
}

#[derive(Default)]
struct NamesState {
    by_index: Vec<String>,
    by_name: HashMap<String, DatabaseId>,
}

impl Names {
    /// The names that `meta` holds, in the order of their indexes.
    pub(super) fn new(by_index: Vec<String>) -> Self {
        let by_name = by_index
            .iter()
            .enumerate()
            .map(|(index, name)| (name.clone(), DatabaseId::from_index(index)))
            .collect();
        Self { state: RwLock::new(NamesState { by_index, by_name }) }
    }

    pub(super) fn find(&self, name: &str) -> Option<DatabaseId> {
        self.read().by_name.get(name).copied()
    }

    pub(super) fn register(&self, name: &str) -> Result<DatabaseId, DatabaseError> {
        if let Some(id) = self.find(name) {
            return Ok(id);
        }
        database::check_name(name)?;
        let mut state = self.state.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(id) = state.by_name.get(name) {
            return Ok(*id);
        }
        if state.by_index.len() == limits::DATABASES_MAX {
            return Err(DatabaseError::TooMany);
        }
        let id = DatabaseId::from_index(state.by_index.len());
        state.by_index.push(name.to_owned());
        state.by_name.insert(name.to_owned(), id);
        Ok(id)
    }

    pub(super) fn all(&self) -> Vec<(DatabaseId, String)> {
        let state = self.read();
        let ids = (0..state.by_index.len()).map(DatabaseId::from_index);
        ids.zip(state.by_index.iter().cloned()).collect()
    }

    pub(super) fn name(&self, index: usize) -> String {
        self.read().by_index.get(index).cloned().unwrap_or_default()
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, NamesState> {
        // A panic under the lock cannot leave the two maps apart: see `register`.
        self.state.read().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// The trees of the environment that transactions may use, by number.
///
/// LMDB lets a transaction use only those named databases that were open when it began. The
/// *generation* tells readers cheaply whether anything changed: it is odd while a commit is under
/// way that gives some database another tree, and grows with each.
#[derive(Default)]
pub(super) struct Trees {
    open: RwLock<Vec<Dbi>>,
    generation: AtomicU64,
}

impl Trees {
    pub(super) fn new(open: Vec<Dbi>) -> Self {
        Self { open: RwLock::new(open), generation: AtomicU64::new(0) }
    }

    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Ordering::SeqCst)
    }

    /// To be called before and after a commit that changes which tree is whose.
    pub(super) fn turn_generation(&self) {
        self.generation.fetch_add(1, Ordering::SeqCst);
    }

    /// Makes known the trees that a commit has created; their numbers go on from the last.
    pub(super) fn extend(&self, created: &[Dbi]) {
        let mut open = self.open.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        open.extend_from_slice(created);
    }

    pub(super) fn all(&self) -> Vec<Dbi> {
        self.open.read().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }
}

/// Reads the entries of all databases, with their names, in the order of their indexes.
pub(super) fn read_entries(
    txn: &mut Txn,
    meta: Dbi,
) -> Result<Vec<(DatabaseEntry, String)>, ReadError> {
    let damaged = |what: &str| ReadError::Damaged { what: what.to_owned() };
    let mut entries = Vec::new();
    let mut found = txn.step(meta, Step::AtOrAfter(layout::DATABASE_PREFIX))?;
    while let Some((key, value)) = found {
        let Some(index) = layout::database_index(key) else { break };
        if index != entries.len() || index >= limits::DATABASES_MAX {
            return Err(damaged("the list of databases has a gap"));
        }
        let (entry, name) =
            DatabaseEntry::decode(value).ok_or_else(|| damaged("an entry of a database"))?;
        entries.push((entry, name.to_owned()));
        found = txn.step(meta, Step::Next)?;
    }
    Ok(entries)
}
