//! Tokaido's own key-value files, for `tokaido bench suite`.

use std::{
    error::Error,
    ops::{Bound, ControlFlow},
    path::Path,
    time::Duration,
};

use tokaido_bench::suite::{Dictionary, NOT_THERE, OpenDictionary, Rows};
use tokaido_store::{
    DatabaseId, NewRecord, ScanRange, Scanner, Store, WriteError, cdb, transact,
    tree::{self, Options, SyncMode, TreeStore},
};

/// All kinds: a file that is written once, and a store.
pub(super) const DICTIONARIES: &[&dyn Dictionary] = &[&Constant, &Tree];

/// A constant database.
struct Constant;

/// A store that is never synced.
struct Tree;

/// Converts any error to its text.
fn text(error: impl Into<Box<dyn Error>>) -> String {
    error.into().to_string()
}

impl Dictionary for Constant {
    fn settings(&self) -> &'static str {
        "a constant file"
    }

    fn is_constant(&self) -> bool {
        true
    }

    fn write(&self, path: &Path, rows: &Rows) -> Result<(), String> {
        let options = cdb::Options { sync: false, ..cdb::Options::default() };
        let mut writer = cdb::Writer::create(path, &options).map_err(text)?;
        for (key, value) in rows {
            writer.put(key, value).map_err(text)?;
        }
        writer.finish().map_err(text)
    }

    fn read_all(&self, path: &Path, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), String> {
        for record in cdb::Reader::open(path).map_err(text)?.iter() {
            let record = record.map_err(text)?;
            visit(record.key, record.value);
        }
        Ok(())
    }

    fn get(&self, path: &Path, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<(), String> {
        let reader = cdb::Reader::open(path).map_err(text)?;
        visit(reader.get(key).map_err(text)?.ok_or(NOT_THERE)?);
        Ok(())
    }
}

fn open(path: &Path, sync: SyncMode) -> Result<TreeStore, String> {
    tree::open(path, Options { sync, ..Options::default() }).map_err(text)
}

impl Dictionary for Tree {
    fn settings(&self) -> &'static str {
        "a store, no sync"
    }

    fn write(&self, path: &Path, rows: &Rows) -> Result<(), String> {
        let store = open(path, SyncMode::Os)?;
        let main = store.database("main").map_err(text)?;
        transact(&mut *store.writer().map_err(text)?, |transaction| -> Result<(), WriteError> {
            transaction.clear(main)?;
            rows.iter()
                .try_for_each(|(key, value)| transaction.put(main, key, NewRecord::of(value)))
        })
        .map_err(text)
    }

    fn read_all(&self, path: &Path, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), String> {
        let store = open(path, SyncMode::Os)?;
        let main = store.database("main").map_err(text)?;
        let mut snapshot = store.snapshot().map_err(text)?;
        Scanner::new(main, ScanRange::all(), usize::MAX)
            .visit(&mut *snapshot, |entry| {
                visit(entry.key, entry.record.value);
                ControlFlow::Continue(())
            })
            .map(|_| ())
            .map_err(text)
    }

    fn get(&self, path: &Path, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<(), String> {
        let reader = tree::Reader::open(path).map_err(text)?;
        let mut main = reader.database("main").map_err(text)?.ok_or(NOT_THERE)?;
        visit(main.get(key).map_err(text)?.ok_or(NOT_THERE)?.value);
        Ok(())
    }

    fn keep_open(
        &self,
        path: &Path,
        _: u64,
        sync: Option<Duration>,
    ) -> Option<Result<Box<dyn OpenDictionary>, String>> {
        let sync = match sync {
            None => SyncMode::Os,
            Some(Duration::ZERO) => SyncMode::Always,
            Some(interval) => SyncMode::Interval(interval),
        };
        Some(Kept::open(path, sync).map(|kept| Box::new(kept) as Box<_>))
    }
}

/// A store that stays open, and its main database.
struct Kept {
    store: TreeStore,
    main: DatabaseId,
}

impl Kept {
    fn open(path: &Path, sync: SyncMode) -> Result<Self, String> {
        let store = open(path, sync)?;
        let main = store.database("main").map_err(text)?;
        Ok(Self { store, main })
    }
}

impl OpenDictionary for Kept {
    fn put(&mut self, rows: &[(&[u8], &[u8])]) -> Result<(), String> {
        let main = self.main;
        transact(
            &mut *self.store.writer().map_err(text)?,
            |transaction| -> Result<(), WriteError> {
                rows.iter()
                    .try_for_each(|(key, value)| transaction.put(main, key, NewRecord::of(value)))
            },
        )
        .map_err(text)
    }

    fn get(&mut self, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<(), String> {
        let mut snapshot = self.store.snapshot().map_err(text)?;
        visit(snapshot.get(self.main, key).map_err(text)?.ok_or(NOT_THERE)?.value);
        Ok(())
    }

    fn scan(
        &mut self,
        from: &[u8],
        count: u64,
        visit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<(), String> {
        let mut snapshot = self.store.snapshot().map_err(text)?;
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let range = ScanRange { low: Bound::Included(from.to_vec()), ..ScanRange::all() };
        Scanner::new(self.main, range, count)
            .visit(&mut *snapshot, |entry| {
                visit(entry.key, entry.record.value);
                ControlFlow::Continue(())
            })
            .map(|_| ())
            .map_err(text)
    }
}
