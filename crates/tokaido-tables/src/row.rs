//! Rows: columns with values, in the form of their records, `name NUL value NUL name NUL value`,
//! which is also Tokyo Cabinet's. So every protocol reads and writes the row itself.

use std::collections::HashMap;

use crate::TableError;

/// The columns of a row, read from the value of its record. A last name without a value is ignored;
/// if a name occurs twice, the last one counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row<'r>(&'r [u8]);

impl<'r> Row<'r> {
    /// The row in a record's value.
    #[must_use]
    pub fn new(value: &'r [u8]) -> Self {
        Self(value)
    }

    /// Names with values, as they are stored.
    pub fn columns(self) -> impl Iterator<Item = (&'r [u8], &'r [u8])> {
        let mut parts = self.0.split(|byte| *byte == 0);
        std::iter::from_fn(move || Some((parts.next()?, parts.next()?)))
    }

    /// The value of a column.
    #[must_use]
    pub fn column(self, name: &[u8]) -> Option<&'r [u8]> {
        self.columns().filter(|(other, _)| *other == name).last().map(|(_, value)| value)
    }
}

/// A row that is being built: columns in the order in which they came, each name once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    columns: Vec<(Vec<u8>, Vec<u8>)>,
    places: HashMap<Vec<u8>, usize>,
}

impl Columns {
    /// The columns of a row.
    #[must_use]
    pub fn of(row: Row<'_>) -> Self {
        let mut columns = Self::default();
        for (name, value) in row.columns() {
            columns.set(name, value);
        }
        columns
    }

    /// The columns in arguments, each name followed by its value. A last name alone is left out.
    ///
    /// # Errors
    /// [`TableError::Nul`] for a name or a value with a NUL, which separates them in the row.
    pub fn from_arguments(arguments: &[&[u8]]) -> Result<Self, TableError> {
        let mut columns = Self::default();
        for pair in arguments.chunks_exact(2) {
            if pair.iter().any(|text| memchr::memchr(0, text).is_some()) {
                return Err(TableError::Nul);
            }
            columns.set(pair[0], pair[1]);
        }
        Ok(columns)
    }

    /// The value of a column.
    pub(crate) fn get(&self, name: &[u8]) -> Option<&[u8]> {
        self.places.get(name).map(|&place| &self.columns[place].1[..])
    }

    /// Sets the value of a column, replacing an existing one.
    pub(crate) fn set(&mut self, name: &[u8], value: &[u8]) {
        match self.places.get(name) {
            Some(&place) => self.columns[place].1 = value.to_vec(),
            None => self.push(name, value),
        }
    }

    /// Adds the columns of `others` whose names are missing.
    pub(crate) fn add_missing(&mut self, others: &Self) {
        for (name, value) in &others.columns {
            if !self.places.contains_key(name) {
                self.push(name, value);
            }
        }
    }

    fn push(&mut self, name: &[u8], value: &[u8]) {
        self.places.insert(name.to_vec(), self.columns.len());
        self.columns.push((name.to_vec(), value.to_vec()));
    }

    /// The value of the row's record.
    #[must_use]
    pub fn to_value(&self) -> Vec<u8> {
        let texts: Vec<&[u8]> =
            self.columns.iter().flat_map(|(name, value)| [&name[..], &value[..]]).collect();
        texts.join(&0)
    }

    /// Names and values, one after the other.
    pub(crate) fn into_texts(self) -> impl Iterator<Item = Vec<u8>> {
        self.columns.into_iter().flat_map(|(name, value)| [name, value])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(value: &[u8]) -> Vec<(&[u8], &[u8])> {
        Row::new(value).columns().collect()
    }

    #[test]
    fn any_value_is_a_row() {
        assert_eq!(columns(b""), []);
        assert_eq!(columns(b"lone"), []);
        assert_eq!(columns(b"a\0"), [(&b"a"[..], &b""[..])]);
        assert_eq!(columns(b"a\x001\0b\x002\0lone"), [(&b"a"[..], &b"1"[..]), (b"b", b"2")]);
        assert_eq!(Row::new(b"a\x001\0a\x002").column(b"a"), Some(&b"2"[..]));
        assert_eq!(Row::new(b"a\x001").column(b"1"), None);
    }

    #[test]
    fn a_name_stands_in_a_row_once() {
        let columns = Columns::from_arguments(&[b"a", b"1", b"b", b"2", b"a", b"3", b"lone"]);
        let mut columns = columns.unwrap();
        assert_eq!(columns.to_value(), b"a\x003\0b\x002");
        columns.add_missing(&Columns::from_arguments(&[b"b", b"9", b"c", b""]).unwrap());
        assert_eq!(columns.to_value(), b"a\x003\0b\x002\0c\0");
        assert_eq!(Columns::of(Row::new(&columns.to_value())), columns);
        assert!(matches!(Columns::from_arguments(&[b"a", b"x\0y"]), Err(TableError::Nul)));
    }
}
