//! Makes a new store from what can be read of a damaged one.

use std::{collections::HashMap, fs, path::Path};

use super::{
    UpkeepError,
    check::{CheckReport, examine, keep_still},
};
use crate::{
    CollectionId, DatabaseId, Record, Store, WriteError, Writer,
    database::INTERNAL_NAME,
    limits,
    tree::{Options, SyncMode, TreeStore, files::DirectoryInMaking, open},
};

/// Writes of one transaction of a salvage, and bytes of values.
const BATCH_WRITES: usize = 10_000;
const BATCH_BYTES: usize = 16 << 20;

/// What was salvaged.
#[derive(Clone, Debug)]
pub struct SalvageReport {
    /// What is wrong with the damaged store.
    pub check: CheckReport,
    /// Records in the new store.
    pub records: u64,
}

/// Makes a store in `destination` from every record that can be read of the one in `directory`,
/// which is not changed: from the base, records on sound pages; from the log, those before the
/// first damage. Records have other versions afterwards.
///
/// # Errors
/// See [`UpkeepError`].
pub fn salvage(directory: &Path, destination: &Path) -> Result<SalvageReport, UpkeepError> {
    let io = UpkeepError::io("salvage to", destination);
    if fs::symlink_metadata(destination).is_ok() {
        return Err(UpkeepError::Exists { destination: destination.to_owned() });
    }
    let making = DirectoryInMaking::beside(destination).map_err(&io)?;
    // Nothing is acknowledged before the end, and the checkpoint there is synced. Without runs, no merge follows it.
    let options = Options {
        sync: SyncMode::Os,
        databases_max: limits::DATABASES_MAX,
        runs_from_bytes: u64::MAX,
        ..Options::default()
    };
    let store = open::open(making.path(), options)?;
    let mut salvage = Salvage {
        store: &store,
        writer: store.writer()?,
        database: None,
        databases: 0,
        writes: 0,
        bytes: 0,
        records: 0,
        collections: HashMap::new(),
    };
    let mut result = Ok(());
    let _still = keep_still(directory)?;
    let check = examine(directory, &mut |name, keyspace, key, record| {
        if result.is_ok() {
            result = salvage.put(name, keyspace, key, record);
        }
    })?;
    result?;
    salvage.commit()?;
    let records = salvage.records;
    drop(salvage);
    store.checkpoint()?;
    drop(store);
    making.become_target(destination).map_err(io)?;
    Ok(SalvageReport { check, records })
}

/// A keyspace of elements, and the number of a collection.
type Collection = (DatabaseId, CollectionId);

struct Salvage<'s> {
    store: &'s TreeStore,
    writer: Box<dyn Writer + 's>,
    /// The database that the last record went to, by its name in the damaged store.
    database: Option<(String, DatabaseId)>,
    databases: usize,
    /// Of the open transaction.
    writes: usize,
    bytes: usize,
    records: u64,
    /// The collections of the damaged store, and their counterparts in the new one.
    collections: HashMap<Collection, Collection>,
}

impl Salvage<'_> {
    fn put(
        &mut self,
        name: &str,
        keyspace: DatabaseId,
        key: &[u8],
        record: &Record<'_>,
    ) -> Result<(), UpkeepError> {
        let mut new = record.with_same_value(record.value);
        let (database, key) = match keyspace.is_elements() {
            false => (self.database(name)?, key.to_vec()),
            true if key.starts_with(&DatabaseId::LASTING_ELEMENTS) => {
                (self.database(name)?.elements(), key.to_vec())
            }
            true => match self.element(keyspace, key) {
                Some(place) => place,
                // The elements of a record that could not be read are lost with it.
                None => return Ok(()),
            },
        };
        if self.writes == 0 {
            self.writer.begin()?;
        }
        if let Some(old) = record.collection {
            let collection = self.writer.transaction().new_collection()?;
            self.collections.insert((keyspace.elements(), old), (database.elements(), collection));
            new.collection = Some(collection);
        }
        match self.writer.transaction().put(database, &key, new) {
            Ok(()) => self.records += u64::from(!keyspace.is_elements()),
            // A record that no store can hold is damage, too, and is in the report.
            Err(WriteError::ValueLength { .. } | WriteError::Read(_)) => {}
            Err(error) => return Err(error.into()),
        }
        self.writes += 1;
        self.bytes += key.len() + record.value.len();
        if self.writes >= BATCH_WRITES || self.bytes >= BATCH_BYTES {
            self.commit()?;
        }
        Ok(())
    }

    /// Keyspace and key of an element in the new store; `None` if it has no collection there.
    fn element(&self, elements: DatabaseId, key: &[u8]) -> Option<(DatabaseId, Vec<u8>)> {
        let (number, own) = key.split_first_chunk()?;
        let old = CollectionId::from_number(u64::from_be_bytes(*number))?;
        let (elements, new) = self.collections.get(&(elements, old))?;
        Some((*elements, [&new.prefix(), own].concat()))
    }

    fn commit(&mut self) -> Result<(), UpkeepError> {
        if self.writes > 0 {
            self.writer.commit()?;
            self.writer.flush()?;
        }
        (self.writes, self.bytes) = (0, 0);
        Ok(())
    }

    /// The database of that name; a name that no database can have is replaced.
    fn database(&mut self, name: &str) -> Result<DatabaseId, UpkeepError> {
        if let Some((last, id)) = &self.database
            && last == name
        {
            return Ok(*id);
        }
        if name == INTERNAL_NAME
            && let Some(id) = self.store.internal_database()
        {
            self.database = Some((name.to_owned(), id));
            return Ok(id);
        }
        self.databases += 1;
        let id = self.store.database(name).or_else(|_| {
            let name = format!("salvaged-{}", self.databases);
            self.store.database(&name)
        });
        let id = id.map_err(|error| WriteError::Engine { message: error.to_string() })?;
        self.database = Some((name.to_owned(), id));
        Ok(id)
    }
}
