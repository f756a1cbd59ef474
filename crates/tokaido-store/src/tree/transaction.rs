//! The open transaction of the writer.

use std::{
    ops::{Bound, ControlFlow},
    ptr::NonNull,
    sync::Arc,
};

use crate::{
    CommitNumber, DatabaseId, DatabaseStatistics, Direction, Entry, NewRecord, ReadError,
    ReadTransaction, Record, WriteError, WriteTransaction,
    record::{self, Header},
};

use super::{
    accounts::{Below, Changes},
    catalog::{self, CATALOG_TREE, EXPIRY_TREE, TreeMap},
    expiry,
    log::{FrameBuilder, Operation},
    memtable::{MemtableWriter, Node},
    options::Bounds,
    shared::{Shared, lock},
    snapshot::{scan_live, seek_live},
    view::{self, View},
};

/// Bytes that the log keeps of a write beside the key and the value, about.
const HEADS_LEN: usize = 24;

/// Room for noting more nodes than this is given back after a group.
const TOUCHED_KEPT_MAX: usize = 1 << 16;

pub(super) struct TreeTransaction {
    /// Before `shared`. It sees every version, also those that are not published.
    pub(super) view: View,
    pub(super) memtable: MemtableWriter,
    pub(super) shared: Arc<Shared>,
    pub(super) trees: TreeMap,
    /// The number for the next tree.
    pub(super) next_tree: u32,
    pub(super) now_ms: u64,
    pub(super) number: CommitNumber,
    /// The nodes that the group has written to, and then those of the transaction; but for those
    /// that the changes have.
    touched: Vec<NonNull<Node>>,
    changes: Changes,
    is_catalog_changed: bool,
    pub(super) group: Group,
    /// The last entry of the expiry index that was removed: there is none before it.
    pub(super) swept: Vec<u8>,
    bounds: Bounds,
    /// Writes and bytes so far, against the bounds.
    writes: usize,
    bytes: usize,
}

/// The committed transactions that are not flushed yet.
#[derive(Default)]
pub(super) struct Group {
    pub(super) frame: FrameBuilder,
    /// How many of the nodes that were touched are the group's.
    touched: usize,
    pub(super) changes: Changes,
    pub(super) is_catalog_changed: bool,
}

impl TreeTransaction {
    pub(super) fn new(
        shared: Arc<Shared>,
        view: View,
        memtable: MemtableWriter,
        trees: TreeMap,
        next_tree: u32,
    ) -> Self {
        Self {
            bounds: shared.options.bounds(),
            view,
            memtable,
            shared,
            trees,
            next_tree,
            now_ms: 0,
            number: 0,
            touched: Vec::new(),
            changes: Changes::default(),
            is_catalog_changed: false,
            group: Group::default(),
            swept: Vec::new(),
            writes: 0,
            bytes: 0,
        }
    }

    pub(super) fn begin(&mut self, number: CommitNumber) {
        self.now_ms = self.shared.clock.now_ms();
        self.number = number;
        self.writes = 0;
        self.bytes = 0;
    }

    /// Ends the transaction and hands what it did to the group. Tells whether it did anything.
    pub(super) fn keep(&mut self) -> Result<bool, ReadError> {
        if self.operations().next().is_none() {
            self.undo()?;
            return Ok(false);
        }
        let mut frame = std::mem::take(&mut self.group.frame);
        frame.reserve(self.bytes + self.writes * HEADS_LEN);
        frame.push(self.number, self.operations());
        self.group.frame = frame;
        self.group.touched = self.touched.len();
        self.group.changes.append(&mut self.changes);
        self.group.is_catalog_changed |= std::mem::take(&mut self.is_catalog_changed);
        Ok(true)
    }

    /// Ends the transaction and takes back what it wrote.
    pub(super) fn undo(&mut self) -> Result<(), ReadError> {
        for node in self.touched.drain(self.group.touched..).chain(self.changes.nodes()) {
            // SAFETY: all nodes that were touched are of the memtable.
            unsafe { self.memtable.take_back(node, self.number) }
        }
        self.changes.discard();
        self.swept.clear();
        if std::mem::take(&mut self.is_catalog_changed) {
            self.trees = TreeMap::read(&self.view)?;
        }
        Ok(())
    }

    /// Takes back all transactions of the group. None is open.
    pub(super) fn undo_group(&mut self) -> Result<(), ReadError> {
        let first = self.group.frame.first_sequence();
        for node in self.touched.drain(..).chain(self.group.changes.nodes()) {
            // SAFETY: as in `undo`.
            unsafe { self.memtable.take_back(node, first) }
        }
        self.group.changes.discard();
        self.swept.clear();
        self.end_group();
        if std::mem::take(&mut self.group.is_catalog_changed) {
            self.trees = TreeMap::read(&self.view)?;
        }
        Ok(())
    }

    /// The group is on disk: lets snapshots see it.
    pub(super) fn publish(&mut self) {
        let Group { frame, changes, is_catalog_changed, .. } = &mut self.group;
        let sequence = frame.last_sequence();
        lock(&self.shared.accounts).publish(changes);
        self.shared.publish(sequence, std::mem::take(is_catalog_changed));
        self.end_group();
    }

    fn end_group(&mut self) {
        self.group.frame.clear();
        self.group.touched = 0;
        self.touched.clear();
        self.touched.shrink_to(TOUCHED_KEPT_MAX);
    }

    /// What the transaction did to the store, without what cancels out.
    pub(super) fn operations(&self) -> impl Iterator<Item = Operation<'_>> {
        let touched = self.touched[self.group.touched..].iter().copied();
        self.changes.nodes().chain(touched).filter_map(|node| {
            // SAFETY: nodes live as long as the memtable.
            let node = unsafe { node.as_ref() };
            let record = node.latest()?.record();
            let (tree, key) = (node.tree(), node.key());
            let is_vain = record.is_none() && node.is_first_version() && self.view.is_new(tree);
            (!is_vain).then_some(Operation { tree, key, record })
        })
    }

    /// The stored record under `key`, expired or not.
    #[inline]
    fn find(&mut self, tree: u32, key: &[u8]) -> Result<Option<&[u8]>, ReadError> {
        // SAFETY: nodes live as long as the memtable.
        let node = self.memtable.find(tree, key).map(|node| unsafe { node.as_ref() });
        match node.and_then(Node::latest) {
            Some(seen) => Ok(seen.record()),
            None => self.view.find_below(tree, key),
        }
    }

    fn account(&mut self, bytes: usize) -> Result<(), WriteError> {
        self.writes += 1;
        self.bytes += bytes;
        self.bounds.check_sum(self.writes, self.bytes)
    }

    /// The tree of a database, which gets one if it has none.
    fn tree_or_create(&mut self, database: DatabaseId) -> Result<u32, WriteError> {
        match self.trees.get(database) {
            Some(tree) => Ok(tree),
            None => self.give_tree(database),
        }
    }

    /// Gives a database a new tree.
    fn give_tree(&mut self, database: DatabaseId) -> Result<u32, WriteError> {
        let (index, tree) = (database.index(), self.next_tree);
        self.next_tree += 1;
        let value = catalog::catalog_value(tree, &self.shared.names.name(index));
        let header = Header::new(&NewRecord::of(&value), self.number);
        let parts = [header.as_bytes(), &value];
        self.write(CATALOG_TREE, &catalog::catalog_key(index), Some(parts))?;
        self.is_catalog_changed = true;
        self.trees.set(index, tree);
        Ok(tree)
    }

    /// Writes to the memtable. Gives the expiry of the version that the memtable had.
    fn write(
        &mut self,
        tree: u32,
        key: &[u8],
        parts: Option<[&[u8]; 2]>,
    ) -> Result<Option<u64>, WriteError> {
        let noted = self.changes.write(&mut self.memtable, tree, key, parts, self.number)?;
        self.touched.extend(noted.touched);
        Ok(noted.old_expiry)
    }

    /// Keeps the expiry index true to a record whose expiry changes, as far as that is known.
    fn move_expiry(
        &mut self,
        database: DatabaseId,
        key: &[u8],
        from: Option<u64>,
        to: Option<u64>,
    ) -> Result<(), WriteError> {
        if from == to {
            return Ok(());
        }
        if let Some(at_ms) = from {
            self.write(EXPIRY_TREE, &expiry::key(at_ms, database, key), None)?;
        }
        if let Some(at_ms) = to {
            let header = Header::new(&NewRecord::of(&[]), self.number);
            let parts = [header.as_bytes(), &[]];
            let entry = expiry::key(at_ms, database, key);
            self.write(EXPIRY_TREE, &entry, Some(parts))?;
            if entry <= self.swept {
                self.swept.clear();
            }
        }
        Ok(())
    }

    /// Removes an entry of the expiry index.
    pub(super) fn remove_expiry_entry(&mut self, entry: &[u8]) -> Result<(), WriteError> {
        self.write(EXPIRY_TREE, entry, None).map(|_| ())
    }

    /// Removes the record under `key` if it has expired; for the sweep, which follows the index.
    pub(super) fn remove_if_expired(
        &mut self,
        database: DatabaseId,
        key: &[u8],
    ) -> Result<bool, WriteError> {
        let Some(tree) = self.trees.get(database) else { return Ok(false) };
        let now_ms = self.now_ms;
        let Some(stored) = self.find(tree, key)? else { return Ok(false) };
        if record::decode(stored)?.is_live(now_ms) {
            return Ok(false);
        }
        self.write(tree, key, None)?;
        Ok(true)
    }

    /// What is not committed yet, added to what is.
    fn total(&mut self, tree: u32) -> Result<DatabaseStatistics, ReadError> {
        let committed = loop {
            let total = lock(&self.shared.accounts).total(tree, &self.view.base)?;
            match total {
                Some(total) => break total,
                // A checkpoint has ended; the writer may follow it at any time.
                None => self.follow_checkpoint()?,
            }
        };
        let frozen = self.view.tables.frozen.as_deref();
        let below = Below { frozen, base: &self.view.base };
        let group = self.group.changes.total(tree, &below)?;
        let own = self.changes.total(tree, &below)?;
        Ok((committed + group + own).into())
    }

    /// Looks at the tables and the base as they are now.
    pub(super) fn follow_checkpoint(&mut self) -> Result<(), ReadError> {
        self.view = self.shared.view(u64::MAX)?;
        Ok(())
    }
}

impl ReadTransaction for TreeTransaction {
    fn now_ms(&self) -> u64 {
        self.now_ms
    }

    fn get<'t>(
        &'t mut self,
        database: DatabaseId,
        key: &[u8],
    ) -> Result<Option<Record<'t>>, ReadError> {
        view::check_key(key)?;
        let Some(tree) = self.trees.get(database) else { return Ok(None) };
        let now_ms = self.now_ms;
        let Some(stored) = self.find(tree, key)? else { return Ok(None) };
        Ok(Some(record::decode(stored)?).filter(|record| record.is_live(now_ms)))
    }

    fn seek<'t>(
        &'t mut self,
        database: DatabaseId,
        from: Bound<&[u8]>,
        direction: Direction,
    ) -> Result<Option<Entry<'t>>, ReadError> {
        let Some(tree) = self.trees.get(database) else { return Ok(None) };
        seek_live(&self.view, tree, from, direction, self.now_ms)
    }

    fn scan(
        &mut self,
        database: DatabaseId,
        from: Bound<&[u8]>,
        direction: Direction,
        visit: &mut dyn FnMut(Entry<'_>) -> ControlFlow<()>,
    ) -> Result<(), ReadError> {
        let Some(tree) = self.trees.get(database) else { return Ok(()) };
        scan_live(&self.view, tree, from, direction, self.now_ms, visit)
    }

    fn statistics(&mut self, database: DatabaseId) -> Result<DatabaseStatistics, ReadError> {
        match self.trees.get(database) {
            Some(tree) => self.total(tree),
            None => Ok(DatabaseStatistics::default()),
        }
    }
}

impl WriteTransaction for TreeTransaction {
    fn number(&self) -> CommitNumber {
        self.number
    }

    fn put(
        &mut self,
        database: DatabaseId,
        key: &[u8],
        record: NewRecord<'_>,
    ) -> Result<(), WriteError> {
        self.bounds.check_record(key, record.value)?;
        self.account(key.len() + record.value.len())?;
        let tree = self.tree_or_create(database)?;
        let header = Header::new(&record, self.number);
        let old_expiry = self.write(tree, key, Some([header.as_bytes(), record.value]))?;
        self.move_expiry(database, key, old_expiry, record.expires_at_ms)
    }

    fn delete(&mut self, database: DatabaseId, key: &[u8]) -> Result<bool, WriteError> {
        view::check_key(key)?;
        let Some(tree) = self.trees.get(database) else { return Ok(false) };
        let now_ms = self.now_ms;
        let Some(stored) = self.find(tree, key)? else { return Ok(false) };
        let is_live = record::decode(stored)?.is_live(now_ms);
        self.account(key.len())?;
        let old_expiry = self.write(tree, key, None)?;
        self.move_expiry(database, key, old_expiry, None)?;
        Ok(is_live)
    }

    fn clear(&mut self, database: DatabaseId) -> Result<(), WriteError> {
        if self.trees.get(database).is_none() {
            return Ok(());
        }
        self.account(0)?;
        self.give_tree(database).map(|_| ())
    }
}
