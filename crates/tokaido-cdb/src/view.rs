//! Reading a cdb file that is in memory, however it got there. Nothing in it is trusted: every
//! position is checked before it is followed, and every loop is bounded by the file's length.

use std::iter::FusedIterator;

use super::{
    error::Damaged,
    format::{self, HEADER_LEN, PAIR_LEN, TABLES},
    statistics::Statistics,
};

/// A cdb file in memory.
///
/// A look-up costs hashing the key, one access to a hash table and, on average, less than two
/// comparisons. Nothing is copied.
///
/// ```
/// use tokaido_cdb::View;
///
/// let empty = [[0, 8, 0, 0, 0, 0, 0, 0]; 256].concat();
/// assert_eq!(View::new(&empty)?.get(b"key")?, None);
/// # Ok::<(), tokaido_cdb::Damaged>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    bytes: &'a [u8],
    /// Where the records end and the hash tables begin.
    data_end: usize,
}

/// One record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The value.
    pub value: &'a [u8],
}

impl<'a> View<'a> {
    /// Reads the header, and checks that the records and all hash tables are within the file.
    ///
    /// # Errors
    /// [`Damaged`] if `bytes` are not a cdb file, are an unfinished one, or were cut short.
    pub fn new(bytes: &'a [u8]) -> Result<Self, Damaged> {
        let len = bytes.len() as u64;
        let damaged = |what, position| Err(Damaged { what, position });
        let Some(header) = bytes.first_chunk::<HEADER_LEN>() else {
            return damaged("the header is cut short", len);
        };
        let (tables, _) = header.as_chunks::<PAIR_LEN>();
        // The first table follows the last record, even if it has no slots.
        let (data_end, _) = format::decode_pair(tables[0]);
        if (data_end as usize) < HEADER_LEN {
            return damaged("the header was not written", 0);
        }
        for (number, &table) in tables.iter().enumerate() {
            let (position, slots) = format::decode_pair(table);
            let end = u64::from(position) + u64::from(slots) * PAIR_LEN as u64;
            // Some writers give a table without slots no position; no reader looks there.
            if slots == 0 && number > 0 {
                continue;
            }
            if position < data_end {
                return damaged("a hash table among the records", (number * PAIR_LEN) as u64);
            }
            if end > len {
                return damaged("a hash table behind the end of the file", len);
            }
        }
        Ok(Self { bytes, data_end: data_end as usize })
    }

    /// A view of bytes that have been checked before.
    pub(super) fn of_checked(bytes: &'a [u8], data_end: usize) -> Self {
        Self { bytes, data_end }
    }

    pub(super) fn data_end(&self) -> usize {
        self.data_end
    }

    /// The value of `key`: the first one, if there are several.
    ///
    /// # Errors
    /// [`Damaged`] if a position on the way to the key is outside the file.
    #[inline]
    pub fn get(&self, key: &[u8]) -> Result<Option<&'a [u8]>, Damaged> {
        self.get_all(key).next().transpose()
    }

    /// All values of `key`, in the order in which they were put. After an error nothing follows.
    #[inline]
    pub fn get_all<'k>(&self, key: &'k [u8]) -> Values<'a, 'k> {
        let hash = format::hash(key);
        match self.table(format::table_of(hash)) {
            Ok(slots) => {
                let next = if slots.is_empty() { 0 } else { format::first_slot(hash, slots.len()) };
                Values { view: *self, key, hash, slots, next, left: slots.len(), damaged: None }
            }
            Err(damaged) => {
                let damaged = Some(damaged);
                Values { view: *self, key, hash, slots: &[], next: 0, left: 0, damaged }
            }
        }
    }

    /// All records, in the order of the file, which is the order in which they were put. After an
    /// error nothing follows.
    pub fn iter(&self) -> Iter<'a> {
        Iter { view: *self, next: HEADER_LEN }
    }

    /// As [`iter`](Self::iter), from a [position](Iter::position) on.
    #[must_use]
    pub fn iter_from(&self, position: usize) -> Iter<'a> {
        Iter { view: *self, next: position.max(HEADER_LEN) }
    }

    /// Counts the records, and measures how well the hash tables spread them.
    ///
    /// # Errors
    /// [`Damaged`] if a record or a table extends past the file.
    pub fn statistics(&self) -> Result<Statistics, Damaged> {
        Statistics::of(self)
    }

    /// The slots of a hash table, by its number below [`TABLES`]. They were checked, but a mapped
    /// file may have changed since.
    #[inline]
    pub(super) fn table(&self, number: usize) -> Result<&'a [[u8; PAIR_LEN]], Damaged> {
        debug_assert!(number < TABLES);
        let at = number * PAIR_LEN;
        let pair = self.bytes.get(at..).and_then(|rest| rest.first_chunk());
        let (position, slots) = pair.map_or((0, 0), |&pair| format::decode_pair(pair));
        let rest = self.bytes.get(position as usize..).map(|rest| rest.as_chunks().0);
        rest.and_then(|slots_and_more| slots_and_more.get(..slots as usize))
            .ok_or(Damaged { what: "a hash table behind the end of the file", position: at as u64 })
    }

    /// The record at `position`, and the position after it.
    #[inline]
    fn record(&self, position: usize) -> Result<(Record<'a>, usize), Damaged> {
        let damaged = |what| Damaged { what, position: position as u64 };
        let data = self.bytes.get(HEADER_LEN..self.data_end);
        let here = position.checked_sub(HEADER_LEN);
        let rest = data.zip(here).and_then(|(data, here)| data.get(here..));
        let (&lengths, rest) = rest
            .and_then(|rest| rest.split_first_chunk())
            .ok_or(damaged("a record that is not among the records"))?;
        let (key_len, value_len) = format::decode_pair(lengths);
        let (key, rest) = rest
            .split_at_checked(key_len as usize)
            .ok_or(damaged("a record whose key is too long"))?;
        let value =
            rest.get(..value_len as usize).ok_or(damaged("a record whose value is too long"))?;
        let end = position + PAIR_LEN + key.len() + value.len();
        Ok((Record { key, value }, end))
    }
}

impl<'a> IntoIterator for View<'a> {
    type Item = Result<Record<'a>, Damaged>;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

/// The values of a key. See [`View::get_all`].
#[derive(Clone, Debug)]
pub struct Values<'a, 'k> {
    view: View<'a>,
    key: &'k [u8],
    hash: u32,
    slots: &'a [[u8; PAIR_LEN]],
    next: usize,
    /// Slots not looked at yet. Ends the search in a table without an empty slot.
    left: usize,
    /// The damage, if the table could not be searched.
    damaged: Option<Damaged>,
}

impl<'a> Iterator for Values<'a, '_> {
    type Item = Result<&'a [u8], Damaged>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if let Some(damaged) = self.damaged.take() {
            return Some(Err(damaged));
        }
        while self.left > 0 {
            let (hash, position) = format::decode_pair(self.slots[self.next]);
            if position == 0 {
                break;
            }
            self.left -= 1;
            self.next += 1;
            if self.next == self.slots.len() {
                self.next = 0;
            }
            if hash != self.hash {
                continue;
            }
            match self.view.record(position as usize) {
                Ok((record, _)) if record.key == self.key => return Some(Ok(record.value)),
                Ok(_) => {}
                Err(damaged) => {
                    self.left = 0;
                    return Some(Err(damaged));
                }
            }
        }
        self.left = 0;
        None
    }
}

impl FusedIterator for Values<'_, '_> {}

/// The records of a file. See [`View::iter`].
#[derive(Clone, Debug)]
pub struct Iter<'a> {
    view: View<'a>,
    next: usize,
}

impl Iter<'_> {
    /// The position of the next record; `None` at the end.
    #[must_use]
    pub fn position(&self) -> Option<usize> {
        (self.next < self.view.data_end).then_some(self.next)
    }
}

impl<'a> Iterator for Iter<'a> {
    type Item = Result<Record<'a>, Damaged>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.next >= self.view.data_end {
            return None;
        }
        match self.view.record(self.next) {
            Ok((record, end)) => {
                self.next = end;
                Some(Ok(record))
            }
            Err(damaged) => {
                self.next = self.view.data_end;
                Some(Err(damaged))
            }
        }
    }
}

impl FusedIterator for Iter<'_> {}
