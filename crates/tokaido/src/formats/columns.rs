//! The columns of one line, and which of them make a record.

use super::row::{Reason, Row};

/// The columns of one line, in a buffer that is reused for the next.
#[derive(Debug, Default)]
pub(crate) struct Columns {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Columns {
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Adds to the current column.
    pub(crate) fn extend(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Ends the current column.
    pub(crate) fn end_column(&mut self) {
        self.ends.push(self.bytes.len());
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn byte_len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn get(&self, index: usize) -> Option<&[u8]> {
        let end = *self.ends.get(index)?;
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        Some(&self.bytes[start..end])
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).filter_map(|index| self.get(index))
    }
}

/// The columns that make up a record, by index from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Selection {
    pub(crate) key: usize,
    /// Joined by TABs; `None`: every column but the key.
    pub(crate) values: Option<Vec<usize>>,
}

impl Selection {
    /// Finds the requested columns, given as numbers from 1 or as names in the header.
    pub(crate) fn resolve(
        key: Option<&str>,
        values: Option<&[String]>,
        header: Option<&Columns>,
    ) -> Result<Self, SelectionError> {
        let key = key.map_or(Ok(0), |key| resolve_column(key, header))?;
        let values = values
            .map(|values| values.iter().map(|value| resolve_column(value, header)).collect())
            .transpose()?;
        Ok(Self { key, values })
    }

    /// Makes a record of the columns of one line.
    pub(crate) fn apply(&self, columns: &Columns, row: &mut Row) -> Result<(), Reason> {
        let column = |index| {
            let missing = || Reason::NoColumn { wanted: index + 1, found: columns.len() };
            columns.get(index).ok_or_else(missing)
        };
        row.clear();
        row.key.extend_from_slice(column(self.key)?);
        match &self.values {
            None => {
                let others = columns.iter().enumerate().filter(|(index, _)| *index != self.key);
                others.for_each(|(_, text)| push_joined(&mut row.value, text));
            }
            Some(indices) => {
                for &index in indices {
                    push_joined(&mut row.value, column(index)?);
                }
            }
        }
        // Each column added a TAB after itself, so that an empty first one is not lost.
        row.value.pop();
        Ok(())
    }
}

fn push_joined(value: &mut Vec<u8>, text: &[u8]) {
    value.extend_from_slice(text);
    value.push(b'\t');
}

fn resolve_column(wanted: &str, header: Option<&Columns>) -> Result<usize, SelectionError> {
    if wanted.bytes().all(|b| b.is_ascii_digit()) {
        let number: usize = wanted.parse().unwrap_or(0);
        return number.checked_sub(1).ok_or_else(|| SelectionError::BadNumber(wanted.to_owned()));
    }
    let header = header.ok_or_else(|| SelectionError::NoHeader(wanted.to_owned()))?;
    header.iter().position(|name| name == wanted.as_bytes()).ok_or_else(|| {
        let names: Vec<_> = header.iter().map(String::from_utf8_lossy).collect();
        SelectionError::NoSuchName { name: wanted.to_owned(), names: names.join(", ") }
    })
}

/// The requested columns are invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SelectionError {
    #[error("{0:?} is no column number: they count from 1")]
    BadNumber(String),
    #[error("column {0:?} is a name, but the file has none; say --header, or give a number")]
    NoHeader(String),
    #[error("the header has no column {name:?}; it has: {names}")]
    NoSuchName { name: String, names: String },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(texts: &[&str]) -> Columns {
        let mut columns = Columns::default();
        for text in texts {
            columns.extend(text.as_bytes());
            columns.end_column();
        }
        columns
    }

    fn row_of(key: Option<&str>, values: Option<&[&str]>) -> Result<(String, String), String> {
        let values: Option<Vec<String>> =
            values.map(|values| values.iter().map(|&v| v.to_owned()).collect());
        let header = columns(&["code", "name", "income"]);
        let selection = Selection::resolve(key, values.as_deref(), Some(&header))
            .map_err(|error| error.to_string())?;
        let mut row = Row::default();
        let line = columns(&["1909", "", "6,200"]);
        selection.apply(&line, &mut row).map_err(|reason| reason.to_string())?;
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Ok((text(row.key), text(row.value)))
    }

    #[test]
    fn columns_are_chosen_by_number_and_by_name() {
        let ok = |key: &str, value: &str| Ok((key.to_owned(), value.to_owned()));
        assert_eq!(row_of(None, None), ok("1909", "\t6,200"));
        assert_eq!(row_of(Some("3"), None), ok("6,200", "1909\t"));
        assert_eq!(row_of(Some("code"), Some(&["income", "1"])), ok("1909", "6,200\t1909"));
    }

    #[test]
    fn a_wrong_choice_says_what_there_is() {
        let message = |key: &str| row_of(Some(key), None).unwrap_err();
        assert_eq!(message("0"), "\"0\" is no column number: they count from 1");
        assert_eq!(message("9"), "no column 9: the line has 3");
        assert_eq!(message("age"), "the header has no column \"age\"; it has: code, name, income");
    }
}
