//! What is mounted beside a store: names, and the engines behind them.

use std::{path::PathBuf, sync::Arc};

use crate::{
    DatabaseId,
    cache::{self, Cache},
    check_database_name, limits,
};

use super::{MountError, Options, files::ServedFiles};

/// A database to be mounted.
pub struct Mount {
    /// Its name, which no longer refers to a database of the store.
    pub name: String,
    /// The engine behind it.
    pub engine: MountEngine,
}

/// The engine of a mounted database.
pub enum MountEngine {
    /// A cache, which starts empty.
    Cache(cache::Options),
    /// A cdb file. It is read as a whole once, to check it, and then served. When another file
    /// replaces it, that one is served.
    Cdb(PathBuf),
}

/// All that is mounted, in the order of the ids.
pub(super) struct Mounts {
    mounted: Vec<Mounted>,
    pub(super) files: ServedFiles,
    sweep_records_max: usize,
}

struct Mounted {
    name: String,
    engine: Kind,
}

/// The engine behind a mounted database.
pub(super) enum Kind {
    Cache(Arc<Cache>),
    /// The index in the list of files.
    Cdb(usize),
}

impl Mounts {
    pub(super) fn new(mounts: Vec<Mount>, options: Options) -> Result<Self, MountError> {
        if mounts.len() > limits::MOUNTS_MAX {
            return Err(MountError::TooMany { count: mounts.len() });
        }
        let mut mounted: Vec<Mounted> = Vec::new();
        let mut files = Vec::new();
        for Mount { name, engine } in mounts {
            check_database_name(&name)?;
            if mounted.iter().any(|other| other.name == name) {
                return Err(MountError::Twice { name });
            }
            let engine = match engine {
                MountEngine::Cache(options) => match Cache::new(options) {
                    Ok(cache) => Kind::Cache(Arc::new(cache)),
                    Err(source) => return Err(MountError::Cache { name, source }),
                },
                MountEngine::Cdb(path) => {
                    files.push((name.clone(), path));
                    Kind::Cdb(files.len() - 1)
                }
            };
            mounted.push(Mounted { name, engine });
        }
        let files = ServedFiles::open(files, options.look_interval)?;
        Ok(Self { mounted, files, sweep_records_max: options.sweep_records_max })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.mounted.is_empty()
    }

    pub(super) fn find(&self, name: &str) -> Option<DatabaseId> {
        self.mounted.iter().position(|mount| mount.name == name).map(DatabaseId::from_mount)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = (DatabaseId, &str)> {
        let named = self.mounted.iter().enumerate();
        named.map(|(slot, mount)| (DatabaseId::from_mount(slot), mount.name.as_str()))
    }

    /// Removes some expired records from the caches.
    pub(super) fn sweep(&self) {
        for mount in &self.mounted {
            if let Kind::Cache(cache) = &mount.engine {
                cache.remove_expired(self.sweep_records_max);
            }
        }
    }

    /// What is mounted under an id; `None` for databases of the inner store, and for the elements
    /// keyspace of a mounted database, which has no elements.
    #[inline]
    pub(super) fn get(&self, database: DatabaseId) -> Option<&Kind> {
        let slot = database.mount().filter(|_| !database.is_elements())?;
        self.mounted.get(slot).map(|mount| &mount.engine)
    }
}
