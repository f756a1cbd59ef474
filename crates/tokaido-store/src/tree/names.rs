//! The names of the databases and their numbers.
//!
//! Looking a name up changes nothing. A name exists once its database has been written to; a
//! transaction *claims* a name until it ends, and a caller that wants an id before the first write
//! *holds* one as long as the store is open.

use std::{
    collections::HashMap,
    sync::{
        PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
        atomic::{AtomicU64, Ordering},
    },
};

use crate::{
    DatabaseError, DatabaseId,
    database::{self, INTERNAL_NAME},
};

use super::catalog::CatalogEntry;

#[derive(Default)]
pub(super) struct Names {
    state: RwLock<State>,
    /// How many databases have been dropped.
    dropped: AtomicU64,
}

#[derive(Default)]
struct State {
    by_number: Vec<Option<Named>>,
    by_name: HashMap<String, DatabaseId, foldhash::fast::RandomState>,
    /// Where the search for a free number continues. Numbers are reused as late as possible, so
    /// that an id that was kept after its database was dropped does not mean another one.
    next: usize,
}

struct Named {
    name: String,
    is_held: bool,
    /// Whether the catalog has it, as snapshots see it.
    is_written: bool,
}

impl Names {
    pub(super) fn new(entries: &[CatalogEntry]) -> Self {
        let mut state = State::default();
        for entry in entries.iter().filter(|entry| !entry.database.is_elements()) {
            state.set(entry.database.index(), &entry.name).is_written = true;
        }
        Self { state: RwLock::new(state), dropped: AtomicU64::new(0) }
    }

    /// The database with that name, if it was written to or is held.
    pub(super) fn find(&self, name: &str) -> Option<DatabaseId> {
        if name == INTERNAL_NAME {
            return None;
        }
        let state = self.read();
        let id = *state.by_name.get(name)?;
        state.by_number[id.index()].as_ref().filter(|named| named.is_there()).map(|_| id)
    }

    /// Holds a name from now on.
    pub(super) fn hold(&self, name: &str, max: usize) -> Result<DatabaseId, DatabaseError> {
        database::check_database_name(name)?;
        self.write().hold(name, max)
    }

    /// Like [`hold`](Self::hold), for the internal database, which does not count towards the maximum.
    pub(super) fn hold_internal(&self) -> Result<DatabaseId, DatabaseError> {
        self.write().hold(INTERNAL_NAME, usize::MAX)
    }

    /// The internal database, if there is one.
    pub(super) fn internal(&self) -> Option<DatabaseId> {
        self.read().by_name.get(INTERNAL_NAME).copied()
    }

    /// Gives the name a number if it has none. Returns whether it had none; then the claim lasts
    /// until [`give_back`](Self::give_back), or for good after [`set_written`](Self::set_written).
    pub(super) fn claim(
        &self,
        name: &str,
        max: usize,
    ) -> Result<(DatabaseId, bool), DatabaseError> {
        if let Some(id) = self.find(name) {
            return Ok((id, false));
        }
        database::check_database_name(name)?;
        self.write().find_or_add(name, max)
    }

    /// Records that snapshots see the database.
    pub(super) fn set_written(&self, id: DatabaseId) {
        if let Some(Some(named)) = self.write().by_number.get_mut(id.index()) {
            named.is_written = true;
        }
    }

    /// Ends a claim that came to nothing. If nobody else has written to the database or holds its
    /// name, the number becomes free.
    pub(super) fn give_back(&self, id: DatabaseId) {
        self.write().remove_unless_there(id);
    }

    /// Records that snapshots no longer see the database. Unless somebody holds its name, the
    /// number becomes free.
    pub(super) fn forget(&self, id: DatabaseId) {
        let mut state = self.write();
        let Some(Some(named)) = state.by_number.get_mut(id.index()) else { return };
        if std::mem::take(&mut named.is_written) {
            self.dropped.fetch_add(1, Ordering::SeqCst);
        }
        state.remove_unless_there(id);
    }

    /// How many databases have been dropped since the store was opened.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::SeqCst)
    }

    pub(super) fn all(&self) -> Vec<(DatabaseId, String)> {
        let state = self.read();
        let named = state.by_number.iter().enumerate().filter_map(|(number, named)| {
            let named = named.as_ref().filter(|named| named.is_there())?;
            if named.name == INTERNAL_NAME {
                return None;
            }
            Some((DatabaseId::from_index(number), named.name.clone()))
        });
        named.collect()
    }

    /// The name of a database; `None` if it was dropped.
    pub(super) fn name(&self, id: DatabaseId) -> Option<String> {
        let state = self.read();
        Some(state.by_number.get(id.index())?.as_ref()?.name.clone())
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        // Nothing in here panics between two changes that belong together.
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Named {
    fn is_there(&self) -> bool {
        self.is_held || self.is_written
    }
}

impl State {
    fn hold(&mut self, name: &str, max: usize) -> Result<DatabaseId, DatabaseError> {
        let (id, _) = self.find_or_add(name, max)?;
        if let Some(named) = &mut self.by_number[id.index()] {
            named.is_held = true;
        }
        Ok(id)
    }

    fn find_or_add(&mut self, name: &str, max: usize) -> Result<(DatabaseId, bool), DatabaseError> {
        if let Some(id) = self.by_name.get(name) {
            return Ok((*id, false));
        }
        let internal = usize::from(self.by_name.contains_key(INTERNAL_NAME));
        if self.by_name.len() - internal >= max {
            return Err(DatabaseError::TooMany { max });
        }
        let number = self.free_number().ok_or(DatabaseError::TooMany { max })?;
        self.next = number + 1;
        self.set(number, name);
        Ok((DatabaseId::from_index(number), true))
    }

    /// A number that no database has.
    fn free_number(&self) -> Option<usize> {
        let is_free = |number: &usize| self.by_number.get(*number).is_none_or(Option::is_none);
        let all = 0..DatabaseId::NOWHERE.index();
        let next = self.next.min(all.end);
        (next..all.end).chain(0..next).find(is_free)
    }

    fn remove_unless_there(&mut self, id: DatabaseId) {
        let Some(place) = self.by_number.get_mut(id.index()) else { return };
        if let Some(named) = place.take_if(|named| !named.is_there()) {
            self.by_name.remove(&named.name);
        }
    }

    fn set(&mut self, number: usize, name: &str) -> &mut Named {
        if self.by_number.len() <= number {
            self.by_number.resize_with(number + 1, || None);
        }
        self.by_name.insert(name.to_owned(), DatabaseId::from_index(number));
        let named = Named { name: name.to_owned(), is_held: false, is_written: false };
        self.by_number[number].insert(named)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_there_once_it_is_written_or_held() {
        let names = Names::default();
        let (id, is_new) = names.claim("a", 9).unwrap();
        assert!(is_new);
        assert_eq!((names.find("a"), names.claim("a", 9).unwrap()), (None, (id, false)));
        names.give_back(id);
        assert_eq!((names.name(id), names.dropped()), (None, 0));
        let (id, _) = names.claim("a", 9).unwrap();
        names.set_written(id);
        names.give_back(id);
        assert_eq!((names.find("a"), names.name(id)), (Some(id), Some("a".to_owned())));
        names.forget(id);
        assert_eq!((names.find("a"), names.dropped()), (None, 1));
        let held = names.hold("a", 9).unwrap();
        names.set_written(held);
        names.forget(held);
        assert_eq!(names.find("a"), Some(held), "whoever holds a name keeps its id");
        assert_eq!(names.all(), [(held, "a".to_owned())]);
    }

    #[test]
    fn a_number_is_used_again_after_all_others() {
        let names = Names::default();
        let (first, _) = names.claim("first", 2).unwrap();
        names.forget(first);
        for n in 1..first.index() + DatabaseId::NOWHERE.index() {
            let (id, _) = names.claim("other", 2).unwrap();
            assert_ne!(id, first, "after {n}");
            names.forget(id);
        }
        assert_eq!(names.claim("again", 2).unwrap(), (first, true));
    }

    #[test]
    fn the_internal_database_is_seen_by_nobody() {
        let names = Names::default();
        assert_eq!(names.internal(), None);
        let internal = names.hold_internal().unwrap();
        names.set_written(internal);
        assert_eq!(names.hold_internal(), Ok(internal));
        assert_eq!((names.internal(), names.find(INTERNAL_NAME)), (Some(internal), None));
        assert_eq!(names.all(), []);
        assert!(matches!(names.hold(INTERNAL_NAME, 9), Err(DatabaseError::BadName { .. })));
        assert!(matches!(names.claim(INTERNAL_NAME, 9), Err(DatabaseError::BadName { .. })));
        assert!(names.hold("a", 1).is_ok(), "it is not counted");
    }

    #[test]
    fn names_are_as_many_as_they_may_be() {
        let names = Names::default();
        names.hold("a", 2).unwrap();
        let (b, _) = names.claim("b", 2).unwrap();
        assert_eq!(names.claim("c", 2), Err(DatabaseError::TooMany { max: 2 }));
        assert_eq!(names.hold("c", 2), Err(DatabaseError::TooMany { max: 2 }));
        assert!(names.claim("c", 3).is_ok());
        names.forget(b);
        assert!(names.claim("d", 3).is_ok());
        assert!(matches!(names.claim("d e", 9), Err(DatabaseError::BadName { .. })));
    }
}
