//! Reading what is mounted, within one transaction: caches as they are, files as they were when
//! the transaction began.

use std::sync::Arc;

use crate::{
    DatabaseId, DatabaseStatistics, Entry, ReadError, Record,
    cache::{Cursor, Page},
};

use super::{
    files::{Files, ServedFile},
    mounts::{Kind, Mounts},
};

/// A buffer that grew beyond this for a large value is given back when the view is released.
const BUFFER_BYTES_KEPT_MAX: usize = 1 << 20;

/// A page of a file ends after this many bytes, if not before, but never before its first record.
const PAGE_BYTES_MAX: usize = 1 << 20;

/// A cursor into a file: this many bits of position, and above them some of the file's version, by
/// which a cursor into another file is told.
const POSITION_BITS: u32 = 32;
const TAG_MASK: u64 = (1 << 20) - 1;

/// The view of one transaction.
pub(super) struct MountView {
    pub(super) mounts: Arc<Mounts>,
    /// `None` while nothing is held, or without any files.
    files: Option<Arc<Files>>,
    /// The value that was read last from a cache.
    value: Vec<u8>,
    page: Page,
}

impl MountView {
    pub(super) fn new(mounts: Arc<Mounts>) -> Self {
        Self { mounts, files: None, value: Vec::new(), page: Page::default() }
    }

    /// Takes the files as they are now.
    pub(super) fn hold(&mut self) {
        self.files = self.mounts.files.current();
    }

    /// Lets go of the files, so that those that were replaced can be unmapped.
    pub(super) fn release(&mut self) {
        self.files = None;
        self.page = Page::default();
        if self.value.capacity() > BUFFER_BYTES_KEPT_MAX {
            self.value = Vec::new();
        }
    }

    fn file(&mut self, place: usize) -> Result<&ServedFile, ReadError> {
        if self.files.is_none() {
            self.hold();
        }
        let file = self.files.as_ref().and_then(|files| files.get(place));
        let message = "a file that is served has no place in the list".to_owned();
        file.map(|file| &**file).ok_or(ReadError::Engine { message })
    }

    pub(super) fn get(
        &mut self,
        database: DatabaseId,
        key: &[u8],
    ) -> Result<Option<Record<'_>>, ReadError> {
        match self.mounts.get(database) {
            None => Err(unknown()),
            Some(Kind::Cache(cache)) => {
                let found = cache.get(key, &mut self.value)?;
                Ok(found.map(|metadata| metadata.with(&self.value)))
            }
            Some(&Kind::Cdb(place)) => {
                let file = self.file(place)?;
                let found = file.view().get(key).map_err(|damaged| file.damage(&damaged))?;
                Ok(found.map(|value| record(file, value)))
            }
        }
    }

    pub(super) fn get_all(
        &mut self,
        database: DatabaseId,
        key: &[u8],
        visit: &mut dyn FnMut(Record<'_>),
    ) -> Result<(), ReadError> {
        if let Some(&Kind::Cdb(place)) = self.mounts.get(database) {
            let file = self.file(place)?;
            for value in file.view().get_all(key) {
                visit(record(file, value.map_err(|damaged| file.damage(&damaged))?));
            }
            return Ok(());
        }
        if let Some(record) = self.get(database, key)? {
            visit(record);
        }
        Ok(())
    }

    pub(super) fn page(
        &mut self,
        database: DatabaseId,
        cursor: u64,
        records: usize,
        visit: &mut dyn FnMut(Entry<'_>),
    ) -> Result<Option<u64>, ReadError> {
        match self.mounts.get(database) {
            None => Err(unknown()),
            Some(Kind::Cache(cache)) => {
                let next = cache.scan(Cursor::from_number(cursor), records, &mut self.page);
                self.page.entries().for_each(visit);
                Ok(next.map(Cursor::to_number))
            }
            Some(&Kind::Cdb(place)) => page_of_file(self.file(place)?, cursor, records, visit),
        }
    }

    pub(super) fn statistics(
        &mut self,
        database: DatabaseId,
    ) -> Result<DatabaseStatistics, ReadError> {
        match self.mounts.get(database) {
            None => Err(unknown()),
            Some(Kind::Cache(cache)) => Ok(cache.statistics().into()),
            Some(&Kind::Cdb(place)) => Ok(self.file(place)?.statistics),
        }
    }
}

/// An id that no mount and no store of this composite gave.
pub(super) fn unknown() -> ReadError {
    ReadError::Engine { message: "this database belongs to another store".to_owned() }
}

fn record<'f>(file: &ServedFile, value: &'f [u8]) -> Record<'f> {
    Record { value, flags: 0, expires_at_ms: None, version: file.version }
}

/// The records from a cursor on, in the order of the file, duplicates included.
fn page_of_file(
    file: &ServedFile,
    cursor: u64,
    records: usize,
    visit: &mut dyn FnMut(Entry<'_>),
) -> Result<Option<u64>, ReadError> {
    let tag = (file.version ^ file.version >> TAG_MASK.count_ones()) & TAG_MASK;
    if cursor != 0 && cursor >> POSITION_BITS != tag {
        return Err(ReadError::CursorLost);
    }
    let position = cursor & ((1 << POSITION_BITS) - 1);
    let mut entries = file.view().iter_from(usize::try_from(position).unwrap_or(usize::MAX));
    let mut bytes = 0;
    for entry in entries.by_ref().take(records.max(1)) {
        let entry = entry.map_err(|damaged| file.damage(&damaged))?;
        bytes += entry.key.len() + entry.value.len();
        visit(Entry { key: entry.key, record: record(file, entry.value) });
        if bytes >= PAGE_BYTES_MAX {
            break;
        }
    }
    Ok(entries.position().map(|position| tag << POSITION_BITS | position as u64))
}
