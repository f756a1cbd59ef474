//! A disk for the log that tests can inspect: it keeps what was written apart from what was
//! synced, loses power on demand, and fails when told to.

use std::{
    collections::BTreeMap,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokaido_store::tree::{LogFile, LogStorage};

use crate::fate::{Change, Fate, apply, tear};

#[derive(Clone, Debug, Default)]
struct FileState {
    synced: Vec<u8>,
    /// In the order of the calls.
    unsynced: Vec<Change>,
    /// Whether the directory that names it was synced.
    is_named: bool,
}

#[derive(Default)]
struct DiskState {
    files: BTreeMap<u64, FileState>,
    /// Taken before each sync takes effect: what the disk may hold if the power fails there.
    moments: Vec<Moment>,
    /// How many calls succeed before one fails, and how it fails.
    failure: Option<(usize, Failure)>,
    calls: usize,
}

/// The state of a disk at the moment of a sync.
#[derive(Clone)]
pub(crate) struct Moment {
    files: BTreeMap<u64, FileState>,
    /// What the test had seen acknowledged by then.
    pub(crate) acknowledged: u64,
}

/// How a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The call does nothing.
    NoSpace,
    /// A write does half of what it should, then the disk is full.
    ShortWrite,
    /// An input/output error, also of a sync.
    Broken,
}

/// The disk. Clones are the same disk.
#[derive(Clone, Default)]
pub(crate) struct Disk {
    state: Arc<Mutex<DiskState>>,
    /// Set by the test after each acknowledgement.
    pub(crate) acknowledged: Arc<std::sync::atomic::AtomicU64>,
}

impl Disk {
    fn lock(&self) -> MutexGuard<'_, DiskState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A disk that holds these files, durably.
    pub(crate) fn of(files: BTreeMap<u64, Vec<u8>>) -> Self {
        let disk = Self::default();
        let named = |synced| FileState { synced, unsynced: Vec::new(), is_named: true };
        disk.lock().files = files.into_iter().map(|(n, bytes)| (n, named(bytes))).collect();
        disk
    }

    pub(crate) fn take_moments(&self) -> Vec<Moment> {
        std::mem::take(&mut self.lock().moments)
    }

    /// The disk as it is if the power fails now.
    pub(crate) fn now(&self) -> Moment {
        let acknowledged = self.acknowledged.load(std::sync::atomic::Ordering::SeqCst);
        Moment { files: self.lock().files.clone(), acknowledged }
    }

    /// The disk as the next process finds it if this one is killed now: everything that was
    /// written is there, synced or not.
    pub(crate) fn after_a_kill(&self) -> Self {
        let disk = Self::default();
        disk.lock().files = self.lock().files.clone();
        disk.acknowledged.store(self.now().acknowledged, std::sync::atomic::Ordering::SeqCst);
        disk
    }

    /// Makes all calls fail, starting with the `nth` from now on, counted from zero.
    pub(crate) fn fail(&self, nth: usize, failure: Failure) {
        let mut state = self.lock();
        state.calls = 0;
        state.failure = Some((nth, failure));
    }

    /// Ends the failures; returns whether there was one.
    pub(crate) fn mend(&self) -> bool {
        let mut state = self.lock();
        let failed = state.failure.take().is_some_and(|(nth, _)| state.calls > nth);
        state.calls = 0;
        failed
    }

    /// Counts a call that may fail.
    fn call(state: &mut DiskState) -> Result<(), Failure> {
        let call = state.calls;
        state.calls += 1;
        match state.failure {
            Some((nth, failure)) if call >= nth => Err(failure),
            _ => Ok(()),
        }
    }

    fn error(failure: Failure) -> io::Error {
        io::Error::from_raw_os_error(match failure {
            Failure::NoSpace | Failure::ShortWrite => libc::ENOSPC,
            Failure::Broken => libc::EIO,
        })
    }
}

impl Moment {
    /// What the disk holds after a power failure. `random` gives numbers below its argument.
    pub(crate) fn image(
        &self,
        fate: Fate,
        random: &mut impl FnMut(usize) -> usize,
    ) -> BTreeMap<u64, Vec<u8>> {
        let mut image = BTreeMap::new();
        for (number, state) in &self.files {
            let is_there = state.is_named
                || match fate {
                    Fate::Nothing => false,
                    Fate::Everything => true,
                    _ => random(2) == 1,
                };
            if !is_there {
                continue;
            }
            let mut file = state.synced.clone();
            let prefix = random(state.unsynced.len() + 1);
            for (i, change) in state.unsynced.iter().enumerate() {
                match fate {
                    Fate::Nothing => {}
                    Fate::Everything => apply(&mut file, change),
                    Fate::Prefix if i < prefix => apply(&mut file, change),
                    Fate::Subset if random(2) == 1 => apply(&mut file, change),
                    Fate::Sectors(len) => tear(&mut file, change, len, random),
                    Fate::Prefix | Fate::Subset => {}
                }
            }
            image.insert(*number, file);
        }
        image
    }
}

impl LogStorage for Disk {
    fn list(&self) -> io::Result<Vec<u64>> {
        Ok(self.lock().files.keys().copied().collect())
    }

    fn create(&self, segment: u64) -> io::Result<Box<dyn LogFile>> {
        let mut state = self.lock();
        Self::call(&mut state).map_err(Self::error)?;
        if state.files.insert(segment, FileState::default()).is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        drop(state);
        self.open(segment)
    }

    fn open(&self, segment: u64) -> io::Result<Box<dyn LogFile>> {
        Ok(Box::new(DiskFile { disk: self.clone(), number: segment }))
    }

    fn read(&self, segment: u64) -> io::Result<Vec<u8>> {
        let state = self.lock();
        let file = state.files.get(&segment).ok_or(io::ErrorKind::NotFound)?;
        let mut bytes = file.synced.clone();
        file.unsynced.iter().for_each(|change| apply(&mut bytes, change));
        Ok(bytes)
    }

    fn remove(&self, segment: u64) -> io::Result<()> {
        self.lock().files.remove(&segment).map(drop).ok_or(io::ErrorKind::NotFound.into())
    }

    fn sync_directory(&self) -> io::Result<()> {
        let mut state = self.lock();
        Self::call(&mut state).map_err(Self::error)?;
        state.files.values_mut().for_each(|file| file.is_named = true);
        Ok(())
    }
}

struct DiskFile {
    disk: Disk,
    number: u64,
}

impl DiskFile {
    fn change(&self, state: &mut DiskState, change: Change) -> io::Result<()> {
        let file = state.files.get_mut(&self.number).ok_or(io::ErrorKind::NotFound)?;
        file.unsynced.push(change);
        Ok(())
    }
}

impl LogFile for DiskFile {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut state = self.disk.lock();
        let offset = offset as usize;
        let failure = Disk::call(&mut state).err();
        let written = match failure {
            None => bytes,
            Some(Failure::ShortWrite) => &bytes[..bytes.len() / 2],
            Some(failure) => return Err(Disk::error(failure)),
        };
        self.change(&mut state, Change::Write { offset, bytes: written.to_vec() })?;
        failure.map_or(Ok(()), |failure| Err(Disk::error(failure)))
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.disk.lock();
        let acknowledged = self.disk.acknowledged.load(std::sync::atomic::Ordering::SeqCst);
        let moment = Moment { files: state.files.clone(), acknowledged };
        state.moments.push(moment);
        // What was written already has its room.
        if let Err(Failure::Broken) = Disk::call(&mut state) {
            return Err(Disk::error(Failure::Broken));
        }
        let file = state.files.get_mut(&self.number).ok_or(io::ErrorKind::NotFound)?;
        for change in std::mem::take(&mut file.unsynced) {
            apply(&mut file.synced, &change);
        }
        Ok(())
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        let mut state = self.disk.lock();
        // Freeing space needs none.
        if let Err(Failure::Broken) = Disk::call(&mut state) {
            return Err(Disk::error(Failure::Broken));
        }
        self.change(&mut state, Change::Truncate { len: len as usize })
    }
}
