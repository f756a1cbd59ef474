//! What the log changes in the base.

use std::{collections::BTreeMap, path::Path};

use crate::{
    OpenError,
    tree::{
        log::{DirectoryStorage, LogStorage, RecoveryError, count_behind, operations, read_log},
        open::check_operation,
    },
};

use super::report::{CheckReport, Finding};

/// By tree and key: the stored record, or that there is none.
#[derive(Default)]
pub(super) struct Overlay {
    trees: BTreeMap<u32, Changes>,
    last_sequence: u64,
}

type Changes = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

impl Overlay {
    /// The last transaction of the log up to the first damage, or of the base if there is none.
    pub(super) fn last_sequence(&self) -> u64 {
        self.last_sequence
    }

    /// The changes of a tree, in the order of keys.
    pub(super) fn tree(&self, tree: u32) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
        let changes = self.trees.get(&tree).into_iter().flatten();
        changes.map(|(key, stored)| (&key[..], stored.as_deref()))
    }

    /// The change of a key in the log, if there is one.
    pub(super) fn get(&self, tree: u32, key: &[u8]) -> Option<Option<&[u8]>> {
        Some(self.trees.get(&tree)?.get(key)?.as_deref())
    }

    fn apply(&mut self, bytes: &[u8]) -> Result<(), String> {
        // All or nothing: a transaction that is damaged inside must not be applied in part.
        let operations: Option<Vec<_>> = operations(bytes).collect();
        let operations = operations.ok_or("a transaction does not hold what it says")?;
        for operation in &operations {
            check_operation(operation).map_err(|error| error.to_string())?;
        }
        for operation in operations {
            let changes = self.trees.entry(operation.tree).or_default();
            changes.insert(operation.key.to_vec(), operation.record.map(<[u8]>::to_vec));
        }
        Ok(())
    }
}

/// Reads the log of a store, up to the first damage.
pub(super) fn read(
    directory: &Path,
    store: Option<u64>,
    base_sequence: u64,
    report: &mut CheckReport,
) -> Result<Overlay, OpenError> {
    let io = OpenError::io(directory);
    let storage = DirectoryStorage::existing(directory);
    let mut overlay = Overlay { last_sequence: base_sequence, ..Overlay::default() };
    report.log.segments = storage.list().map_err(&io)?.len() as u64;
    // If the base does not say which store it is of, nobody knows which log belongs to it.
    let Some(store) = store else { return Ok(overlay) };
    let found = read_log(&storage, store, base_sequence, |sequence, bytes| {
        overlay.apply(bytes)?;
        overlay.last_sequence = sequence;
        report.log.transactions += 1;
        Ok(())
    });
    match found {
        Ok(recovered) => {
            report.log.bytes = recovered.bytes;
            report.log.torn_at = recovered.torn_at;
        }
        Err(RecoveryError::Io(error)) => return Err(io(error)),
        Err(RecoveryError::Version(found)) => return Err(OpenError::log_version(directory, found)),
        Err(RecoveryError::Damaged { segment, byte, what }) => {
            report.log.transactions_behind =
                count_behind(&storage, overlay.last_sequence).map_err(&io)?;
            report.add(Finding::Log { segment, byte, what });
        }
    }
    Ok(overlay)
}
