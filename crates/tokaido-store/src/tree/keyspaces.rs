//! Keyspaces in the writer's transaction: the trees that they get and lose, and what becomes of the names of
//! their databases when the transaction ends.

use std::collections::HashSet;

use crate::{DatabaseError, DatabaseId, NewRecord, WriteError, record::Header};

use super::{
    base::format::NO_TREE,
    catalog::{self, CATALOG_TREE},
    transaction::{Done, TreeTransaction},
};

impl TreeTransaction {
    /// The database of that name, which is taken until the transaction ends if it is not there.
    pub(super) fn claim_name(&mut self, name: &str, max: usize) -> Result<DatabaseId, WriteError> {
        let max = max.min(self.shared.options.databases_max);
        let names = &self.shared.names;
        let claimed = match names.claim(name, max) {
            // Databases that the group has dropped keep their names until it is durable.
            Err(DatabaseError::TooMany { .. }) if max > 0 => {
                let refused = |_| DatabaseError::TooMany { max };
                names.claim(name, max + self.dropped_in_group()).map_err(refused)
            }
            claimed => claimed,
        };
        let (database, is_new) = claimed?;
        if is_new {
            self.done.claimed.push(database);
        }
        Ok(database)
    }

    /// Takes a database out of the catalog. Tells whether it was there.
    pub(super) fn drop_trees(&mut self, database: DatabaseId) -> Result<bool, WriteError> {
        if database.is_elements() || self.trees.get(database).is_none() {
            return Ok(false);
        }
        self.account(0)?;
        self.take_tree(database.elements())?;
        self.take_tree(database)?;
        self.done.dropped.push(database);
        Ok(true)
    }

    /// The tree of a keyspace, which gets one if it has none.
    #[inline]
    pub(super) fn tree_or_create(&mut self, database: DatabaseId) -> Result<u32, WriteError> {
        match self.trees.get(database) {
            Some(tree) => Ok(tree),
            None => self.create(database),
        }
    }

    #[cold]
    fn create(&mut self, keyspace: DatabaseId) -> Result<u32, WriteError> {
        if keyspace.is_elements() {
            // No catalog has elements of a database that it does not have.
            self.tree_or_create(DatabaseId::from_index(keyspace.index()))?;
        } else {
            // If the name is held, it is there for good now.
            self.done.claimed.push(keyspace);
        }
        self.give_tree(keyspace)
    }

    /// Gives a keyspace a new tree.
    pub(super) fn give_tree(&mut self, keyspace: DatabaseId) -> Result<u32, WriteError> {
        let name = match keyspace.is_elements() {
            true => String::new(),
            false => self.shared.names.name(keyspace).ok_or(WriteError::Dropped)?,
        };
        let tree = self.next_tree;
        if tree == NO_TREE {
            let message = "no number is left for a new tree; open the store again".to_owned();
            return Err(WriteError::Engine { message });
        }
        self.next_tree += 1;
        let value = catalog::catalog_value(tree, &name);
        let header = Header::new(&NewRecord::of(&value), self.number);
        let parts = [header.as_bytes(), &value];
        self.write(CATALOG_TREE, &catalog::catalog_key(keyspace), Some(parts))?;
        self.set_tree(keyspace, Some(tree));
        Ok(tree)
    }

    /// Takes a keyspace its tree, if it has one, and so all that is in it.
    pub(super) fn take_tree(&mut self, keyspace: DatabaseId) -> Result<(), WriteError> {
        if self.trees.get(keyspace).is_some() {
            self.write(CATALOG_TREE, &catalog::catalog_key(keyspace), None)?;
            self.set_tree(keyspace, None);
        }
        Ok(())
    }

    fn set_tree(&mut self, keyspace: DatabaseId, tree: Option<u32>) {
        self.done.trees_before.get_or_insert_with(|| self.trees.clone());
        self.trees.set(keyspace, tree);
    }

    /// How many databases the group and the transaction have dropped, and not made again.
    fn dropped_in_group(&self) -> usize {
        let dropped = self.group.done.dropped.iter().chain(&self.done.dropped);
        let dropped = dropped.filter(|database| self.trees.get(**database).is_none());
        dropped.collect::<HashSet<_>>().len()
    }

    /// Lets the names of the databases follow what the group has written and dropped.
    pub(super) fn publish_names(&mut self) {
        let Done { claimed, dropped, .. } = &mut self.group.done;
        for database in claimed.drain(..).chain(dropped.drain(..)) {
            match self.trees.get(database) {
                Some(_) => self.shared.names.set_written(database),
                None => self.shared.names.forget(database),
            }
        }
    }
}
