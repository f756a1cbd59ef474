//! A group of transactions: one LMDB transaction, and the databases as the group has left them.

use crate::{DatabaseStatistics, WriteError};

use super::{
    catalog::Names,
    edit::Edit,
    layout::{self, DatabaseEntry},
    lmdb::{Dbi, LmdbError, Step, WriteTxn},
    store::Shared,
};

pub(super) struct Group {
    pub(super) edit: Edit,
    /// By index; shorter than the list of names if the last ones were never written to.
    pub(super) databases: Vec<DatabaseEntry>,
    /// How many of them `meta` has.
    databases_stored: usize,
    /// The trees that this group can use, by number: those of the environment, then its own.
    trees: Vec<Dbi>,
    trees_known: usize,
    /// Numbers of empty trees that no database has.
    free: Vec<u32>,
    /// Numbers of trees that a committed transaction took from their database.
    dropped: Vec<u32>,
    /// What to restore if the open transaction is rolled back.
    before: Vec<(usize, DatabaseEntry)>,
    /// Trees that the open transaction took from `free`, and took from a database.
    taken_here: Vec<u32>,
    dropped_here: Vec<u32>,
    /// Whether a committed transaction has changed anything, and which tree is whose.
    is_changed: bool,
    are_trees_moved: bool,
    /// The failure after which nothing of the group can be kept.
    pub(super) broken: Option<LmdbError>,
}

impl Group {
    pub(super) fn new(txn: WriteTxn, databases: Vec<DatabaseEntry>, trees: Vec<Dbi>) -> Self {
        let is_free = |number: &u32| databases.iter().all(|entry| entry.tree != Some(*number));
        let free = (0..trees.len() as u32).rev().filter(is_free).collect();
        Self {
            edit: Edit::new(txn),
            databases_stored: databases.len(),
            databases,
            trees_known: trees.len(),
            trees,
            free,
            dropped: Vec::new(),
            before: Vec::new(),
            taken_here: Vec::new(),
            dropped_here: Vec::new(),
            is_changed: false,
            are_trees_moved: false,
            broken: None,
        }
    }

    /// Passes a result on, and remembers an error: LMDB gives the whole transaction up then.
    pub(super) fn guard<T>(
        broken: &mut Option<LmdbError>,
        result: Result<T, LmdbError>,
    ) -> Result<T, WriteError> {
        result.map_err(|error| {
            broken.get_or_insert(error);
            WriteError::Engine { message: error.to_string() }
        })
    }

    /// The tree of a database, if it was ever written to.
    pub(super) fn tree(&self, index: usize) -> Option<Dbi> {
        let number = self.databases.get(index)?.tree?;
        Some(self.trees[number as usize])
    }

    /// The tree of a database, which gets one if it has none.
    pub(super) fn tree_or_create(&mut self, index: usize) -> Result<Dbi, WriteError> {
        self.note(index);
        if let Some(dbi) = self.tree(index) {
            return Ok(dbi);
        }
        let number = self.take_free()?;
        self.databases[index].tree = Some(number);
        Ok(self.trees[number as usize])
    }

    /// Gives a database an empty tree in place of its own.
    pub(super) fn clear(&mut self, index: usize) -> Result<(), WriteError> {
        let Some(entry) = self.databases.get(index).copied() else { return Ok(()) };
        if entry.statistics.records == 0 {
            return Ok(());
        }
        self.note(index);
        self.databases[index].statistics = DatabaseStatistics::default();
        if self.dropped.len() + self.dropped_here.len() >= layout::DROPPED_TREES_MAX {
            return self.remove_all(index);
        }
        self.dropped_here.extend(entry.tree);
        self.databases[index].tree = Some(self.take_free()?);
        Ok(())
    }

    /// Removes the records of a database one by one: when a group clears so often that no tree is
    /// left to give.
    fn remove_all(&mut self, index: usize) -> Result<(), WriteError> {
        let Some(dbi) = self.tree(index) else { return Ok(()) };
        loop {
            let first = self.edit.txn.step(dbi, Step::First);
            let first = Self::guard(&mut self.broken, first)?.map(|(key, _)| key.to_vec());
            let Some(key) = first else { return Ok(()) };
            let removed = self.edit.remove(dbi, &key).map(|_| ());
            Self::guard(&mut self.broken, removed)?;
        }
    }

    fn take_free(&mut self) -> Result<u32, WriteError> {
        if let Some(number) = self.free.pop() {
            self.taken_here.push(number);
            return Ok(number);
        }
        assert!(self.trees.len() < layout::TREES_MAX, "`clear` keeps a tree for each database");
        let number = self.trees.len() as u32;
        let created = self.edit.txn.create_database(&layout::tree_name(number));
        self.trees.push(Self::guard(&mut self.broken, created)?);
        self.taken_here.push(number);
        Ok(number)
    }

    /// Notes a database as it is before the open transaction first changes it.
    fn note(&mut self, index: usize) {
        if self.databases.len() <= index {
            self.databases.resize(index + 1, DatabaseEntry::default());
        }
        if self.before.iter().all(|(noted, _)| *noted != index) {
            self.before.push((index, self.databases[index]));
        }
    }

    /// Ends the open transaction: the group keeps it. Tells whether it changed anything.
    pub(super) fn keep(&mut self) -> bool {
        let is_changed = self.edit.is_changed() || !self.dropped_here.is_empty();
        self.is_changed |= is_changed;
        self.are_trees_moved |= !self.taken_here.is_empty();
        self.edit.keep();
        self.before.clear();
        self.taken_here.clear();
        self.dropped.append(&mut self.dropped_here);
        is_changed
    }

    /// Ends the open transaction: the group is as it was before it.
    pub(super) fn undo(&mut self) -> Result<(), LmdbError> {
        if let Some(error) = self.broken {
            return Err(error);
        }
        if let Err(error) = self.edit.undo() {
            self.broken = Some(error);
            return Err(error);
        }
        // The records that it put into these trees are gone again, so they are empty.
        self.free.append(&mut self.taken_here);
        self.dropped_here.clear();
        for (index, entry) in self.before.drain(..).rev() {
            self.databases[index] = entry;
        }
        Ok(())
    }

    /// Whether a commit of LMDB is called for.
    pub(super) fn is_changed(&self) -> bool {
        self.is_changed
    }

    /// Commits the group, durably. Gives the databases as they are now.
    pub(super) fn commit(
        mut self,
        shared: &Shared,
        number: u64,
    ) -> Result<Vec<DatabaseEntry>, LmdbError> {
        if let Some(error) = self.broken {
            return Err(error);
        }
        for tree in std::mem::take(&mut self.dropped) {
            self.edit.txn.clear(self.trees[tree as usize])?;
        }
        self.store_meta(&shared.names, shared.meta, number)?;
        let Self { edit, databases, trees, trees_known, are_trees_moved, .. } = self;
        if are_trees_moved {
            shared.trees.turn_generation();
        }
        let result = edit.txn.commit();
        if result.is_ok() {
            shared.trees.extend(&trees[trees_known..]);
        }
        if are_trees_moved {
            shared.trees.turn_generation();
        }
        result.map(|()| databases)
    }

    fn store_meta(&mut self, names: &Names, meta: Dbi, number: u64) -> Result<(), LmdbError> {
        self.edit.put(meta, layout::COMMIT_KEY, &number.to_le_bytes(), &[])?;
        for (index, entry) in self.databases.iter().enumerate() {
            let value = entry.encode(&names.name(index));
            let key = layout::database_key(index);
            let is_stored = index < self.databases_stored
                && self.edit.txn.find(meta, &key)?.is_some_and(|stored| stored == value);
            if !is_stored {
                self.edit.put(meta, &key, &value, &[])?;
            }
        }
        Ok(())
    }
}
