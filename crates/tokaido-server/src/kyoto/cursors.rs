//! Cursors: each connection has its own, by numbers that it chooses. A cursor is only the key where it
//! stands, so it holds nothing open. When the record there is removed, it stands at the next one.

use std::{
    collections::{BTreeMap, VecDeque},
    ops::Bound,
};

use tokaido_store::{DatabaseId, Direction, ReadError, ReadTransaction, Record, WriteTransaction};
use tokaido_wire::kyoto::Pairs;

use super::{
    inputs::{Inputs, output},
    records::{of_bytes, put, show},
    refusal::{DatabaseError, Kind, Refusal},
};
use crate::selected::Selected;

/// Keys of an unordered database that a cursor fetches at once.
const PAGE_RECORDS: usize = 64;

/// The cursors of one connection.
#[derive(Default)]
pub(crate) struct Cursors(BTreeMap<i64, Cursor>);

impl Cursors {
    /// The cursor of that number. A new one stands nowhere, in the given database.
    pub(crate) fn get(
        &mut self,
        number: i64,
        database: Result<Selected, Refusal>,
        cursors_max: usize,
    ) -> Result<Cursor, Refusal> {
        if let Some(cursor) = self.0.get(&number) {
            return Ok(cursor.clone());
        }
        let database = database.map_err(|_| Refusal::no_cursor())?;
        if self.0.len() >= cursors_max {
            let message = format!(
                "a connection has at most {cursors_max} cursors; delete some with cur_delete, \
                 or raise limits.kyoto_cursors_max"
            );
            return Err(Refusal::new(Kind::Invalid, message));
        }
        Ok(Cursor { database, place: Place::Nowhere })
    }

    /// Stores where a cursor stands now.
    pub(crate) fn put(&mut self, number: i64, cursor: Cursor) {
        self.0.insert(number, cursor);
    }

    pub(crate) fn delete(&mut self, number: Option<i64>) -> Result<Pairs, Refusal> {
        let deleted = number.and_then(|number| self.0.remove(&number));
        deleted.map(|_| Pairs::new()).ok_or_else(Refusal::no_cursor)
    }
}

/// A cursor.
#[derive(Clone, Debug)]
pub(crate) struct Cursor {
    /// The database that it iterates over.
    pub(crate) database: Selected,
    place: Place,
}

#[derive(Clone, Debug)]
enum Place {
    Nowhere,
    /// At this key, or at the next one if it is gone.
    Key(Vec<u8>),
    /// At the first of these keys of an unordered database; `next` is where the others are.
    Page {
        keys: VecDeque<Vec<u8>>,
        next: Option<u64>,
    },
}

fn no_record() -> Refusal {
    DatabaseError::Missing.refusal()
}

impl Cursor {
    /// The key of the record where it stands.
    fn current(
        &mut self,
        tx: &mut dyn ReadTransaction,
        database: DatabaseId,
    ) -> Result<Vec<u8>, Refusal> {
        match &mut self.place {
            Place::Nowhere => Err(no_record()),
            Place::Key(key) => {
                let from = std::mem::take(key);
                self.seek(tx, database, Bound::Included(&from), Direction::Forward)
            }
            Place::Page { keys, next } => loop {
                match keys.front() {
                    Some(key) if tx.get(database, key)?.is_some() => break Ok(key.clone()),
                    Some(_) => drop(keys.pop_front()),
                    None => {
                        let Some(at) = *next else {
                            self.place = Place::Nowhere;
                            break Err(no_record());
                        };
                        *next = tx.page(database, at, PAGE_RECORDS, &mut |entry| {
                            keys.push_back(entry.key.to_vec());
                        })?;
                    }
                }
            },
        }
    }

    /// Moves to the nearest record, and returns its key. If there is none, the cursor stands nowhere.
    fn seek(
        &mut self,
        tx: &mut dyn ReadTransaction,
        database: DatabaseId,
        from: Bound<&[u8]>,
        direction: Direction,
    ) -> Result<Vec<u8>, Refusal> {
        self.place = Place::Nowhere;
        let found = tx.seek(database, from, direction)?.map(|entry| entry.key.to_vec());
        let key = found.ok_or_else(no_record)?;
        self.place = Place::Key(key.clone());
        Ok(key)
    }

    fn step(&mut self, tx: &mut dyn ReadTransaction, database: DatabaseId) -> Result<(), Refusal> {
        let key = self.current(tx, database)?;
        if let Place::Page { keys, .. } = &mut self.place {
            keys.pop_front();
            return self.current(tx, database).map(|_| ());
        }
        self.seek(tx, database, Bound::Excluded(&key), Direction::Forward).map(|_| ())
    }

    /// Steps on if asked to; at the end the cursor stands nowhere, and that is no error.
    fn step_if_asked(
        &mut self,
        inputs: &Inputs,
        tx: &mut dyn ReadTransaction,
        database: DatabaseId,
    ) -> Result<(), Refusal> {
        if !inputs.has("step") {
            return Ok(());
        }
        match self.step(tx, database) {
            Err(refusal) if refusal.kind != Kind::Missing => Err(refusal),
            _ => Ok(()),
        }
    }

    /// Reads the record where it stands, with its key.
    fn read<T>(
        &mut self,
        tx: &mut dyn ReadTransaction,
        database: DatabaseId,
        take: impl FnOnce(&[u8], Record<'_>) -> T,
    ) -> Result<T, Refusal> {
        let key = self.current(tx, database)?;
        let record = of_bytes(tx.get(database, &key)?)?.ok_or_else(no_record)?;
        Ok(take(&key, record))
    }
}

pub(super) fn jump(
    inputs: &Inputs,
    cursor: &mut Cursor,
    tx: &mut dyn ReadTransaction,
    database: DatabaseId,
) -> Result<Pairs, Refusal> {
    let from = inputs.get("key").map_or(Bound::Unbounded, Bound::Included);
    match (tx.seek(database, from, Direction::Forward).map(drop), from) {
        // Without an order there is a first record, but none from a given key on.
        (Err(ReadError::Unordered), Bound::Unbounded) => {
            cursor.place = Place::Page { keys: VecDeque::new(), next: Some(0) };
            cursor.current(tx, database)?;
        }
        (looked, _) => {
            looked?;
            cursor.seek(tx, database, from, Direction::Forward)?;
        }
    }
    Ok(Pairs::new())
}

pub(super) fn jump_back(
    inputs: &Inputs,
    cursor: &mut Cursor,
    tx: &mut dyn ReadTransaction,
    database: DatabaseId,
) -> Result<Pairs, Refusal> {
    let from = inputs.get("key").map_or(Bound::Unbounded, Bound::Included);
    cursor.seek(tx, database, from, Direction::Backward)?;
    Ok(Pairs::new())
}

pub(super) fn step(
    _: &Inputs,
    cursor: &mut Cursor,
    tx: &mut dyn ReadTransaction,
    database: DatabaseId,
) -> Result<Pairs, Refusal> {
    cursor.step(tx, database)?;
    Ok(Pairs::new())
}

pub(super) fn step_back(
    _: &Inputs,
    cursor: &mut Cursor,
    tx: &mut dyn ReadTransaction,
    database: DatabaseId,
) -> Result<Pairs, Refusal> {
    let key = cursor.current(tx, database)?;
    cursor.seek(tx, database, Bound::Excluded(&key), Direction::Backward)?;
    Ok(Pairs::new())
}

pub(super) fn get_key(
    inputs: &Inputs,
    cursor: &mut Cursor,
    tx: &mut dyn ReadTransaction,
    database: DatabaseId,
) -> Result<Pairs, Refusal> {
    let outputs = output("key", cursor.current(tx, database)?);
    cursor.step_if_asked(inputs, tx, database)?;
    Ok(outputs)
}

pub(super) fn get_value(
    inputs: &Inputs,
    cursor: &mut Cursor,
    tx: &mut dyn ReadTransaction,
    database: DatabaseId,
) -> Result<Pairs, Refusal> {
    let outputs = cursor.read(tx, database, |_, record| output("value", record.value))?;
    cursor.step_if_asked(inputs, tx, database)?;
    Ok(outputs)
}

/// The outputs for a whole record.
fn whole(key: &[u8], record: Record<'_>) -> Pairs {
    let mut outputs = output("key", key);
    show(&record, &mut outputs);
    outputs
}

pub(super) fn get(
    inputs: &Inputs,
    cursor: &mut Cursor,
    tx: &mut dyn ReadTransaction,
    database: DatabaseId,
) -> Result<Pairs, Refusal> {
    let outputs = cursor.read(tx, database, whole)?;
    cursor.step_if_asked(inputs, tx, database)?;
    Ok(outputs)
}

pub(super) fn set_value(
    inputs: &Inputs,
    cursor: &mut Cursor,
    tx: &mut dyn WriteTransaction,
    database: DatabaseId,
) -> Result<Pairs, Refusal> {
    let value = inputs.need("value")?;
    let key = cursor.current(tx, database)?;
    put(tx, database, &key, value, inputs.xt())?;
    cursor.step_if_asked(inputs, tx, database)?;
    Ok(Pairs::new())
}

pub(super) fn remove(
    _: &Inputs,
    cursor: &mut Cursor,
    tx: &mut dyn WriteTransaction,
    database: DatabaseId,
) -> Result<Pairs, Refusal> {
    let key = cursor.current(tx, database)?;
    tx.delete(database, &key)?;
    Ok(Pairs::new())
}

pub(super) fn seize(
    _: &Inputs,
    cursor: &mut Cursor,
    tx: &mut dyn WriteTransaction,
    database: DatabaseId,
) -> Result<Pairs, Refusal> {
    let outputs = cursor.read(tx, database, whole)?;
    let key = cursor.current(tx, database)?;
    tx.delete(database, &key)?;
    Ok(outputs)
}
