//! The list of companies, as a constant database and in a store that can be changed.

use std::{
    fs,
    ops::ControlFlow,
    path::{Path, PathBuf},
};

use tokaido_store::{
    DatabaseId, NewRecord, ScanRange, Scanner, Snapshot, Store, WriteError, WriteTransaction, cdb,
    transact,
    tree::{self, Options, SyncMode, TreeStore},
};

use crate::{
    Outcome,
    rows::{self, Rows},
    subject::{Place, Took},
};

const PASSES: u64 = 100;
const OPENINGS: usize = 10_000;
const STORE_OPENINGS: usize = 10_000;

/// Rows between one that is looked up and the next, on all sides.
const STEP: usize = 7_919;

/// Something that depends on all lengths and on a byte of each value.
fn digest(value: &[u8]) -> u64 {
    value.len() as u64 + u64::from(value.first().copied().unwrap_or(0))
}

fn looked_up(rows: &Rows, n: usize) -> &[u8] {
    &rows[n * STEP % rows.len()].0
}

pub(crate) fn cdb_write(place: &Place, sync: bool) -> Outcome<Took> {
    let rows = rows::read(&place.rows)?;
    let path = cdb_path(place);
    Took::timed(PASSES, || {
        for _ in 0..PASSES {
            make_cdb(&path, &rows, sync)?;
        }
        Ok(fs::metadata(&path)?.len())
    })
}

fn cdb_path(place: &Place) -> PathBuf {
    place.directory.join("rows.cdb")
}

fn make_cdb(path: &Path, rows: &Rows, sync: bool) -> Outcome {
    let mut writer = cdb::Writer::create(path, &cdb::Options { sync, ..Default::default() })?;
    for (key, value) in rows {
        writer.put(key, value)?;
    }
    Ok(writer.finish()?)
}

/// The path of a file that is there, and the rows in it.
fn cdb_file(place: &Place) -> Outcome<(PathBuf, Rows)> {
    let (path, rows) = (cdb_path(place), rows::read(&place.rows)?);
    if !path.exists() {
        make_cdb(&path, &rows, false)?;
    }
    Ok((path, rows))
}

pub(crate) fn cdb_read(place: &Place) -> Outcome<Took> {
    let (path, _) = cdb_file(place)?;
    Took::timed(PASSES, || {
        let mut sum = 0;
        for _ in 0..PASSES {
            for record in cdb::Reader::open(&path)?.iter() {
                let record = record?;
                sum += record.key.len() as u64 + digest(record.value);
            }
        }
        Ok(sum)
    })
}

pub(crate) fn cdb_get(place: &Place) -> Outcome<Took> {
    let (path, rows) = cdb_file(place)?;
    Took::timed(PASSES, || {
        let mut sum = 0;
        for _ in 0..PASSES {
            let reader = cdb::Reader::open(&path)?;
            for (key, _) in &rows {
                sum += digest(reader.get(key)?.ok_or("a key is not there")?);
            }
        }
        Ok(sum)
    })
}

pub(crate) fn cdb_open(place: &Place) -> Outcome<Took> {
    let (path, rows) = cdb_file(place)?;
    Took::timed(OPENINGS as u64, || {
        let mut sum = 0;
        for n in 0..OPENINGS {
            let reader = cdb::Reader::open(&path)?;
            sum += digest(reader.get(looked_up(&rows, n))?.ok_or("a key is not there")?);
        }
        Ok(sum)
    })
}

fn open_tree(directory: &Path) -> Outcome<TreeStore> {
    Ok(tree::open(directory, Options { sync: SyncMode::Os, ..Options::default() })?)
}

/// One pass: opens the store, empties it, puts all rows, and closes it.
fn write_tree(directory: &Path, rows: &Rows) -> Outcome {
    let store = open_tree(directory)?;
    let main = store.database("main")?;
    Ok(transact(&mut *store.writer()?, |transaction| {
        transaction.clear(main)?;
        put_all(transaction, main, rows)
    })?)
}

fn put_all(
    transaction: &mut dyn WriteTransaction,
    main: DatabaseId,
    rows: &Rows,
) -> Result<(), WriteError> {
    rows.iter().try_for_each(|(key, value)| transaction.put(main, key, NewRecord::of(value)))
}

/// Reads all records in order.
fn read_all(snapshot: &mut dyn Snapshot, main: DatabaseId) -> Outcome<u64> {
    let mut sum = 0;
    Scanner::new(main, ScanRange::all(), usize::MAX).visit(snapshot, |entry| {
        sum += entry.key.len() as u64 + digest(entry.record.value);
        ControlFlow::Continue(())
    })?;
    Ok(sum)
}

/// One opening, and a transaction for each pass.
pub(crate) fn tree_put(place: &Place) -> Outcome<Took> {
    let (directory, rows) = tree_directory(place)?;
    Took::timed(PASSES, || {
        let store = open_tree(&directory)?;
        let main = store.database("main")?;
        let mut writer = store.writer()?;
        for _ in 0..PASSES {
            transact(&mut *writer, |transaction| put_all(transaction, main, &rows))?;
        }
        Ok(0)
    })
}

/// One opening, and a snapshot for each pass.
pub(crate) fn tree_scan(place: &Place) -> Outcome<Took> {
    let (directory, _) = tree_directory(place)?;
    Took::timed(PASSES, || {
        let store = open_tree(&directory)?;
        let main = store.database("main")?;
        (0..PASSES).try_fold(0, |sum, _| Ok(sum + read_all(&mut *store.snapshot()?, main)?))
    })
}

/// A store that was written once, and the rows in it.
fn tree_directory(place: &Place) -> Outcome<(PathBuf, Rows)> {
    let (directory, rows) = (place.empty("companies")?, rows::read(&place.rows)?);
    write_tree(&directory, &rows)?;
    Ok((directory, rows))
}

pub(crate) fn tree_write(place: &Place) -> Outcome<Took> {
    let (directory, rows) = tree_directory(place)?;
    Took::timed(PASSES, || (0..PASSES).try_for_each(|_| write_tree(&directory, &rows)).map(|()| 0))
}

pub(crate) fn tree_read(place: &Place) -> Outcome<Took> {
    let (directory, _) = tree_directory(place)?;
    Took::timed(PASSES, || {
        let mut sum = 0;
        for _ in 0..PASSES {
            let store = open_tree(&directory)?;
            let main = store.database("main")?;
            sum += read_all(&mut *store.snapshot()?, main)?;
        }
        Ok(sum)
    })
}

pub(crate) fn tree_open(place: &Place) -> Outcome<Took> {
    let (directory, rows) = tree_directory(place)?;
    // As a large store is that was shut down, whose log is not left to the next opening.
    open_tree(&directory)?.checkpoint()?;
    Took::timed(STORE_OPENINGS as u64, || {
        let mut sum = 0;
        for n in 0..STORE_OPENINGS {
            let reader = tree::Reader::open(&directory)?;
            let mut main = reader.database("main")?.ok_or("the database is not there")?;
            let record = main.get(looked_up(&rows, n))?.ok_or("a key is not there")?;
            sum += digest(record.value);
        }
        Ok(sum)
    })
}
