//! Keyspaces in the writer's transaction: the trees that they get and lose, and what happens to the
//! names of their databases when the transaction ends.

use std::{
    collections::HashSet,
    ops::{Bound, ControlFlow},
};

use crate::{DatabaseError, DatabaseId, Direction, NewRecord, WriteError, record::Header};

use super::{
    base::format::NO_TREE,
    catalog::{self, CATALOG_TREE, EXPIRY_TREE},
    expiry,
    transaction::{Done, TreeTransaction},
};

impl TreeTransaction {
    /// The database with that name. If there is none, claims the name until the transaction ends.
    pub(super) fn claim_name(&mut self, name: &str, max: usize) -> Result<DatabaseId, WriteError> {
        let max = max.min(self.shared.options.databases_max);
        let names = &self.shared.names;
        let claimed = match names.claim(name, max) {
            // Databases that the group has dropped keep their names until the drop is durable.
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

    /// Removes a database from the catalog. Returns whether it was there.
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

    /// Swaps the trees of two databases, and updates the expiry index to match.
    pub(super) fn swap_trees(
        &mut self,
        one: DatabaseId,
        other: DatabaseId,
    ) -> Result<(), WriteError> {
        let (one, other) =
            (DatabaseId::from_index(one.index()), DatabaseId::from_index(other.index()));
        if one == other {
            return Ok(());
        }
        self.account(0)?;
        self.swap_expiry(one, other)?;
        for (one, other) in [(one, other), (one.elements(), other.elements())] {
            let (first, second) = (self.trees.get(one), self.trees.get(other));
            self.enter_tree(one, second)?;
            self.enter_tree(other, first)?;
        }
        for database in [one, other] {
            match self.trees.get(database) {
                Some(_) => self.done.claimed.push(database),
                None => self.done.dropped.push(database),
            }
        }
        Ok(())
    }

    /// Moves the entries of either database in the expiry index to the other.
    fn swap_expiry(&mut self, one: DatabaseId, other: DatabaseId) -> Result<(), WriteError> {
        let pairs = [(one, other), (one.elements(), other.elements())];
        let partner = |database| {
            pairs.iter().find_map(|&(a, b)| match database {
                _ if database == a => Some(b),
                _ if database == b => Some(a),
                _ => None,
            })
        };
        let mut entries = Vec::new();
        let all = Bound::Unbounded;
        self.view.scan(EXPIRY_TREE, all, all, Direction::Forward, |(entry, _)| {
            if let Some((at_ms, database, key)) = expiry::parse(entry)
                && let Some(partner) = partner(database)
            {
                entries.push((at_ms, database, partner, key.to_vec()));
                if entries.len() > self.shared.options.transaction_writes_max {
                    return Ok(ControlFlow::Break(()));
                }
            }
            Ok(ControlFlow::Continue(()))
        })?;
        // Remove all before adding any: two databases may have the same keys with the same expiry.
        for (at_ms, database, _, key) in &entries {
            self.account(expiry::ENTRY_HEAD_LEN + key.len())?;
            self.move_expiry(*database, key, Some(*at_ms), None)?;
        }
        for (at_ms, _, partner, key) in &entries {
            self.move_expiry(*partner, key, None, Some(*at_ms))?;
        }
        Ok(())
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
            // The catalog never has elements of a database that it does not have.
            self.tree_or_create(DatabaseId::from_index(keyspace.index()))?;
        } else {
            // A name that was only held is there for good now.
            self.done.claimed.push(keyspace);
        }
        self.give_tree(keyspace)
    }

    /// Gives a keyspace a new tree.
    pub(super) fn give_tree(&mut self, keyspace: DatabaseId) -> Result<u32, WriteError> {
        let tree = self.next_tree;
        if tree == NO_TREE {
            let message = "no number is left for a new tree; open the store again".to_owned();
            return Err(WriteError::Engine { message });
        }
        self.enter_tree(keyspace, Some(tree))?;
        self.next_tree += 1;
        Ok(tree)
    }

    /// Records in the catalog that a keyspace has this tree, or none.
    fn enter_tree(&mut self, keyspace: DatabaseId, tree: Option<u32>) -> Result<(), WriteError> {
        let Some(tree) = tree else { return self.take_tree(keyspace) };
        let name = match keyspace.is_elements() {
            true => String::new(),
            false => self.shared.names.name(keyspace).ok_or(WriteError::Dropped)?,
        };
        let value = catalog::catalog_value(tree, &name);
        let header = Header::new(&NewRecord::of(&value), self.number);
        let parts = [header.as_bytes(), &value];
        self.write(CATALOG_TREE, &catalog::catalog_key(keyspace), Some(parts))?;
        self.set_tree(keyspace, Some(tree));
        Ok(())
    }

    /// Removes the tree of a keyspace, if it has one, and so everything in it.
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

    /// How many databases the group and the transaction have dropped and not created again.
    fn dropped_in_group(&self) -> usize {
        let dropped = self.group.done.dropped.iter().chain(&self.done.dropped);
        let dropped = dropped.filter(|database| self.trees.get(**database).is_none());
        dropped.collect::<HashSet<_>>().len()
    }

    /// Updates the names of databases with what the group has written and dropped.
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
