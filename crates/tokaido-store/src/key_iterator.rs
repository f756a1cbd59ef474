//! An iterator over the keys of a database. Its state is just the current key, so it holds nothing
//! open, and if the record there is removed it moves to the next one.

use std::{collections::VecDeque, ops::Bound};

use crate::{DatabaseId, Direction, ReadError, ReadTransaction};

/// How many keys of an unordered database are fetched at once.
const PAGE_RECORDS: usize = 64;

/// An iterator over the keys of a database.
#[derive(Clone, Debug, Default)]
pub struct KeyIterator(Place);

#[derive(Clone, Debug, Default)]
enum Place {
    /// At the end, or never set.
    #[default]
    Nowhere,
    /// At the next key from here.
    From(Bound<Vec<u8>>),
    /// At the first of these keys of an unordered database; `next` is the cursor for the rest.
    Page { keys: VecDeque<Vec<u8>>, next: Option<u64> },
}

impl KeyIterator {
    /// Moves to the first key.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn rewind(
        &mut self,
        tx: &mut dyn ReadTransaction,
        database: DatabaseId,
    ) -> Result<(), ReadError> {
        self.0 = match tx.seek(database, Bound::Unbounded, Direction::Forward) {
            Ok(_) => Place::From(Bound::Unbounded),
            Err(ReadError::Unordered) => Place::Page { keys: VecDeque::new(), next: Some(0) },
            Err(error) => return Err(error),
        };
        Ok(())
    }

    /// Moves to a key, or to the next one if there is no such record; returns whether there is one.
    /// If not, the iterator stays where it is.
    ///
    /// # Errors
    /// If the database cannot be read, or its keys have no order.
    pub fn jump(
        &mut self,
        tx: &mut dyn ReadTransaction,
        database: DatabaseId,
        key: &[u8],
    ) -> Result<bool, ReadError> {
        let found = tx.seek(database, Bound::Included(key), Direction::Forward)?;
        let Some(found) = found.map(|entry| entry.key.to_vec()) else { return Ok(false) };
        self.0 = Place::From(Bound::Included(found));
        Ok(true)
    }

    /// Returns the current key and moves past it; `None` at the end.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn next(
        &mut self,
        tx: &mut dyn ReadTransaction,
        database: DatabaseId,
    ) -> Result<Option<Vec<u8>>, ReadError> {
        match &mut self.0 {
            Place::Nowhere => Ok(None),
            Place::From(from) => {
                let from = from.as_ref().map(Vec::as_slice);
                let found = tx.seek(database, from, Direction::Forward)?;
                let found = found.map(|entry| entry.key.to_vec());
                self.0 = match &found {
                    Some(key) => Place::From(Bound::Excluded(key.clone())),
                    None => Place::Nowhere,
                };
                Ok(found)
            }
            Place::Page { keys, next } => loop {
                match keys.pop_front() {
                    Some(key) if tx.get(database, &key)?.is_some() => break Ok(Some(key)),
                    Some(_) => {}
                    None => {
                        let Some(at) = *next else {
                            self.0 = Place::Nowhere;
                            break Ok(None);
                        };
                        *next = tx.page(database, at, PAGE_RECORDS, &mut |entry| {
                            keys.push_back(entry.key.to_vec());
                        })?;
                    }
                }
            },
        }
    }
}
