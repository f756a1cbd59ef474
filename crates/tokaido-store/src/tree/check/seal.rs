//! What the seal says, beside what is there.

use std::{fs::File, io, path::Path};

use crate::tree::{
    base::pages::PageFile,
    catalog::CatalogEntry,
    log::{DirectoryStorage, LogStorage},
    seal::Seal,
};

use super::{
    examination::Parts,
    report::{CheckReport, Finding},
};

/// A seal that an opening would believe.
pub(super) struct Sealed {
    seal: Seal,
    /// Whether the log has the segment that the seal names as its last.
    is_of_log: bool,
}

/// The seal in the file of the lock, if an opening would believe it.
pub(super) fn read(
    directory: &Path,
    lock: Option<&File>,
    file: &PageFile,
) -> io::Result<Option<Sealed>> {
    let Some(seal) = lock.map(Seal::read).transpose()?.flatten() else { return Ok(None) };
    if (seal.base.commit, seal.base.meta_crc) != (file.commit(), file.meta_crc()) {
        return Ok(None);
    }
    let log = DirectoryStorage::existing(directory);
    let is_of_log = log.list()?.last().copied() == seal.segment;
    Ok(Some(Sealed { seal, is_of_log }))
}

/// Compares a seal with the rest. `databases` is the catalog, if all of it could be read.
pub(super) fn check(parts: &Parts, databases: Option<&[CatalogEntry]>, report: &mut CheckReport) {
    let Some(Sealed { seal, is_of_log }) = &parts.seal else { return };
    let mut add = |what: &str| report.add(Finding::Seal { what: what.to_owned() });
    if parts.overlay.transactions > 0 {
        add("there are transactions in the log, of which the seal knows nothing");
    }
    if !is_of_log {
        add("the log ends with another segment than the seal says");
    }
    if parts.survey.directory(&parts.file).as_ref() != Some(&seal.base) {
        add("the seal says something else than the directory of the base");
    }
    if databases.is_some_and(|databases| databases != seal.databases) {
        add("the seal names other databases than the catalog");
    }
}
