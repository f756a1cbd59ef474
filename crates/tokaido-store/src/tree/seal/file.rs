//! The file that a seal stands in.

use std::{
    fs::File,
    io,
    os::unix::fs::FileExt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use crate::tree::files::fill;

use super::{Seal, format::HEAD_LEN};

/// Most seals are no longer.
const USUAL_LEN: usize = 1024;

/// What stands in the place of a seal until it is surely gone.
const BROKEN: [u8; HEAD_LEN] = {
    let mut broken = [0; HEAD_LEN];
    broken[0] = b'-';
    broken
};

/// The file that a seal stands in, of whoever has the store.
pub(in crate::tree) struct SealFile {
    file: Arc<File>,
    found: Option<Seal>,
    /// Whether something stands where a seal begins.
    is_sealed: AtomicBool,
}

impl SealFile {
    pub(in crate::tree) fn new(file: Arc<File>) -> io::Result<Self> {
        let (found, is_sealed) = read(&file)?;
        Ok(Self { file, found, is_sealed: AtomicBool::new(is_sealed) })
    }

    /// What stood there when the store was opened. Given once.
    pub(in crate::tree) fn take_found(&mut self) -> Option<Seal> {
        self.found.take()
    }

    pub(in crate::tree) fn is_sealed(&self) -> bool {
        self.is_sealed.load(Ordering::Acquire)
    }

    /// Seals the store, unless there is too much to say. There is no need to sync it: without a
    /// seal, opening takes longer.
    pub(in crate::tree) fn set(&self, seal: &Seal) -> io::Result<()> {
        let Some(bytes) = seal.encode() else { return Ok(()) };
        self.is_sealed.store(true, Ordering::Release);
        self.file.write_all_at(&bytes, 0)
    }

    /// Removes the seal, durably.
    ///
    /// Whoever finds nothing but zeros can rely on it: they are written after the sync. Whoever
    /// finds a broken seal, of a process that was killed before, breaks it once more.
    ///
    /// # Errors
    /// After one, nothing must be written: the seal may be on disk, even if it seems to be gone.
    pub(in crate::tree) fn break_open(&self) -> io::Result<()> {
        if self.is_sealed() {
            self.file.write_all_at(&BROKEN, 0)?;
            self.file.sync_data()?;
            self.file.write_all_at(&[0; HEAD_LEN], 0)?;
            self.is_sealed.store(false, Ordering::Release);
        }
        Ok(())
    }
}

impl Seal {
    /// The seal in a file, if there is one and it is whole.
    pub(in crate::tree) fn read(file: &File) -> io::Result<Option<Self>> {
        read(file).map(|(seal, _)| seal)
    }
}

/// The seal in a file, and whether anything stands where it begins.
fn read(file: &File) -> io::Result<(Option<Seal>, bool)> {
    let mut usual = [0; USUAL_LEN];
    // Not to the end of the file, which a second call would have to look for.
    let usual_len = file.read_at(&mut usual, 0)?;
    let found = &usual[..usual_len];
    let is_sealed = found.iter().take(HEAD_LEN).any(|byte| *byte != 0);
    let seal = match Seal::len(found) {
        Some(len) if len <= usual_len => Seal::decode(&found[..len]),
        Some(len) => {
            let mut bytes = vec![0; len];
            let filled = fill(file, &mut bytes, 0)?;
            Seal::decode(&bytes[..filled])
        }
        None => None,
    };
    Ok((seal, is_sealed))
}

#[cfg(test)]
mod tests {
    use crate::tree::{base::PageDirectory, catalog::CatalogEntry};

    use super::*;

    fn seal(databases: usize) -> Seal {
        let entry = |index| CatalogEntry { index, tree: 2, name: format!("database-{index}") };
        Seal {
            base: PageDirectory {
                store: 7,
                sequence: 5,
                commit: 3,
                meta_crc: 9,
                trees: Vec::new(),
            },
            segment: Some(2),
            databases: (0..databases).map(entry).collect(),
        }
    }

    #[test]
    fn a_torn_seal_is_none_and_is_broken_like_a_whole_one() {
        let bytes = seal(3).encode().unwrap();
        for torn_at in 0..=bytes.len() {
            let file = tempfile::tempfile().unwrap();
            file.write_all_at(&bytes[..torn_at], 0).unwrap();
            let mut found = SealFile::new(Arc::new(file)).unwrap();
            assert_eq!(found.take_found().is_some(), torn_at == bytes.len(), "{torn_at}");
            assert_eq!(found.is_sealed(), torn_at > 0);
            found.break_open().unwrap();
            assert!(!found.is_sealed());
            assert_eq!(read(&found.file).unwrap(), (None, false));
        }
    }

    #[test]
    fn a_seal_that_may_be_on_disk_still_is_broken_again() {
        let file = Arc::new(tempfile::tempfile().unwrap());
        file.write_all_at(&seal(1).encode().unwrap(), 0).unwrap();
        // As a process leaves it that is killed before the sync.
        file.write_all_at(&BROKEN, 0).unwrap();
        let mut found = SealFile::new(Arc::clone(&file)).unwrap();
        assert!(found.take_found().is_none() && found.is_sealed());
        found.break_open().unwrap();
        assert!(!SealFile::new(file).unwrap().is_sealed());
    }

    #[test]
    fn a_seal_of_any_length_reads_back_after_any_other() {
        let file = Arc::new(tempfile::tempfile().unwrap());
        for databases in [0, 200, 3, 100, 45, 46, 47, 48] {
            let sealed = SealFile::new(Arc::clone(&file)).unwrap();
            sealed.set(&seal(databases)).unwrap();
            assert!(sealed.is_sealed());
            assert_eq!(Seal::read(&file).unwrap(), Some(seal(databases)));
        }
    }
}
