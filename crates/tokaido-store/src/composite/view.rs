//! The mounted databases as one transaction sees them: caches as they are, files as of its begin.

use std::sync::Arc;

use crate::{
    DatabaseId, ReadError,
    cache::{Cache, ScanPage},
};

use super::{
    files::{Files, ServedFile},
    mounts::{Kind, Mounts},
};

/// A buffer that grew beyond this for a large value is freed when the view is released.
const BUFFER_BYTES_KEPT_MAX: usize = 1 << 20;

/// The view of one transaction.
pub(super) struct MountView {
    pub(super) mounts: Arc<Mounts>,
    /// `None` while nothing is held, or if there are no files.
    files: Option<Arc<Files>>,
    /// The value last read from a cache.
    value: Vec<u8>,
    page: ScanPage,
}

/// The engine behind a database, for one call.
pub(super) enum Engine<'t, T: ?Sized> {
    /// The transaction of the inner store.
    Inner(&'t mut T),
    /// With buffers for a value and for a page.
    Cache(&'t Cache, &'t mut Vec<u8>, &'t mut ScanPage),
    Cdb(&'t ServedFile),
}

impl MountView {
    pub(super) fn new(mounts: Arc<Mounts>) -> Self {
        Self { mounts, files: None, value: Vec::new(), page: ScanPage::default() }
    }

    /// Takes the current files.
    pub(super) fn hold(&mut self) {
        self.files = self.mounts.files.current();
    }

    /// Releases the files, so that replaced ones can be unmapped.
    pub(super) fn release(&mut self) {
        self.files = None;
        self.page = ScanPage::default();
        if self.value.capacity() > BUFFER_BYTES_KEPT_MAX {
            self.value = Vec::new();
        }
    }

    /// The engine mounted under an id.
    pub(super) fn engine<T: ?Sized>(
        &mut self,
        database: DatabaseId,
    ) -> Result<Engine<'_, T>, ReadError> {
        let failed = |message: &str| ReadError::Engine { message: message.to_owned() };
        match self.mounts.get(database) {
            None => Err(failed("this database belongs to another store")),
            Some(Kind::Cache(cache)) => Ok(Engine::Cache(cache, &mut self.value, &mut self.page)),
            Some(&Kind::Cdb(place)) => {
                if self.files.is_none() {
                    self.files = self.mounts.files.current();
                }
                let file = self.files.as_ref().and_then(|files| files.get(place));
                let file = file.ok_or_else(|| failed("a file has no place in the list"))?;
                Ok(Engine::Cdb(file))
            }
        }
    }
}
