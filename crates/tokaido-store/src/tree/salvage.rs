//! A new store of what can be read of a damaged one.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::{CommitError, DatabaseId, NewRecord, OpenError, Store, WriteError, Writer, record};

use super::{
    Options, SyncMode, TreeStore,
    check::{CheckError, CheckReport, examine},
    files::DirectoryInMaking,
    open,
};

/// Writes of one transaction of a salvage, and bytes of values.
const BATCH_WRITES: usize = 10_000;
const BATCH_BYTES: usize = 16 << 20;

/// Nothing was salvaged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SalvageError {
    /// There is something at the destination already.
    #[error("{} is there already; name a directory that is not", destination.display())]
    Exists {
        /// The destination.
        destination: PathBuf,
    },
    /// The damaged store cannot be looked at.
    #[error(transparent)]
    Check(#[from] CheckError),
    /// The new store cannot be made.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A record could not be written to the new store.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The new store could not be made durable.
    #[error(transparent)]
    Commit(#[from] CommitError),
    /// The directory of the new store cannot be made.
    #[error("cannot salvage to {}: {source}", destination.display())]
    Io {
        /// The destination.
        destination: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// What was salvaged.
#[derive(Clone, Debug)]
pub struct SalvageReport {
    /// What is wrong with the damaged store.
    pub check: CheckReport,
    /// Records in the new store.
    pub records: u64,
}

/// Makes a store in `destination` of every record that can be read of the one in `directory`, which
/// is not changed: of the base, what stands on sound pages; of the log, what comes before the first
/// damage. Records have other versions afterwards.
///
/// # Errors
/// See [`SalvageError`].
pub fn salvage(directory: &Path, destination: &Path) -> Result<SalvageReport, SalvageError> {
    let io = |source| SalvageError::Io { destination: destination.to_owned(), source };
    if fs::symlink_metadata(destination).is_ok() {
        return Err(SalvageError::Exists { destination: destination.to_owned() });
    }
    let making = DirectoryInMaking::beside(destination).map_err(io)?;
    // Nothing is acknowledged before the end, and the checkpoint there is synced.
    let options = Options { sync: SyncMode::Os, ..Options::default() };
    let store = open::open(making.path(), options)?;
    let mut salvage = Salvage {
        store: &store,
        writer: store.writer()?,
        database: None,
        databases: 0,
        writes: 0,
        bytes: 0,
        records: 0,
    };
    let mut result = Ok(());
    let check = examine(directory, &mut |name, key, stored| {
        if result.is_ok() {
            result = salvage.put(name, key, stored);
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
}

impl Salvage<'_> {
    fn put(&mut self, name: &str, key: &[u8], stored: &[u8]) -> Result<(), SalvageError> {
        let Ok(record) = record::decode(stored) else { return Ok(()) };
        let database = self.database(name)?;
        let new = NewRecord {
            value: record.value,
            flags: record.flags,
            expires_at_ms: record.expires_at_ms,
        };
        if self.writes == 0 {
            self.writer.begin()?;
        }
        match self.writer.transaction().put(database, key, new) {
            Ok(()) => self.records += 1,
            // What no store can hold is damage, too, and the report has it.
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

    fn commit(&mut self) -> Result<(), SalvageError> {
        if self.writes > 0 {
            self.writer.commit()?;
            self.writer.flush()?;
        }
        (self.writes, self.bytes) = (0, 0);
        Ok(())
    }

    /// The database of that name; one that no database can have is replaced.
    fn database(&mut self, name: &str) -> Result<DatabaseId, SalvageError> {
        if let Some((last, id)) = &self.database
            && last == name
        {
            return Ok(*id);
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
