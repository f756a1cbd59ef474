//! The indexes of a table, stored in one of the database's own elements.
//!
//! ```text
//! version u8 (1), number for the next index u16, then for each index:
//! number u16, kind u8, state u8, length of the name u16, name, length of the cursor u16, cursor
//! ```
//! All numbers are little-endian. The cursor is the last row's key in an index that is being built.

use tokaido_store::{
    DatabaseId, NewRecord, ReadError, ReadTransaction, WriteError, WriteTransaction,
};

use crate::{
    QueryError, TableError,
    condition::{integer_of, lossy},
    limits,
};

/// The format version.
const VERSION: u8 = 1;

/// What follows [`DatabaseId::DERIVED_ELEMENTS`] in the keys of the declaration and of entries.
const DECLARATION: u8 = 0;
pub(crate) const ENTRY: u8 = 1;

/// Set in the number of a kind: an existing index is to be kept.
const KEEP: i64 = 1 << 24;

/// What an index can be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum IndexKind {
    /// Whole texts, prefixes of texts, and their order.
    Lexical = 0,
    /// Numbers, ranges of them, and their order.
    Decimal = 1,
    /// The tokens of texts.
    Token = 2,
    /// Every three characters of folded texts, for full-text search.
    Qgram = 3,
}

/// How complete an index is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// It has every row.
    Built,
    /// It has the rows up to this key, and those written since it was declared.
    Building(Vec<u8>),
    /// It is to be removed, and no longer maintained.
    Removing,
}

/// One index of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index {
    /// Part of the keys of the entries. No other index of the table has ever had it.
    pub(crate) number: u16,
    /// The column; if empty, the key of the row.
    pub column: Vec<u8>,
    /// What it can be used for.
    pub kind: IndexKind,
    pub(crate) state: State,
}

/// What `setindex` can set for a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexSetting {
    /// Create an index of this kind, replacing an existing one.
    Make(IndexKind),
    /// As [`Make`](Self::Make), but refused if there is an index.
    Keep(IndexKind),
    /// Rebuild the existing index.
    Optimize,
    /// Remove the index.
    Remove,
}

/// Kinds by name, and the two settings that are not kinds.
const SETTINGS: [(&[&str], i64, IndexSetting); 6] = [
    (&["LEXICAL", "LEX", "STR"], 0, IndexSetting::Make(IndexKind::Lexical)),
    (&["DECIMAL", "DEC", "NUM"], 1, IndexSetting::Make(IndexKind::Decimal)),
    (&["TOKEN", "TOK"], 2, IndexSetting::Make(IndexKind::Token)),
    (&["QGRAM", "QGR", "FTS"], 3, IndexSetting::Make(IndexKind::Qgram)),
    (&["OPTIMIZE", "OPT"], 9998, IndexSetting::Optimize),
    (&["VOID", "NULL"], 9999, IndexSetting::Remove),
];

impl IndexSetting {
    /// The setting of that name or number; a `+` before it keeps an existing index.
    ///
    /// # Errors
    /// [`QueryError::IndexKind`].
    pub fn from_name(name: &[u8]) -> Result<Self, QueryError> {
        let (plain, keeps) = match name.strip_prefix(b"+") {
            Some(plain) => (plain, true),
            None => (name, false),
        };
        let number = integer_of(plain);
        let keeps = keeps || number.is_some_and(|number| number & KEEP != 0);
        let found = SETTINGS.iter().find(|(names, own, _)| match number {
            Some(number) => number & !KEEP == *own,
            None => names.iter().any(|other| plain.eq_ignore_ascii_case(other.as_bytes())),
        });
        match found.ok_or_else(|| QueryError::IndexKind { name: lossy(name) })?.2 {
            Self::Make(kind) if keeps => Ok(Self::Keep(kind)),
            setting => Ok(setting),
        }
    }
}

/// All indexes of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Declaration {
    next_number: u16,
    pub(crate) indexes: Vec<Index>,
}

/// The indexes of a table, including those being built.
///
/// # Errors
/// Only if the engine fails, or stored data is damaged.
pub fn indexes(
    tx: &mut dyn ReadTransaction,
    database: DatabaseId,
) -> Result<Vec<Index>, ReadError> {
    let mut indexes = Declaration::read(tx, database)?.unwrap_or_default().indexes;
    indexes.retain(|index| index.state != State::Removing);
    Ok(indexes)
}

impl Declaration {
    /// The key of the declaration's element.
    pub(crate) fn key() -> [u8; DatabaseId::DERIVED_ELEMENTS.len() + 1] {
        let mut key = [DECLARATION; _];
        key[..DatabaseId::DERIVED_ELEMENTS.len()].copy_from_slice(&DatabaseId::DERIVED_ELEMENTS);
        key
    }

    pub(crate) fn is_there(
        tx: &mut (impl ReadTransaction + ?Sized),
        database: DatabaseId,
    ) -> Result<bool, ReadError> {
        Ok(tx.get(database.elements(), &Self::key())?.is_some())
    }

    /// `None` if none has ever been written: then the table has no indexes.
    pub(crate) fn read(
        tx: &mut (impl ReadTransaction + ?Sized),
        database: DatabaseId,
    ) -> Result<Option<Self>, ReadError> {
        let Some(record) = tx.get(database.elements(), &Self::key())? else { return Ok(None) };
        let damaged = || ReadError::Damaged { what: "the list of a table's indexes".to_owned() };
        Self::decode(record.value).map(Some).ok_or_else(damaged)
    }

    pub(crate) fn write(
        &self,
        tx: &mut dyn WriteTransaction,
        database: DatabaseId,
    ) -> Result<(), WriteError> {
        let value = self.encode();
        tx.put(database.elements(), &Self::key(), NewRecord::of(&value))
    }

    /// The index of a column.
    pub(crate) fn find(&self, column: &[u8]) -> Option<&Index> {
        self.indexes.iter().find(|index| index.is_followed() && index.column == column)
    }

    /// Adds an index that has yet to be built.
    pub(crate) fn add(&mut self, column: &[u8], kind: IndexKind) -> Result<(), TableError> {
        if self.indexes.len() >= limits::INDEXES_MAX || self.next_number == u16::MAX {
            return Err(TableError::TooManyIndexes);
        }
        if column.len() > limits::INDEX_NAME_LEN_MAX {
            return Err(TableError::IndexName);
        }
        let (number, column) = (self.next_number, column.to_vec());
        self.next_number += 1;
        self.indexes.push(Index { number, column, kind, state: State::Building(Vec::new()) });
        Ok(())
    }

    /// A declaration of one index only.
    pub(crate) fn of_one(index: Index) -> Self {
        Self { next_number: 0, indexes: vec![index] }
    }

    /// What is left of it when the table is cleared: then every index has all rows.
    pub(crate) fn cleared(mut self) -> Self {
        self.indexes.retain(Index::is_followed);
        self.indexes.iter_mut().for_each(|index| index.state = State::Built);
        self
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        out.extend(self.next_number.to_le_bytes());
        for Index { number, column, kind, state } in &self.indexes {
            let (state, cursor) = match state {
                State::Built => (0, &[][..]),
                State::Building(cursor) => (1, &cursor[..]),
                State::Removing => (2, &[][..]),
            };
            out.extend(number.to_le_bytes());
            out.extend([*kind as u8, state]);
            for text in [&column[..], cursor] {
                out.extend((text.len() as u16).to_le_bytes());
                out.extend(text);
            }
        }
        out
    }

    fn decode(stored: &[u8]) -> Option<Self> {
        use IndexKind::{Decimal, Lexical, Qgram, Token};
        let mut rest = stored.strip_prefix(&[VERSION])?;
        let next_number = take_number(&mut rest)?;
        let mut indexes = Vec::new();
        while !rest.is_empty() {
            let number = take_number(&mut rest)?;
            let (&[kind, state], tail) = rest.split_first_chunk::<2>()?;
            rest = tail;
            let column = take_text(&mut rest)?;
            let cursor = take_text(&mut rest)?;
            let kind = *[Lexical, Decimal, Token, Qgram].get(usize::from(kind))?;
            let state = match state {
                0 => State::Built,
                1 => State::Building(cursor),
                2 => State::Removing,
                _ => return None,
            };
            indexes.push(Index { number, column, kind, state });
        }
        Some(Self { next_number, indexes })
    }
}

impl Index {
    /// Whether it exists, and is updated with the rows that are written.
    pub(crate) fn is_followed(&self) -> bool {
        self.state != State::Removing
    }

    /// Whether every row is in it, so that queries may use it.
    #[must_use]
    pub fn is_built(&self) -> bool {
        self.state == State::Built
    }
}

fn take_number(rest: &mut &[u8]) -> Option<u16> {
    let (number, tail) = rest.split_first_chunk::<2>()?;
    *rest = tail;
    Some(u16::from_le_bytes(*number))
}

fn take_text(rest: &mut &[u8]) -> Option<Vec<u8>> {
    let len = take_number(rest)?;
    let (text, tail) = rest.split_at_checked(len.into())?;
    *rest = tail;
    Some(text.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_declaration_reads_back_and_damage_is_found() {
        let mut declaration = Declaration::default();
        for (place, kind) in
            [IndexKind::Lexical, IndexKind::Decimal, IndexKind::Token, IndexKind::Qgram]
                .into_iter()
                .enumerate()
        {
            declaration.add(format!("c{place}").as_bytes(), kind).unwrap();
        }
        declaration.indexes[1].state = State::Built;
        declaration.indexes[2].state = State::Removing;
        declaration.indexes[3].state = State::Building(b"cursor".to_vec());
        let stored = declaration.encode();
        assert_eq!(Declaration::decode(&stored), Some(declaration));
        for end in (0..stored.len()).filter(|end| !matches!(end, 3)) {
            let whole = Declaration::decode(&stored[..end]);
            assert!(whole.is_none_or(|short| short.indexes.len() < 4), "{end}");
        }
        assert_eq!(Declaration::decode(b"\x02\0\0"), None);
    }

    #[test]
    fn settings_have_names_and_numbers() {
        for (name, setting) in [
            ("LEXICAL", IndexSetting::Make(IndexKind::Lexical)),
            ("+dec", IndexSetting::Keep(IndexKind::Decimal)),
            ("2", IndexSetting::Make(IndexKind::Token)),
            ("16777219", IndexSetting::Keep(IndexKind::Qgram)),
            ("opt", IndexSetting::Optimize),
            ("9999", IndexSetting::Remove),
        ] {
            assert_eq!(IndexSetting::from_name(name.as_bytes()), Ok(setting), "{name}");
        }
        assert!(IndexSetting::from_name(b"-1").is_err());
        assert!(IndexSetting::from_name(b"hash").is_err());
    }
}
