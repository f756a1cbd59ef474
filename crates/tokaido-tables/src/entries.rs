//! The entries of a row in the indexes of its table.
//!
//! ```text
//! key      the prefix of derived elements (9 bytes), 1, number of the index u16 big-endian,
//!          head, key of the row
//! value    length of the head u16 little-endian
//! ```
//! The head is what the row is indexed by: a text or a gram, truncated to 1024 bytes and followed
//! by a NUL; or a number in its ordered form.

use std::collections::BTreeSet;

use tokaido_store::{DatabaseId, Kind, NewRecord, ReadError, Record, WriteError};

use crate::{
    Index, IndexKind, Row,
    declaration::{Declaration, ENTRY},
    limits::{HEAD_LEN_MAX, ROW_INDEX_BYTES_MAX, ROW_KEY_LEN_MAX},
    number::Number,
    text,
};

/// Length in bytes of the common prefix of an index's entries.
pub(crate) const PREFIX_LEN: usize = DatabaseId::DERIVED_ELEMENTS.len() + 1 + 2;

/// The keys of entries.
pub(crate) type Entries = BTreeSet<Vec<u8>>;

/// The value of a row's record, if it is a row.
pub(crate) fn row_value<'r>(record: &Record<'r>) -> Option<&'r [u8]> {
    (record.kind == Kind::Bytes).then_some(record.value)
}

/// As [`row_value`], for a record that has yet to be put.
pub(crate) fn new_row_value<'r>(record: &NewRecord<'r>) -> Option<&'r [u8]> {
    (record.kind == Kind::Bytes).then_some(record.value)
}

/// All entries of a row.
///
/// # Errors
/// If the key is too long for an entry, or if there would be too many entries.
pub(crate) fn of_row(
    declaration: &Declaration,
    key: &[u8],
    value: Option<&[u8]>,
) -> Result<Entries, WriteError> {
    let mut entries = Entries::new();
    let Some(value) = value else { return Ok(entries) };
    if key.len() > ROW_KEY_LEN_MAX {
        return Err(ReadError::KeyLength { len: key.len(), max: ROW_KEY_LEN_MAX }.into());
    }
    let mut bytes = 0;
    for index in declaration.indexes.iter().filter(|index| index.is_followed()) {
        visit(index, key, Row::new(value), &mut |entry| {
            bytes += entry.len();
            if bytes > ROW_INDEX_BYTES_MAX {
                return Err(too_many());
            }
            // A duplicate within a row takes no space.
            let len = entry.len();
            if !entries.insert(entry) {
                bytes -= len;
            }
            Ok(())
        })?;
    }
    Ok(entries)
}

#[cold]
fn too_many() -> WriteError {
    let message = format!(
        "the entries of this row in the indexes of its table have more than {ROW_INDEX_BYTES_MAX} bytes; \
         split the row, or remove an index"
    );
    WriteError::Engine { message }
}

/// The entries of a row in one index.
pub(crate) fn of_index(index: &Index, key: &[u8], row: Row<'_>) -> Entries {
    let mut entries = Entries::new();
    let visited: Result<(), WriteError> = visit(index, key, row, &mut |entry| {
        entries.insert(entry);
        Ok(())
    });
    debug_assert!(visited.is_ok(), "collecting does not fail");
    entries
}

fn visit<E>(
    index: &Index,
    key: &[u8],
    row: Row<'_>,
    add: &mut dyn FnMut(Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    let value = if index.column.is_empty() { Some(key) } else { row.column(&index.column) };
    let Some(value) = value else { return Ok(()) };
    let mut add_text = |text: &[u8]| add([&text_prefix(index, text), key].concat());
    match index.kind {
        IndexKind::Lexical => add_text(value),
        IndexKind::Token => text::tokens(value).try_for_each(add_text),
        IndexKind::Qgram => {
            text::grams(&text::folded(value)).try_for_each(|gram| add_text(gram.as_bytes()))
        }
        IndexKind::Decimal => {
            let number = Number::parse(value);
            add([&prefix(index)[..], number.as_bytes(), key].concat())
        }
    }
}

/// The common prefix of an index's entries.
pub(crate) fn prefix(index: &Index) -> Vec<u8> {
    let mut prefix = DatabaseId::DERIVED_ELEMENTS.to_vec();
    prefix.push(ENTRY);
    prefix.extend(index.number.to_be_bytes());
    prefix
}

/// The common prefix of the entries with a text.
pub(crate) fn text_prefix(index: &Index, text: &[u8]) -> Vec<u8> {
    let mut head = beginning_prefix(index, text);
    head.push(0);
    head
}

/// The common prefix of the entries whose text begins with `beginning`.
pub(crate) fn beginning_prefix(index: &Index, beginning: &[u8]) -> Vec<u8> {
    let mut head = prefix(index);
    head.extend(&beginning[..beginning.len().min(HEAD_LEN_MAX)]);
    head
}

/// The value of an entry.
pub(crate) fn value(entry: &[u8], key: &[u8]) -> [u8; 2] {
    ((entry.len() - key.len() - PREFIX_LEN) as u16).to_le_bytes()
}

/// An entry that was read.
pub(crate) struct Entry {
    pub(crate) key: Vec<u8>,
    head_len: usize,
}

impl Entry {
    pub(crate) fn new(key: &[u8], value: &[u8]) -> Result<Self, ReadError> {
        let head_len = value.try_into().map(|len| usize::from(u16::from_le_bytes(len)));
        let entry = head_len.map(|head_len| Self { key: key.to_vec(), head_len });
        entry
            .ok()
            .filter(|entry| PREFIX_LEN + entry.head_len < key.len())
            .ok_or_else(|| ReadError::Damaged { what: "an entry of an index".to_owned() })
    }

    /// The key of the row.
    pub(crate) fn row_key(&self) -> &[u8] {
        &self.key[PREFIX_LEN + self.head_len..]
    }

    /// Whether its text may be a truncated one.
    pub(crate) fn is_cut(&self) -> bool {
        self.head_len > HEAD_LEN_MAX
    }
}
