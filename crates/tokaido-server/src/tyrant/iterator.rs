//! The iterator of a connection. The key where it stands is the iterator, so nothing is held open, and
//! when the record there is removed it stands at the next one.

use std::{collections::VecDeque, ops::Bound};

use tokaido_store::{DatabaseId, Direction, ReadError, ReadTransaction};

use super::refusal::Refusal;

/// Keys of an unordered database that are taken at once.
const PAGE_RECORDS: usize = 64;

/// An iterator over the keys of a database.
#[derive(Clone, Debug, Default)]
pub(crate) struct Iterator(Place);

#[derive(Clone, Debug, Default)]
enum Place {
    /// At the end, or never set.
    #[default]
    Nowhere,
    /// At the next key from here.
    From(Bound<Vec<u8>>),
    /// At the first of these keys of a database without an order, and where the others are.
    Page { keys: VecDeque<Vec<u8>>, next: Option<u64> },
}

impl Iterator {
    /// Sets it to the first key.
    pub(super) fn rewind(
        &mut self,
        tx: &mut dyn ReadTransaction,
        database: DatabaseId,
    ) -> Result<(), Refusal> {
        self.0 = match tx.seek(database, Bound::Unbounded, Direction::Forward) {
            Ok(_) => Place::From(Bound::Unbounded),
            Err(ReadError::Unordered) => Place::Page { keys: VecDeque::new(), next: Some(0) },
            Err(error) => return Err(error.into()),
        };
        Ok(())
    }

    /// Sets it to a key, or to the next one if there is no such record.
    pub(super) fn jump(
        &mut self,
        tx: &mut dyn ReadTransaction,
        database: DatabaseId,
        key: &[u8],
    ) -> Result<(), Refusal> {
        let found = tx.seek(database, Bound::Included(key), Direction::Forward)?;
        let found = found.map(|entry| entry.key.to_vec()).ok_or_else(Refusal::missing)?;
        self.0 = Place::From(Bound::Included(found));
        Ok(())
    }

    /// The key where it stands, from where it steps on.
    pub(super) fn next(
        &mut self,
        tx: &mut dyn ReadTransaction,
        database: DatabaseId,
    ) -> Result<Vec<u8>, Refusal> {
        match &mut self.0 {
            Place::Nowhere => Err(Refusal::missing()),
            Place::From(from) => {
                let from = from.as_ref().map(Vec::as_slice);
                let found = tx.seek(database, from, Direction::Forward)?;
                let found = found.map(|entry| entry.key.to_vec());
                self.0 = match &found {
                    Some(key) => Place::From(Bound::Excluded(key.clone())),
                    None => Place::Nowhere,
                };
                found.ok_or_else(Refusal::missing)
            }
            Place::Page { keys, next } => loop {
                match keys.pop_front() {
                    Some(key) if tx.get(database, &key)?.is_some() => break Ok(key),
                    Some(_) => {}
                    None => {
                        let Some(at) = *next else {
                            self.0 = Place::Nowhere;
                            break Err(Refusal::missing());
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
