//! Snapshots: LMDB read transactions that are kept and renewed.

use std::{ops::Bound, sync::Arc};

use crate::{
    DatabaseId, DatabaseStatistics, Direction, Entry, ReadError, ReadTransaction, Record, Snapshot,
};

use super::{
    catalog, layout,
    lmdb::{Dbi, ReadTxn},
    read,
    store::Shared,
};

pub(super) struct TreeSnapshot {
    /// Before `shared`, which closes the environment if it is the last to go.
    txn: ReadTxn,
    shared: Arc<Shared>,
    now_ms: u64,
    /// Whether the LMDB transaction holds a view.
    is_held: bool,
    /// The trees of the databases in this view, by index.
    trees: Vec<Option<Dbi>>,
    /// The generation of `Shared::trees` that `trees` belongs to for certain.
    generation: Option<u64>,
}

impl TreeSnapshot {
    pub(super) fn new(shared: Arc<Shared>) -> Result<Self, ReadError> {
        let mut txn = shared.environment.read().map_err(|error| {
            let error_text = error.to_string();
            let hint = if error.is_readers_full() { "; raise the limit of snapshots" } else { "" };
            ReadError::Engine { message: format!("{error_text}{hint}") }
        })?;
        txn.reset();
        let mut snapshot =
            Self { shared, txn, now_ms: 0, is_held: false, trees: Vec::new(), generation: None };
        snapshot.hold()?;
        Ok(snapshot)
    }

    /// Takes the newest view, if none is held.
    #[inline]
    fn hold(&mut self) -> Result<(), ReadError> {
        if self.is_held {
            return Ok(());
        }
        self.now_ms = self.shared.clock.now_ms();
        let before = self.shared.trees.generation();
        self.txn.renew()?;
        self.is_held = true;
        let is_stable = before.is_multiple_of(2) && before == self.shared.trees.generation();
        if !(is_stable && self.generation == Some(before)) {
            self.generation = None;
            self.read_trees()?;
            self.generation = is_stable.then_some(before);
        }
        Ok(())
    }

    /// Reads which tree is whose in this view.
    ///
    /// Between LMDB's commit of a new tree and our knowing its handle lie a few instructions of
    /// the writer. A view taken there is given up for the next.
    fn read_trees(&mut self) -> Result<(), ReadError> {
        loop {
            let open = self.shared.trees.all();
            let entries = catalog::read_entries(&mut self.txn, self.shared.meta)?;
            self.trees.clear();
            let mut is_usable = true;
            for (entry, _) in &entries {
                let dbi = match entry.tree {
                    None => None,
                    Some(number) => open.get(number as usize).copied(),
                };
                is_usable &= match dbi {
                    Some(dbi) => self.txn.knows(dbi),
                    None => entry.tree.is_none(),
                };
                self.trees.push(dbi);
            }
            if is_usable {
                return Ok(());
            }
            std::thread::yield_now();
            self.txn.reset();
            self.is_held = false;
            self.txn.renew()?;
            self.is_held = true;
        }
    }

    fn tree(&self, database: DatabaseId) -> Option<Dbi> {
        self.trees.get(database.index()).copied().flatten()
    }
}

impl ReadTransaction for TreeSnapshot {
    fn now_ms(&self) -> u64 {
        self.now_ms
    }

    fn get<'t>(
        &'t mut self,
        database: DatabaseId,
        key: &[u8],
    ) -> Result<Option<Record<'t>>, ReadError> {
        read::check_key(key)?;
        self.hold()?;
        let Some(dbi) = self.tree(database) else { return Ok(None) };
        let record = read::find(&mut self.txn, dbi, key)?;
        Ok(record.filter(|record| record.is_live(self.now_ms)))
    }

    fn seek<'t>(
        &'t mut self,
        database: DatabaseId,
        from: Bound<&[u8]>,
        direction: Direction,
    ) -> Result<Option<Entry<'t>>, ReadError> {
        self.hold()?;
        let Some(dbi) = self.tree(database) else { return Ok(None) };
        read::seek(&mut self.txn, dbi, from, direction, self.now_ms)
    }

    fn statistics(&mut self, database: DatabaseId) -> Result<DatabaseStatistics, ReadError> {
        self.hold()?;
        let key = layout::database_key(database.index());
        let stored = self.txn.find(self.shared.meta, &key)?;
        let entry = stored.and_then(layout::DatabaseEntry::decode);
        Ok(entry.map(|(entry, _)| entry.statistics).unwrap_or_default())
    }
}

impl Snapshot for TreeSnapshot {
    fn renew(&mut self) -> Result<(), ReadError> {
        self.release();
        self.hold()
    }

    fn release(&mut self) {
        if std::mem::take(&mut self.is_held) {
            self.txn.reset();
        }
    }
}
