//! Building and removing indexes. A declaration takes effect at once. Its work is done in steps,
//! the first with the declaration, the others in the background, as expired records are removed.

use std::ops::{Bound, ControlFlow};

use tokaido_store::{DatabaseId, Direction, WriteError, WriteTransaction, prefix_end};

use crate::{
    IndexSetting, TableError,
    declaration::{Declaration, State},
    entries, indexing,
};

/// Entries and rows that a declaration processes itself, in its own transaction. In tests they are
/// so few that steps are left for the background.
const AT_ONCE_MAX: usize = if cfg!(test) { 12 } else { 10_000 };

/// Bytes of entries held in memory at a time while an index is built.
const STEP_BYTES: usize = 4 << 20;

/// Creates, rebuilds or removes the index of a column. In a table with many rows, this happens in
/// the background; until it has all rows, no query uses it. Returns whether the setting can be
/// applied: there must be an index to optimize or remove, and none for a setting that keeps one.
///
/// # Errors
/// See [`TableError`].
pub fn set_index(
    tx: &mut dyn WriteTransaction,
    database: DatabaseId,
    column: &[u8],
    setting: IndexSetting,
) -> Result<bool, TableError> {
    let mut declaration = Declaration::read(tx, database)?.unwrap_or_default();
    let there = declaration.indexes.iter_mut();
    let there = there.filter(|index| index.is_followed()).find(|index| index.column == column);
    let kind = match (setting, &there) {
        (IndexSetting::Keep(_), Some(_))
        | (IndexSetting::Optimize | IndexSetting::Remove, None) => return Ok(false),
        (IndexSetting::Make(kind) | IndexSetting::Keep(kind), _) => Some(kind),
        (IndexSetting::Optimize, Some(there)) => Some(there.kind),
        (IndexSetting::Remove, Some(_)) => None,
    };
    if let Some(there) = there {
        there.state = State::Removing;
    }
    kind.map_or(Ok(()), |kind| declaration.add(column, kind))?;
    declaration.write(tx, database)?;
    advance(tx, database, AT_ONCE_MAX)?;
    Ok(true)
}

/// Sets the indexes of several columns: names and settings alternate. Returns whether all settings
/// could be applied; one that could not does not prevent the others.
///
/// # Errors
/// As [`set_index`].
pub fn set_index_all(
    tx: &mut dyn WriteTransaction,
    database: DatabaseId,
    arguments: &[&[u8]],
) -> Result<bool, TableError> {
    let settings = arguments.chunks_exact(2).map(|pair| IndexSetting::from_name(pair[1]));
    let settings: Vec<_> = settings.collect::<Result<_, _>>()?;
    let mut all_fit = true;
    for (pair, setting) in arguments.chunks_exact(2).zip(settings) {
        all_fit &= set_index(tx, database, pair[0], setting)?;
    }
    Ok(all_fit)
}

/// Continues building and removing, for about `steps` rows or entries. Returns how many steps it
/// took; fewer than `steps` if nothing is left to do.
pub(crate) fn advance(
    tx: &mut dyn WriteTransaction,
    database: DatabaseId,
    steps: usize,
) -> Result<usize, TableError> {
    let Some(mut declaration) = Declaration::read(tx, database)? else { return Ok(0) };
    let mut done = 0;
    let mut is_changed = false;
    while done < steps {
        let unfinished = |state: &State| *state != State::Built;
        let Some(place) = declaration.indexes.iter().position(|index| unfinished(&index.state))
        else {
            break;
        };
        is_changed = true;
        done += match declaration.indexes[place].state.clone() {
            State::Building(cursor) => {
                let (next, some) = build(tx, database, &declaration, place, cursor, steps - done)?;
                declaration.indexes[place].state = next;
                some
            }
            State::Removing | State::Built => {
                let prefix = entries::prefix(&declaration.indexes[place]);
                let some = remove_some(tx, database, &prefix, steps - done)?;
                if some < steps - done {
                    declaration.indexes.remove(place);
                }
                some
            }
        };
    }
    if is_changed {
        declaration.write(tx, database)?;
    }
    Ok(done)
}

/// Continues building one index after the row `cursor`. Returns its new state and the steps taken.
fn build(
    tx: &mut dyn WriteTransaction,
    database: DatabaseId,
    declaration: &Declaration,
    place: usize,
    mut cursor: Vec<u8>,
    steps: usize,
) -> Result<(State, usize), TableError> {
    let only = Declaration::of_one(declaration.indexes[place].clone());
    let mut done = 0;
    loop {
        let rows = next_rows(tx, database, &only, &cursor, steps - done)?;
        for row in &rows {
            for entry in &row.entries {
                indexing::put(tx, database, entry, &row.key, row.expires_at_ms)?;
            }
            done += 1 + row.entries.len();
        }
        match rows.into_iter().next_back() {
            None => return Ok((State::Built, done)),
            Some(last) => cursor = last.key,
        }
        if done >= steps {
            return Ok((State::Building(cursor), done));
        }
    }
}

/// A row to be added to an index.
struct IndexedRow {
    key: Vec<u8>,
    entries: entries::Entries,
    expires_at_ms: Option<u64>,
}

/// The next rows after `cursor`, with about `steps` entries.
fn next_rows(
    tx: &mut dyn WriteTransaction,
    database: DatabaseId,
    declaration: &Declaration,
    cursor: &[u8],
    steps: usize,
) -> Result<Vec<IndexedRow>, WriteError> {
    let from = if cursor.is_empty() { Bound::Unbounded } else { Bound::Excluded(cursor) };
    let (mut rows, mut failed): (Vec<IndexedRow>, _) = (Vec::new(), None);
    let (mut found, mut bytes) = (0, 0);
    tx.scan(database, from, Bound::Unbounded, Direction::Forward, &mut |entry| {
        let expires_at_ms = entry.record.expires_at_ms;
        match entries::of_row(declaration, entry.key, entries::row_value(&entry.record)) {
            Ok(entries) => {
                found += 1 + entries.len();
                bytes += entry.key.len() + entries.iter().map(Vec::len).sum::<usize>();
                rows.push(IndexedRow { key: entry.key.to_vec(), entries, expires_at_ms });
            }
            Err(error) => failed = Some(error),
        }
        match failed.is_some() || found >= steps || bytes >= STEP_BYTES {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    })?;
    failed.map_or(Ok(rows), Err)
}

/// Removes up to `max` elements whose keys begin with `prefix`, and returns how many.
fn remove_some(
    tx: &mut dyn WriteTransaction,
    database: DatabaseId,
    prefix: &[u8],
    max: usize,
) -> Result<usize, WriteError> {
    let mut keys = Vec::new();
    let (from, end) = (Bound::Included(prefix), prefix_end(prefix));
    let to = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
    tx.scan(database.elements(), from, to, Direction::Forward, &mut |entry| {
        if keys.len() == max {
            return ControlFlow::Break(());
        }
        keys.push(entry.key.to_vec());
        ControlFlow::Continue(())
    })?;
    for key in &keys {
        tx.delete(database.elements(), key)?;
    }
    Ok(keys.len())
}
