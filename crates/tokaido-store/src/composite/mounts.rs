//! What is mounted beside a store: names, and what stands behind them.

use std::{path::PathBuf, sync::Arc};

use crate::{
    DatabaseId, Engine,
    cache::{self, Cache},
    check_database_name, limits,
};

use super::{MountError, files::ServedFiles};

/// A database to be mounted.
pub struct Mount {
    /// Its name, which is no longer one of the store's.
    pub name: String,
    /// What stands behind it.
    pub engine: MountEngine,
}

/// The engine of a mounted database.
pub enum MountEngine {
    /// A cache, which begins empty.
    Cache(cache::Options),
    /// A cdb file, which is read once as a whole to check it, and served; when another file takes
    /// its place, that one is.
    Cdb(PathBuf),
}

/// All that is mounted, in the order of the names' ids.
pub(super) struct Mounts {
    mounted: Vec<Mounted>,
    pub(super) files: ServedFiles,
}

struct Mounted {
    name: String,
    engine: Kind,
}

/// What stands behind a mounted database.
pub(super) enum Kind {
    Cache(Arc<Cache>),
    /// The place in the list of files.
    Cdb(usize),
}

impl Mounts {
    pub(super) fn new(mounts: Vec<Mount>) -> Result<Self, MountError> {
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
        Ok(Self { mounted, files: ServedFiles::open(files)? })
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

    pub(super) fn caches(&self) -> impl Iterator<Item = &Arc<Cache>> {
        self.mounted.iter().filter_map(|mount| match &mount.engine {
            Kind::Cache(cache) => Some(cache),
            Kind::Cdb(_) => None,
        })
    }

    /// What is mounted under an id; `None` if it is one of the inner store's.
    #[inline]
    pub(super) fn get(&self, database: DatabaseId) -> Option<&Kind> {
        self.mounted.get(database.mount()?).map(|mount| &mount.engine)
    }

    pub(super) fn engine(&self, database: DatabaseId) -> Engine<'_> {
        match self.get(database) {
            None => Engine::Transactional,
            Some(Kind::Cache(cache)) => Engine::Cache(cache),
            Some(Kind::Cdb(_)) => Engine::Cdb,
        }
    }
}
