//! A writer that maintains the indexes of tables, in the same transaction as each write to a row.

use std::{
    ops::{Bound, ControlFlow},
    sync::Arc,
};

use tokaido_store::{
    Amendment, CollectionId, CommitError, CommitNumber, DatabaseId, DatabaseStatistics, Direction,
    Entry, NewRecord, ReadError, ReadTransaction, Record, WriteError, WriteTransaction, Writer,
};

use crate::{TableError, Tables, build, declaration::Declaration, indexing::Indexed, sequence};

/// The writer of a store with tables.
pub(crate) struct TableWriter {
    inner: Box<dyn Writer>,
    tables: Arc<Tables>,
    /// For each table, what the transaction knows about its indexes.
    known: Vec<Known>,
    /// Tables whose indexes could not be built further; retried when an index is set.
    stuck: Vec<DatabaseId>,
    /// The number of the current or the last transaction.
    number: CommitNumber,
    now_ms: u64,
}

/// What a transaction knows about a table.
#[derive(Clone)]
enum Known {
    /// It has not looked yet, or what it knew is out of date.
    Nothing,
    /// There are no indexes.
    None,
    /// There are some.
    Indexes(Arc<Declaration>),
}

impl TableWriter {
    pub(crate) fn new(inner: Box<dyn Writer>, tables: Arc<Tables>) -> Self {
        let known = vec![Known::Nothing; tables.ids().len()];
        Self { inner, tables, known, stuck: Vec::new(), number: 0, now_ms: 0 }
    }

    fn within(&mut self) -> &mut dyn WriteTransaction {
        self.inner.transaction()
    }

    /// The indexes of a database, if it is a table with indexes.
    #[inline]
    fn indexes(&mut self, database: DatabaseId) -> Result<Option<Arc<Declaration>>, ReadError> {
        match self.tables.place(database) {
            Some(place) => self.indexes_of_table(database, place),
            None => Ok(None),
        }
    }

    fn indexes_of_table(
        &mut self,
        database: DatabaseId,
        place: usize,
    ) -> Result<Option<Arc<Declaration>>, ReadError> {
        if matches!(self.known[place], Known::Nothing) {
            let found = Declaration::read(self.within(), database)?;
            let found = found.filter(|found| !found.indexes.is_empty());
            self.known[place] = found.map_or(Known::None, |found| Known::Indexes(found.into()));
        }
        match &self.known[place] {
            Known::Indexes(indexes) => Ok(Some(Arc::clone(indexes))),
            Known::None | Known::Nothing => Ok(None),
        }
    }

    fn forget_all(&mut self) {
        self.known.fill(Known::Nothing);
    }

    /// Forgets what it knows about a table whose declaration is written.
    fn forget_declaration(&mut self, database: DatabaseId, key: &[u8]) {
        if database.is_elements() && key == Declaration::key() {
            self.forget_all();
            self.stuck.clear();
        }
    }

    /// Continues building and removing the indexes of a table. A failure is not retried over and
    /// over, since it would also fail the removals in the same transaction.
    fn advance(&mut self, table: DatabaseId, steps: usize) -> Result<usize, WriteError> {
        if self.stuck.contains(&table) {
            return Ok(0);
        }
        build::advance(self, table, steps).map_err(|error| {
            self.stuck.push(table);
            match error {
                TableError::Write(error) => error,
                error => WriteError::Engine { message: error.to_string() },
            }
        })
    }
}

impl ReadTransaction for TableWriter {
    fn now_ms(&self) -> u64 {
        self.now_ms
    }

    fn get<'t>(
        &'t mut self,
        database: DatabaseId,
        key: &[u8],
    ) -> Result<Option<Record<'t>>, ReadError> {
        self.within().get(database, key)
    }

    fn get_many(
        &mut self,
        database: DatabaseId,
        keys: &[&[u8]],
        visit: &mut dyn FnMut(usize, Option<Record<'_>>),
    ) -> Result<(), ReadError> {
        self.within().get_many(database, keys, visit)
    }

    fn get_all(
        &mut self,
        database: DatabaseId,
        key: &[u8],
        visit: &mut dyn FnMut(Record<'_>),
    ) -> Result<(), ReadError> {
        self.within().get_all(database, key, visit)
    }

    fn seek<'t>(
        &'t mut self,
        database: DatabaseId,
        from: Bound<&[u8]>,
        direction: Direction,
    ) -> Result<Option<Entry<'t>>, ReadError> {
        self.within().seek(database, from, direction)
    }

    fn request_upkeep(&mut self, database: DatabaseId, key: &[u8]) {
        self.within().request_upkeep(database, key);
    }

    fn page(
        &mut self,
        database: DatabaseId,
        cursor: u64,
        records: usize,
        visit: &mut dyn FnMut(Entry<'_>),
    ) -> Result<Option<u64>, ReadError> {
        self.within().page(database, cursor, records, visit)
    }

    fn scan(
        &mut self,
        database: DatabaseId,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        direction: Direction,
        visit: &mut dyn FnMut(Entry<'_>) -> ControlFlow<()>,
    ) -> Result<(), ReadError> {
        self.within().scan(database, from, to, direction, visit)
    }

    fn statistics(&mut self, database: DatabaseId) -> Result<DatabaseStatistics, ReadError> {
        self.within().statistics(database)
    }

    fn expiring(&mut self, database: DatabaseId) -> Result<u64, ReadError> {
        self.within().expiring(database)
    }
}

impl WriteTransaction for TableWriter {
    fn number(&self) -> CommitNumber {
        self.number
    }

    fn put(
        &mut self,
        database: DatabaseId,
        key: &[u8],
        record: NewRecord<'_>,
    ) -> Result<(), WriteError> {
        self.forget_declaration(database, key);
        let Some(indexes) = self.indexes(database)? else {
            return self.within().put(database, key, record);
        };
        let tx = self.within();
        let old = Indexed::find(tx, &indexes, database, key)?;
        let new = Indexed::new(&indexes, key, &record)?;
        tx.put(database, key, record)?;
        old.replace(tx, database, key, &new)
    }

    fn delete(&mut self, database: DatabaseId, key: &[u8]) -> Result<bool, WriteError> {
        self.forget_declaration(database, key);
        let Some(indexes) = self.indexes(database)? else {
            return self.within().delete(database, key);
        };
        let tx = self.within();
        Indexed::find(tx, &indexes, database, key)?.remove(tx, database)?;
        tx.delete(database, key)
    }

    fn amend(
        &mut self,
        database: DatabaseId,
        key: &[u8],
        amendment: Amendment,
    ) -> Result<Option<CommitNumber>, WriteError> {
        let Some(indexes) = self.indexes(database)? else {
            return self.within().amend(database, key, amendment);
        };
        let tx = self.within();
        let old = Indexed::find(tx, &indexes, database, key)?;
        let amended = tx.amend(database, key, amendment)?;
        if amended.is_some() {
            old.replace(tx, database, key, &old.expiring(amendment.expires_at_ms))?;
        }
        Ok(amended)
    }

    fn delete_existing(&mut self, database: DatabaseId, key: &[u8]) -> Result<(), WriteError> {
        self.forget_declaration(database, key);
        match self.indexes(database)? {
            None => self.within().delete_existing(database, key),
            Some(_) => self.delete(database, key).map(|_| ()),
        }
    }

    fn rename(&mut self, database: DatabaseId, from: &[u8], to: &[u8]) -> Result<bool, WriteError> {
        let Some(indexes) = self.indexes(database)?.filter(|_| from != to) else {
            return self.within().rename(database, from, to);
        };
        let tx = self.within();
        let moved = Indexed::find(tx, &indexes, database, from)?;
        let replaced = Indexed::find(tx, &indexes, database, to)?;
        if !tx.rename(database, from, to)? {
            return Ok(false);
        }
        moved.remove(tx, database)?;
        let new = Indexed::find(tx, &indexes, database, to)?;
        replaced.replace(tx, database, to, &new)?;
        Ok(true)
    }

    fn new_collection(&mut self) -> Result<CollectionId, WriteError> {
        self.within().new_collection()
    }

    /// Keeps the indexes and the sequence.
    fn clear(&mut self, database: DatabaseId) -> Result<(), WriteError> {
        if !self.tables.has(database) {
            return self.within().clear(database);
        }
        let tx = self.within();
        let declaration = Declaration::read(tx, database)?;
        let elements = database.elements();
        let last = tx.get(elements, &sequence::key())?.map(|record| record.value.to_vec());
        tx.clear(database)?;
        if let Some(declaration) = declaration {
            declaration.cleared().write(tx, database)?;
        }
        if let Some(last) = last {
            tx.put(elements, &sequence::key(), NewRecord::of(&last))?;
        }
        self.forget_all();
        Ok(())
    }

    fn open_database(&mut self, name: &str, max: usize) -> Result<DatabaseId, WriteError> {
        self.within().open_database(name, max)
    }

    fn drop_database(&mut self, database: DatabaseId) -> Result<bool, WriteError> {
        self.forget_all();
        self.within().drop_database(database)
    }

    /// The indexes move with the rows. So a table with indexes can be swapped only with tables: in
    /// any other database, they would not be maintained.
    fn swap_databases(&mut self, one: DatabaseId, other: DatabaseId) -> Result<(), WriteError> {
        let (one_is, other_is) = (self.tables.has(one), self.tables.has(other));
        let has_indexes = self.indexes(one)?.is_some() || self.indexes(other)?.is_some();
        if one_is != other_is && has_indexes {
            let message = "a table with indexes is swapped with tables only; remove its indexes, or \
                           declare the other database as a table";
            return Err(WriteError::Engine { message: message.to_owned() });
        }
        self.forget_all();
        self.within().swap_databases(one, other)
    }

    fn drop_all_databases(&mut self) -> Result<(), WriteError> {
        self.forget_all();
        self.within().drop_all_databases()
    }

    /// Also builds and removes indexes further. Each of their rows or entries counts as a record.
    fn reclaim(&mut self, limit: usize) -> Result<usize, WriteError> {
        let mut done = self.within().reclaim(limit)?;
        let tables = Arc::clone(&self.tables);
        for place in 0..tables.ids().len() {
            if done >= limit {
                break;
            }
            let table = tables.ids()[place];
            done += self.advance(table, limit - done)?;
        }
        Ok(done.min(limit))
    }

    fn take_upkeep_request(&mut self) -> Option<(DatabaseId, Vec<u8>)> {
        self.within().take_upkeep_request()
    }
}

impl Writer for TableWriter {
    fn begin(&mut self) -> Result<&mut dyn WriteTransaction, WriteError> {
        self.forget_all();
        let transaction = self.inner.begin()?;
        (self.number, self.now_ms) = (transaction.number(), transaction.now_ms());
        Ok(self)
    }

    fn transaction(&mut self) -> &mut dyn WriteTransaction {
        // Panics without one, as it should.
        self.inner.transaction();
        self
    }

    fn commit(&mut self) -> Result<CommitNumber, CommitError> {
        self.inner.commit()
    }

    fn rollback(&mut self) -> Result<(), CommitError> {
        self.inner.rollback()
    }

    fn flush(&mut self) -> Result<(), CommitError> {
        self.inner.flush()
    }

    fn tidy(&mut self) -> Result<(), WriteError> {
        self.inner.tidy()
    }

    fn may_wait(&self) -> bool {
        self.inner.may_wait()
    }
}
