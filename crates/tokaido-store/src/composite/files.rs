//! The constant databases that are served, and the thread that notices when a file is replaced.
//!
//! Readers hold a snapshot of the list of files. A replaced file is opened and read through before
//! it enters a new list. A damaged one never does, and the old one stays.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, PoisonError, RwLock,
        mpsc::{self, RecvTimeoutError, Sender},
    },
    time::Duration,
};

use crate::{
    DatabaseStatistics, Entry, ReadError, Record,
    cdb::{Damaged, Identity, OpenError, Reader},
};

use super::MountError;

/// A page of a file ends after this many bytes, if not before, but never before its first record.
const PAGE_BYTES_MAX: usize = 1 << 20;

/// A cursor into a file has this many bits of position, and above them some bits of the file's
/// version, which tell cursors into other files apart.
const POSITION_BITS: u32 = 32;
const TAG_MASK: u64 = (1 << 20) - 1;

/// The files that are served at one moment.
pub(super) type Files = Vec<Arc<ServedFile>>;

/// A file that was checked and found undamaged.
pub(super) struct ServedFile {
    reader: Reader,
    pub(super) statistics: DatabaseStatistics,
    /// When it was modified, in microseconds. Serves as the version of its records.
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
            statistics.add(DatabaseStatistics::of_record(record.key.len(), record.value.len()));
        }
        let version = reader.identity().modified_us();
        Ok(Self { reader, statistics, version })
    }

    pub(super) fn get(&self, key: &[u8]) -> Result<Option<Record<'_>>, ReadError> {
        let found = self.reader.get(key).map_err(|damaged| self.damage(&damaged))?;
        Ok(found.map(|value| self.record(value)))
    }

    pub(super) fn get_all(
        &self,
        key: &[u8],
        visit: &mut dyn FnMut(Record<'_>),
    ) -> Result<(), ReadError> {
        for value in self.reader.get_all(key) {
            visit(self.record(value.map_err(|damaged| self.damage(&damaged))?));
        }
        Ok(())
    }

    /// The records from a cursor on, in the order of the file, duplicates included.
    pub(super) fn page(
        &self,
        cursor: u64,
        records: usize,
        visit: &mut dyn FnMut(Entry<'_>),
    ) -> Result<Option<u64>, ReadError> {
        let tag = (self.version ^ self.version >> TAG_MASK.count_ones()) & TAG_MASK;
        if cursor != 0 && cursor >> POSITION_BITS != tag {
            return Err(ReadError::CursorLost);
        }
        let position = cursor & ((1 << POSITION_BITS) - 1);
        let position = usize::try_from(position).unwrap_or(usize::MAX);
        let mut entries = self.reader.view().iter_from(position);
        let mut bytes = 0;
        for entry in entries.by_ref().take(records.max(1)) {
            let entry = entry.map_err(|damaged| self.damage(&damaged))?;
            bytes += entry.key.len() + entry.value.len();
            visit(Entry { key: entry.key, record: self.record(entry.value) });
            if bytes >= PAGE_BYTES_MAX {
                break;
            }
        }
        Ok(entries.position().map(|position| tag << POSITION_BITS | position as u64))
    }

    fn record<'f>(&self, value: &'f [u8]) -> Record<'f> {
        Record::of(value, self.version)
    }

    /// The error for damage that the check could not find, or that happened later.
    fn damage(&self, damaged: &Damaged) -> ReadError {
        ReadError::damaged(format!("{}: {damaged}", self.reader.path().display()))
    }
}

/// All files that are served.
pub(super) struct ServedFiles {
    /// `None` if there are no files.
    shared: Option<Arc<SharedFiles>>,
    /// Dropping it ends the thread.
    _stop: Sender<()>,
}

/// What the readers and the thread share: the current list.
struct SharedFiles(RwLock<Arc<Files>>);

impl ServedFiles {
    /// Opens files, given by the name of their database and their path, and starts watching them.
    pub(super) fn open(
        named: Vec<(String, PathBuf)>,
        look_interval: Duration,
    ) -> Result<Self, MountError> {
        let (_stop, stop) = mpsc::channel();
        let Some((_, first)) = named.first().cloned() else {
            return Ok(Self { shared: None, _stop });
        };
        let open = |(name, path): &(String, PathBuf)| {
            let opened = ServedFile::open(path).map(Arc::new);
            opened.map_err(|source| MountError::Cdb { name: name.clone(), source })
        };
        let files = named.iter().map(open).collect::<Result<Files, _>>()?;
        let shared = Arc::new(SharedFiles(RwLock::new(Arc::new(files))));
        let mut watch =
            Watch { refused: vec![None; named.len()], named, shared: Arc::clone(&shared) };
        let run = move || {
            while stop.recv_timeout(look_interval) == Err(RecvTimeoutError::Timeout) {
                (0..watch.named.len()).for_each(|place| watch.look(place));
            }
        };
        std::thread::Builder::new()
            .name("tokaido-cdb".to_owned())
            .spawn(run)
            .map_err(|source| MountError::Thread { path: first, source })?;
        Ok(Self { shared: Some(shared), _stop })
    }

    /// The current files; `None` if there are none.
    #[inline]
    pub(super) fn current(&self) -> Option<Arc<Files>> {
        self.shared.as_ref().map(|shared| shared.current())
    }
}

impl SharedFiles {
    fn current(&self) -> Arc<Files> {
        // The list is replaced in one assignment, so a panic cannot leave half of it.
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn replace(&self, place: usize, file: ServedFile) {
        let mut files = Files::clone(&self.current());
        files[place] = Arc::new(file);
        // Dropping the old list may unmap a file, which must not happen under the lock.
        let old = {
            let mut current = self.0.write().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *current, Arc::new(files))
        };
        drop(old);
    }
}

/// The thread that checks for replaced files.
struct Watch {
    shared: Arc<SharedFiles>,
    named: Vec<(String, PathBuf)>,
    /// What was at the path when it was last refused, so that it is refused, and logged, only once.
    refused: Vec<Option<Refused>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Refused {
    /// No file was accessible there.
    Missing,
    /// A damaged file.
    File(Identity),
}

impl Watch {
    fn look(&mut self, place: usize) {
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
        if at_path == self.shared.current()[place].reader.identity() {
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
                self.shared.replace(place, opened);
                tracing::info!(database = %name, %file, records, "the file was replaced; the new one is served");
            }
            Err(error) => {
                self.refused[place] = Some(Refused::File(at_path));
                tracing::error!(database = %name, %error, "the file was replaced by one that cannot be served; the old one still is");
            }
        }
    }
}
