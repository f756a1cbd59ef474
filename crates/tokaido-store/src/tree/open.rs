//! Opening a store: the lock, the file, the format, the databases.

use std::{
    fs::{self, File, TryLockError},
    io,
    path::Path,
};

use crate::{OpenError, ReadError};

use super::{
    catalog::{self, Names, Trees},
    layout,
    lmdb::{Dbi, Environment, EnvironmentOptions, Insert, LmdbError, WriteTxn},
    options::Options,
    store::{Parts, TreeStore},
    writer::Committed,
};

/// The file that the process which has the store keeps locked.
const LOCK_FILE: &str = "tokaido.lock";

/// Opens the store in `directory`, and makes both if they are not there.
///
/// # Errors
/// See [`OpenError`].
pub fn open(directory: &Path, options: Options) -> Result<TreeStore, OpenError> {
    let io_error = |source| OpenError::Io { directory: directory.to_owned(), source };
    fs::create_dir_all(directory).map_err(io_error)?;
    let lock = lock(directory)?;
    let opening = Opening { directory };
    let environment = opening.environment(&options)?;
    let mut txn = environment.write().map_err(|error| opening.failed(error))?;
    let contents = opening.contents(&mut txn)?;
    txn.commit().map_err(|error| opening.failed(error))?;
    // The files may be new: they must be found after a power failure.
    File::open(directory).and_then(|handle| handle.sync_all()).map_err(io_error)?;
    let Contents { meta, expiry, names, trees, committed } = contents;
    Ok(TreeStore::new(Parts {
        environment,
        clock: options.clock,
        names,
        trees,
        meta,
        expiry,
        committed,
        directory: directory.to_owned(),
        lock,
    }))
}

fn lock(directory: &Path) -> Result<File, OpenError> {
    let io_error = |source| OpenError::Io { directory: directory.to_owned(), source };
    let mut options = File::options();
    let file = options.create(true).write(true).truncate(false).open(directory.join(LOCK_FILE));
    let file = file.map_err(io_error)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(OpenError::Locked { directory: directory.to_owned() }),
        Err(TryLockError::Error(source)) => Err(io_error(source)),
    }
}

struct Opening<'d> {
    directory: &'d Path,
}

struct Contents {
    meta: Dbi,
    expiry: Dbi,
    names: Names,
    trees: Trees,
    committed: Committed,
}

impl Opening<'_> {
    fn failed(&self, error: LmdbError) -> OpenError {
        let directory = self.directory.to_owned();
        match error.system() {
            Some(code) => OpenError::Io { directory, source: io::Error::from_raw_os_error(code) },
            None => OpenError::Damaged { directory, what: error.to_string() },
        }
    }

    fn damaged(&self, what: &str) -> OpenError {
        OpenError::Damaged { directory: self.directory.to_owned(), what: what.to_owned() }
    }

    fn environment(&self, options: &Options) -> Result<Environment, OpenError> {
        // The trees, `meta`, `expiry`, and room for the look at the name after the last tree.
        let databases_max = layout::TREES_MAX + 3;
        let options = EnvironmentOptions {
            map_size: options.size_max,
            readers_max: options.snapshots_max,
            databases_max: databases_max as u32,
        };
        Environment::open(self.directory, &options).map_err(|error| self.failed(error))
    }

    fn contents(&self, txn: &mut WriteTxn) -> Result<Contents, OpenError> {
        let meta = txn.create_database(layout::META).map_err(|error| self.failed(error))?;
        let expiry = txn.create_database(layout::EXPIRY).map_err(|error| self.failed(error))?;
        self.check_format(txn, meta)?;
        let number = match self.number(txn, meta, layout::COMMIT_KEY)? {
            None => 0,
            Some(bytes) => u64::from_le_bytes(bytes),
        };
        let trees = self.trees(txn)?;
        let entries = catalog::read_entries(txn, meta).map_err(|error| match error {
            ReadError::Damaged { what } => self.damaged(&what),
            other => self.damaged(&other.to_string()),
        })?;
        let is_missing = |tree: u32| tree as usize >= trees.len();
        if entries.iter().any(|(entry, _)| entry.tree.is_some_and(is_missing)) {
            return Err(self.damaged("a database whose tree is missing"));
        }
        let (databases, names) = entries.into_iter().unzip();
        Ok(Contents {
            meta,
            expiry,
            names: Names::new(names),
            trees: Trees::new(trees),
            committed: Committed { databases, number },
        })
    }

    /// Checks the version of the format, or marks a new store with it.
    fn check_format(&self, txn: &mut WriteTxn, meta: Dbi) -> Result<(), OpenError> {
        let known = layout::FORMAT_VERSION;
        match self.number(txn, meta, layout::FORMAT_KEY)?.map(u32::from_le_bytes) {
            Some(found) if found == known => Ok(()),
            Some(found) => {
                let directory = self.directory.to_owned();
                Err(OpenError::Version { directory, found, known })
            }
            None => {
                let bytes = known.to_le_bytes();
                match txn.insert(meta, layout::FORMAT_KEY, bytes.len()) {
                    Ok(Insert::Vacant(room)) => room.copy_from_slice(&bytes),
                    Ok(Insert::Occupied(_)) => {}
                    Err(error) => return Err(self.failed(error)),
                }
                Ok(())
            }
        }
    }

    /// A number of `N` bytes in `meta`.
    fn number<const N: usize>(
        &self,
        txn: &mut WriteTxn,
        meta: Dbi,
        key: &[u8],
    ) -> Result<Option<[u8; N]>, OpenError> {
        let stored = txn.find(meta, key).map_err(|error| self.failed(error))?;
        stored
            .map(|bytes| bytes.try_into().map_err(|_| self.damaged("a number of a wrong length")))
            .transpose()
    }

    /// Opens every tree; they are numbered without gaps.
    fn trees(&self, txn: &mut WriteTxn) -> Result<Vec<Dbi>, OpenError> {
        let mut trees = Vec::new();
        loop {
            let name = layout::tree_name(trees.len() as u32);
            match txn.find_database(&name).map_err(|error| self.failed(error))? {
                Some(dbi) => trees.push(dbi),
                None => return Ok(trees),
            }
        }
    }
}
