//! The constant databases that are served, and the thread that notices when a file is replaced.
//!
//! Readers hold the whole list as it was at one moment. A replaced file is opened and read through
//! before it enters a new list; one that is damaged never does, and the old one stays.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Condvar, Mutex, PoisonError, RwLock, Weak},
    time::Duration,
};

use crate::{
    DatabaseStatistics, ReadError,
    cdb::{Damaged, Identity, OpenError, Reader, View},
};

use super::MountError;

/// The files as they are served at one moment.
pub(super) type Files = Vec<Arc<ServedFile>>;

/// A file that was found sound.
pub(super) struct ServedFile {
    reader: Reader,
    pub(super) statistics: DatabaseStatistics,
    /// When it was changed, in microseconds: what its records have as their version.
    pub(super) version: u64,
}

impl ServedFile {
    /// Opens a file and reads all of it, since the format has no checksums.
    fn open(path: &Path) -> Result<Self, OpenError> {
        let reader = Reader::open(path)?;
        let damaged = |source| OpenError::Damaged { path: path.to_owned(), source };
        let mut statistics = DatabaseStatistics::default();
        for record in reader.iter() {
            let record = record.map_err(damaged)?;
            statistics.records += 1;
            statistics.key_bytes += record.key.len() as u64;
            statistics.value_bytes += record.value.len() as u64;
        }
        let version = reader.identity().modified_us();
        Ok(Self { reader, statistics, version })
    }

    #[inline]
    pub(super) fn view(&self) -> View<'_> {
        self.reader.view()
    }

    /// What a reader is told of damage that the check could not see, or that came later.
    pub(super) fn damage(&self, damaged: &Damaged) -> ReadError {
        ReadError::Damaged { what: format!("{}: {damaged}", self.reader.path().display()) }
    }
}

/// All files that are served.
pub(super) struct ServedFiles {
    /// `None` without any.
    shared: Option<Arc<Shared>>,
}

/// What the readers and the thread share.
struct Shared {
    current: RwLock<Arc<Files>>,
    look_interval: Duration,
    is_stopping: Mutex<bool>,
    stop: Condvar,
}

impl ServedFiles {
    /// Opens files, given by the name of their database and their path, and begins to look after
    /// them.
    pub(super) fn open(
        named: Vec<(String, PathBuf)>,
        look_interval: Duration,
    ) -> Result<Self, MountError> {
        let Some((_, first)) = named.first().cloned() else { return Ok(Self { shared: None }) };
        let open = |(name, path): &(String, PathBuf)| {
            let opened = ServedFile::open(path).map(Arc::new);
            opened.map_err(|source| MountError::Cdb { name: name.clone(), source })
        };
        let files = named.iter().map(open).collect::<Result<Files, _>>()?;
        let shared = Arc::new(Shared {
            current: RwLock::new(Arc::new(files)),
            look_interval,
            is_stopping: Mutex::new(false),
            stop: Condvar::new(),
        });
        let watched = Watch { refused: vec![None; named.len()], named };
        let mine = Arc::downgrade(&shared);
        std::thread::Builder::new()
            .name("tokaido-cdb".to_owned())
            .spawn(move || watched.run(&mine))
            .map_err(|source| MountError::Thread { path: first, source })?;
        Ok(Self { shared: Some(shared) })
    }

    /// The files as they are now; `None` if there are none.
    #[inline]
    pub(super) fn current(&self) -> Option<Arc<Files>> {
        self.shared.as_ref().map(|shared| shared.current())
    }
}

impl Drop for ServedFiles {
    fn drop(&mut self) {
        if let Some(shared) = &self.shared {
            *shared.is_stopping.lock().unwrap_or_else(PoisonError::into_inner) = true;
            shared.stop.notify_all();
        }
    }
}

impl Shared {
    fn current(&self) -> Arc<Files> {
        // The list is exchanged in one assignment, so a panic cannot leave half of it.
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn replace(&self, place: usize, file: ServedFile) {
        let mut files = Files::clone(&self.current());
        files[place] = Arc::new(file);
        // Dropping the old list may unmap a file, which must not happen under the lock.
        let old = {
            let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *current, Arc::new(files))
        };
        drop(old);
    }

    /// Waits for the next look; tells whether there is to be one.
    fn wait(&self) -> bool {
        let is_stopping = self.is_stopping.lock().unwrap_or_else(PoisonError::into_inner);
        let waited =
            self.stop.wait_timeout_while(is_stopping, self.look_interval, |stopping| !*stopping);
        !*waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// The thread that looks for replaced files.
struct Watch {
    named: Vec<(String, PathBuf)>,
    /// What stood at the path when it was last refused, so that it is refused, and logged, once.
    refused: Vec<Option<Refused>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Refused {
    /// There was nothing that could be looked at.
    Missing,
    /// A damaged file.
    File(Identity),
}

impl Watch {
    fn run(mut self, shared: &Weak<Shared>) {
        while let Some(shared) = shared.upgrade()
            && shared.wait()
        {
            for place in 0..self.named.len() {
                self.look(place, &shared);
            }
        }
    }

    fn look(&mut self, place: usize, shared: &Shared) {
        let (name, path) = &self.named[place];
        let file = path.display();
        let at_path = match Identity::at(path) {
            Ok(identity) => identity,
            Err(error) => {
                if self.refused[place].replace(Refused::Missing) != Some(Refused::Missing) {
                    tracing::warn!(database = %name, %file, %error, "the file cannot be looked at; what it held is still served");
                }
                return;
            }
        };
        if at_path == shared.current()[place].reader.identity() {
            self.refused[place] = None;
            return;
        }
        if self.refused[place] == Some(Refused::File(at_path)) {
            return;
        }
        match ServedFile::open(path) {
            Ok(opened) => {
                let records = opened.statistics.records;
                self.refused[place] = None;
                shared.replace(place, opened);
                tracing::info!(database = %name, %file, records, "the file was replaced; the new one is served");
            }
            Err(error) => {
                self.refused[place] = Some(Refused::File(at_path));
                tracing::error!(database = %name, %error, "the file was replaced by one that cannot be served; the old one still is");
            }
        }
    }
}
