//! A log whose syncs take a while, are counted, and fail when told to.

use std::{
    io,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    thread,
    time::Duration,
};

use tokaido_store::{
    Embedded, open_with,
    tree::{DirectoryStorage, LogFile, LogStorage, Options},
};

struct SlowLog {
    storage: DirectoryStorage,
    syncs: Arc<AtomicUsize>,
    is_broken: Arc<AtomicBool>,
}

struct SlowFile {
    file: Box<dyn LogFile>,
    /// What was written since the last sync. It is not in the file yet, so that a failed sync
    /// loses it, and a false acknowledgement is noticed.
    unsynced: Mutex<Vec<(u64, Vec<u8>)>>,
    syncs: Arc<AtomicUsize>,
    is_broken: Arc<AtomicBool>,
}

impl SlowLog {
    fn new(directory: &Path) -> Self {
        let storage = DirectoryStorage::new(directory).unwrap();
        Self { storage, syncs: Arc::default(), is_broken: Arc::default() }
    }

    fn slow(&self, file: Box<dyn LogFile>) -> Box<dyn LogFile> {
        let (syncs, is_broken) = (Arc::clone(&self.syncs), Arc::clone(&self.is_broken));
        Box::new(SlowFile { file, unsynced: Mutex::default(), syncs, is_broken })
    }
}

impl LogStorage for SlowLog {
    fn list(&self) -> io::Result<Vec<u64>> {
        self.storage.list()
    }
    fn create(&self, segment: u64) -> io::Result<Box<dyn LogFile>> {
        Ok(self.slow(self.storage.create(segment)?))
    }
    fn open(&self, segment: u64) -> io::Result<Box<dyn LogFile>> {
        Ok(self.slow(self.storage.open(segment)?))
    }
    fn read(&self, segment: u64) -> io::Result<Vec<u8>> {
        self.storage.read(segment)
    }
    fn remove(&self, segment: u64) -> io::Result<()> {
        self.storage.remove(segment)
    }
    fn sync_directory(&self) -> io::Result<()> {
        self.storage.sync_directory()
    }
}

impl LogFile for SlowFile {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.unsynced.lock().unwrap().push((offset, bytes.to_vec()));
        Ok(())
    }
    fn sync(&self) -> io::Result<()> {
        self.syncs.fetch_add(1, SeqCst);
        thread::sleep(Duration::from_millis(2));
        if self.is_broken.load(SeqCst) {
            return Err(io::Error::other("the disk is gone"));
        }
        for (offset, bytes) in self.unsynced.lock().unwrap().drain(..) {
            self.file.write_at(&bytes, offset)?;
        }
        self.file.sync()
    }
    fn truncate(&self, len: u64) -> io::Result<()> {
        self.file.truncate(len)
    }
}

/// A store on such a log, the number of its syncs, and the switch that breaks it.
pub(crate) fn on_slow_log(directory: &Path) -> (Embedded, Arc<AtomicUsize>, Arc<AtomicBool>) {
    let log = SlowLog::new(directory);
    let (syncs, is_broken) = (Arc::clone(&log.syncs), Arc::clone(&log.is_broken));
    let options = Options { log: Some(Arc::new(log)), ..Options::default() };
    (open_with(directory, options).unwrap(), syncs, is_broken)
}
