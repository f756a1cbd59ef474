//! The open transaction of the writer.

use std::{
    ops::{Bound, ControlFlow},
    ptr::NonNull,
    sync::Arc,
};

use crate::{
    CollectionId, CommitNumber, DatabaseId, DatabaseStatistics, Direction, Entry, Kind, NewRecord,
    ReadError, ReadTransaction, Record, WriteError, WriteTransaction, limits,
    record::{self, Header},
};

use super::{
    catalog::{EXPIRY_TREE, TreeMap},
    expiring, expiry, live,
    log::{FrameBuilder, Operation},
    memtable::{MemtableWriter, Node},
    published::Follower,
    shared::Shared,
    statistics::{Below, Changes, Counting},
    sweep::sweep,
    tables::Tables,
    view::{self, View},
    writer_state::WriterState,
};

/// Approximate bytes that the log keeps of a write in addition to the key and the value.
const HEADS_LEN: usize = 24;

/// Capacity for noting more nodes than this is freed after a group.
const TOUCHED_KEPT_MAX: usize = 1 << 16;

pub(super) struct TreeTransaction {
    /// Declared before `shared`. It sees every version, including those that are not published.
    pub(super) view: View,
    pub(super) memtable: MemtableWriter,
    pub(super) shared: Arc<Shared>,
    pub(super) trees: TreeMap,
    /// Set only while there are observers.
    pub(super) follower: Option<Follower>,
    /// The number for the next tree.
    pub(super) next_tree: u32,
    pub(super) now_ms: u64,
    pub(super) number: CommitNumber,
    /// The nodes that the group has written to, then those of the transaction, except for those
    /// that the changes have.
    touched: Vec<NonNull<Node>>,
    pub(super) done: Done,
    pub(super) group: Group,
    /// The last entry that was removed from the expiry index: there is none before it.
    pub(super) swept: Vec<u8>,
    /// The last element that was removed from a dropped collection: there is none before it.
    pub(super) reclaimed: Vec<u8>,
    /// Whether the transaction removes what has expired.
    pub(super) is_sweep: bool,
    /// How many collections the transaction has created.
    pub(super) collections: usize,
    /// Writes and bytes so far, to be checked against the limits.
    writes: usize,
    bytes: usize,
}

/// The committed transactions that are not flushed yet.
#[derive(Default)]
pub(super) struct Group {
    pub(super) frame: FrameBuilder,
    /// How many of the touched nodes belong to the group.
    touched: usize,
    pub(super) done: Done,
    /// The transactions that removed what had expired.
    sweeps: Vec<CommitNumber>,
}

/// What a transaction, or a whole group, has done, and what it takes to undo it.
#[derive(Default)]
pub(super) struct Done {
    changes: Changes,
    /// The trees as they were before, if they have changed.
    pub(super) trees_before: Option<TreeMap>,
    /// The databases that were created or whose names were claimed, and those that were dropped.
    pub(super) claimed: Vec<DatabaseId>,
    pub(super) dropped: Vec<DatabaseId>,
}

impl Done {
    /// Appends what was done later.
    fn append(&mut self, later: &mut Self) {
        self.changes.append(&mut later.changes);
        if let Some(before) = later.trees_before.take() {
            self.trees_before.get_or_insert(before);
        }
        self.claimed.append(&mut later.claimed);
        self.dropped.append(&mut later.dropped);
    }
}

impl TreeTransaction {
    /// `tables` and the view of the base in `state` belong together.
    pub(super) fn new(shared: Arc<Shared>, state: WriterState, tables: Arc<Tables>) -> Self {
        Self {
            view: View::new(tables, state.base, u64::MAX),
            memtable: state.memtable,
            shared,
            trees: state.trees,
            follower: state.follower,
            next_tree: state.next_tree,
            now_ms: 0,
            number: 0,
            touched: Vec::new(),
            done: Done::default(),
            group: Group::default(),
            swept: Vec::new(),
            reclaimed: Vec::new(),
            is_sweep: false,
            collections: 0,
            writes: 0,
            bytes: 0,
        }
    }

    pub(super) fn begin(&mut self, number: CommitNumber) {
        self.now_ms = self.shared.clock.now_ms();
        self.number = number;
        self.is_sweep = false;
        self.collections = 0;
        self.writes = 0;
        self.bytes = 0;
    }

    /// Ends the transaction and adds what it did to the group. Returns whether it did anything.
    pub(super) fn commit(&mut self) -> bool {
        if self.operations().next().is_none() {
            self.rollback();
            return false;
        }
        let mut frame = std::mem::take(&mut self.group.frame);
        frame.reserve(self.bytes + self.writes * HEADS_LEN);
        frame.push(self.number, self.operations());
        self.group.frame = frame;
        self.group.touched = self.touched.len();
        if self.is_sweep {
            self.group.sweeps.push(self.number);
        }
        self.group.done.append(&mut self.done);
        true
    }

    /// Ends the transaction and undoes what it wrote.
    pub(super) fn rollback(&mut self) {
        let done = std::mem::take(&mut self.done);
        self.undo(done, self.group.touched, self.number);
    }

    /// Undoes all transactions of the group. None is open.
    pub(super) fn rollback_group(&mut self) {
        let done = std::mem::take(&mut self.group.done);
        self.undo(done, 0, self.group.frame.first_sequence());
        self.end_group();
    }

    /// Undoes what the transactions from `first` on have done. They have touched the nodes from
    /// `touched_from` on.
    fn undo(&mut self, mut done: Done, touched_from: usize, first: CommitNumber) {
        for node in self.touched.drain(touched_from..).chain(done.changes.nodes()) {
            // SAFETY: all touched nodes belong to the memtable.
            unsafe { self.memtable.take_back(node, first) }
        }
        done.changes.discard();
        self.swept.clear();
        self.reclaimed.clear();
        if let Some(before) = done.trees_before {
            self.trees = before;
        }
        for database in done.claimed {
            if self.trees.get(database).is_none() {
                self.shared.names.give_back(database);
            }
        }
    }

    /// Makes the group visible to snapshots, now that it is on disk.
    pub(super) fn publish(&mut self) {
        let Group { frame, done, .. } = &mut self.group;
        let trees = done.trees_before.as_ref().map(|_| Arc::new(self.trees.clone()));
        self.shared.visible.publish(frame.last_sequence(), &mut done.changes, trees);
        self.publish_names();
        match self.shared.observers.has_any() {
            true => self.tell_observers(),
            false => self.follower = None,
        }
        self.end_group();
    }

    fn tell_observers(&mut self) {
        let Group { frame, done, sweeps, .. } = &mut self.group;
        let follower = self.follower.get_or_insert_with(|| {
            Follower::new(done.trees_before.take().unwrap_or_else(|| self.trees.clone()))
        });
        self.shared.observers.tell(&follower.changes(frame, sweeps));
    }

    fn end_group(&mut self) {
        self.group.frame.clear();
        self.group.done.trees_before = None;
        self.group.sweeps.clear();
        self.group.touched = 0;
        self.touched.clear();
        self.touched.shrink_to(TOUCHED_KEPT_MAX);
    }

    /// What the transaction did to the store, except for what cancels out.
    pub(super) fn operations(&self) -> impl Iterator<Item = Operation<'_>> {
        let touched = self.touched[self.group.touched..].iter().copied();
        self.done.changes.nodes().chain(touched).filter_map(|node| {
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
    pub(super) fn find(&mut self, tree: u32, key: &[u8]) -> Result<Option<&[u8]>, ReadError> {
        // SAFETY: nodes live as long as the memtable.
        let node = self.memtable.find(tree, key).map(|node| unsafe { node.as_ref() });
        match node.and_then(Node::latest) {
            Some(seen) => Ok(seen.record()),
            None => self.view.find_below(tree, key),
        }
    }

    pub(super) fn account(&mut self, bytes: usize) -> Result<(), WriteError> {
        self.writes += 1;
        self.bytes += bytes;
        self.shared.options.check_sum(self.writes, self.bytes)
    }

    /// Writes to the memtable. Returns the expiry of the version that the memtable had.
    pub(super) fn write(
        &mut self,
        tree: u32,
        key: &[u8],
        parts: Option<[&[u8]; 2]>,
    ) -> Result<Option<u64>, WriteError> {
        let noted = self.done.changes.write(&mut self.memtable, tree, key, parts, self.number)?;
        self.touched.extend(noted.touched);
        Ok(noted.old_expiry)
    }

    /// Writes a record, replacing what is there.
    #[inline]
    pub(super) fn write_record(
        &mut self,
        database: DatabaseId,
        tree: u32,
        key: &[u8],
        record: &NewRecord<'_>,
    ) -> Result<(), WriteError> {
        let header = Header::new(record, self.number);
        let old_expiry = self.write(tree, key, Some([header.as_bytes(), record.value]))?;
        self.move_expiry(database, key, old_expiry, record.expires_at_ms)
    }

    /// Updates the expiry index for a record whose expiry changes, as far as that is known.
    pub(super) fn move_expiry(
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
                self.swept = at_ms.to_be_bytes().to_vec();
            }
        }
        Ok(())
    }

    /// Removes the record under `key` if it has expired. For the sweep, which follows the index.
    pub(super) fn remove_if_expired(
        &mut self,
        database: DatabaseId,
        key: &[u8],
    ) -> Result<bool, WriteError> {
        let Some(tree) = self.trees.get(database) else { return Ok(false) };
        let now_ms = self.now_ms;
        let Some(stored) = self.find(tree, key)? else { return Ok(false) };
        let record = record::decode(stored)?;
        if record.is_live(now_ms) {
            return Ok(false);
        }
        let collection = record.collection;
        self.write(tree, key, None)?;
        collection.map_or(Ok(()), |collection| self.drop_collection(database, collection))?;
        Ok(true)
    }

    /// The statistics of a tree: what is committed plus what is not yet.
    fn total(&mut self, tree: u32) -> Result<DatabaseStatistics, ReadError> {
        let mut sum = self.shared.visible.total(tree, Counting::Exact)?;
        let frozen = self.view.tables.frozen.as_deref();
        let below = Below { frozen, disk: self.view.disk() };
        sum.add(self.group.done.changes.total(tree, &below)?);
        sum.add(self.done.changes.total(tree, &below)?);
        Ok(sum)
    }

    /// Moves on to the tables and the base as they are now.
    pub(super) fn follow_checkpoint(&mut self) -> Result<(), ReadError> {
        self.view = self.shared.visible.view(u64::MAX)?;
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
        view::check_key(database, key)?;
        let Some(tree) = self.trees.get(database) else { return Ok(None) };
        let now_ms = self.now_ms;
        live::record(self.find(tree, key)?, now_ms)
    }

    fn seek<'t>(
        &'t mut self,
        database: DatabaseId,
        from: Bound<&[u8]>,
        direction: Direction,
    ) -> Result<Option<Entry<'t>>, ReadError> {
        live::check_bound(database, from)?;
        let Some(tree) = self.trees.get(database) else { return Ok(None) };
        live::seek(&self.view, tree, from, direction, self.now_ms)
    }

    fn scan(
        &mut self,
        database: DatabaseId,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        direction: Direction,
        visit: &mut dyn FnMut(Entry<'_>) -> ControlFlow<()>,
    ) -> Result<(), ReadError> {
        live::check_bound(database, from)?;
        let Some(tree) = self.trees.get(database) else { return Ok(()) };
        live::scan(&self.view, tree, from, to, direction, self.now_ms, visit)
    }

    fn statistics(&mut self, database: DatabaseId) -> Result<DatabaseStatistics, ReadError> {
        match self.trees.get(database) {
            Some(tree) => self.total(tree),
            None => Ok(DatabaseStatistics::default()),
        }
    }

    fn request_upkeep(&mut self, database: DatabaseId, key: &[u8]) {
        self.shared.upkeep_requests.add(database, key);
    }

    fn expiring(&mut self, database: DatabaseId) -> Result<u64, ReadError> {
        let Some(tree) = self.trees.get(database) else { return Ok(0) };
        let entries = self.total(EXPIRY_TREE)?.records;
        expiring::count(&self.view, (database, tree), self.now_ms, entries)
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
        self.shared.options.check_record(database, key, record.value)?;
        self.account(key.len() + record.value.len())?;
        let tree = self.tree_or_create(database)?;
        // If the database has no elements, there is no need to look up what a put replaces.
        if record.kind != Kind::Bytes || self.trees.has_elements(database) {
            self.replace_collection(database, tree, key, &record)?;
        }
        self.write_record(database, tree, key, &record)
    }

    fn delete(&mut self, database: DatabaseId, key: &[u8]) -> Result<bool, WriteError> {
        view::check_key(database, key)?;
        let Some(tree) = self.trees.get(database) else { return Ok(false) };
        let now_ms = self.now_ms;
        let Some(stored) = self.find(tree, key)? else { return Ok(false) };
        let record = record::decode(stored)?;
        let (is_live, collection) = (record.is_live(now_ms), record.collection);
        self.account(key.len())?;
        let old_expiry = self.write(tree, key, None)?;
        self.move_expiry(database, key, old_expiry, None)?;
        collection.map_or(Ok(()), |collection| self.drop_collection(database, collection))?;
        Ok(is_live)
    }

    fn delete_existing(&mut self, database: DatabaseId, key: &[u8]) -> Result<(), WriteError> {
        view::check_key(database, key)?;
        let Some(tree) = self.trees.get(database) else { return Ok(()) };
        self.account(key.len())?;
        let old_expiry = self.write(tree, key, None)?;
        self.move_expiry(database, key, old_expiry, None)
    }

    fn rename(&mut self, database: DatabaseId, from: &[u8], to: &[u8]) -> Result<bool, WriteError> {
        let Some(tree) = self.trees.get(database) else { return Ok(false) };
        let Some(record) = self.get(database, from)? else { return Ok(false) };
        if from == to {
            return Ok(true);
        }
        let value = record.value.to_vec();
        let new = record.with_same_value(&value);
        self.shared.options.check_record(database, to, &value)?;
        self.account(from.len() + to.len() + value.len())?;
        self.delete(database, to)?;
        self.write_record(database, tree, to, &new)?;
        let old_expiry = self.write(tree, from, None)?;
        self.move_expiry(database, from, old_expiry, None)?;
        Ok(true)
    }

    fn new_collection(&mut self) -> Result<CollectionId, WriteError> {
        let id = CollectionId::new(self.number, self.collections);
        self.collections += 1;
        id.ok_or(WriteError::TooManyCollections)
    }

    fn clear(&mut self, database: DatabaseId) -> Result<(), WriteError> {
        if self.trees.get(database).is_none() {
            return Ok(());
        }
        self.account(0)?;
        self.take_tree(database.elements())?;
        match database.is_elements() {
            true => Ok(()),
            false => self.give_tree(database).map(|_| ()),
        }
    }

    fn open_database(&mut self, name: &str, max: usize) -> Result<DatabaseId, WriteError> {
        self.claim_name(name, max)
    }

    fn drop_database(&mut self, database: DatabaseId) -> Result<bool, WriteError> {
        self.drop_trees(database)
    }

    fn swap_databases(&mut self, one: DatabaseId, other: DatabaseId) -> Result<(), WriteError> {
        self.swap_trees(one, other)
    }

    fn drop_all_databases(&mut self) -> Result<(), WriteError> {
        let internal = self.shared.names.internal();
        for (_, keyspace) in self.trees.keyspaces() {
            if Some(keyspace) != internal {
                self.drop_trees(keyspace)?;
            }
        }
        Ok(())
    }

    fn reclaim(&mut self, limit: usize) -> Result<usize, WriteError> {
        self.is_sweep = true;
        sweep(self, limit.min(limits::RECLAIM_MAX))
    }

    fn take_upkeep_request(&mut self) -> Option<(DatabaseId, Vec<u8>)> {
        self.shared.upkeep_requests.take()
    }
}
