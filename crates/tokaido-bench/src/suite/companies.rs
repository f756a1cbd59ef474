//! A list of companies: the one from the articles, if the user has it, otherwise one of the same size and shape.

use std::{collections::BTreeMap, fs, io, path::Path};

use crate::random::scatter;

/// The tab-separated columns of a line, and which of them is the key.
const COLUMNS: usize = 5;
const KEY_COLUMN: usize = 2;

/// Number of companies in a generated list.
const COMPANIES: u64 = 2_249;

/// Maximum length of a list, in bytes.
const LIST_LEN_MAX: u64 = 64 << 20;

/// Keys and values; all keys are different.
pub type Rows = Vec<(Vec<u8>, Vec<u8>)>;

/// A list is unavailable.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    /// The file cannot be read.
    #[error("{path}: {source}")]
    Read {
        /// Its path.
        path: String,
        /// The cause.
        source: io::Error,
    },
    /// The file is not a list.
    #[error("{path}: {why}")]
    Form {
        /// Its path.
        path: String,
        /// What is wrong.
        why: String,
    },
}

/// Reads a list of lines with five tab-separated columns, of which the third is the key. Other
/// lines are skipped; of lines with the same key the last one counts.
///
/// # Errors
/// If the file cannot be read, is longer than 64 MiB, or has no such line.
pub(super) fn read(path: &Path) -> Result<Rows, ListError> {
    let shown = || path.display().to_string();
    let failed = |source| ListError::Read { path: shown(), source };
    let wrong = |why: &str| ListError::Form { path: shown(), why: why.to_owned() };
    if fs::metadata(path).map_err(failed)?.len() > LIST_LEN_MAX {
        return Err(wrong("it is longer than 64 MiB; take a part of it"));
    }
    let text = fs::read_to_string(path).map_err(failed)?;
    let columns = text.lines().map(|line| line.split('\t').collect::<Vec<_>>());
    let full = columns.filter(|columns| columns.len() == COLUMNS);
    let row = |mut columns: Vec<&str>| {
        let key = columns.remove(KEY_COLUMN);
        (key.as_bytes().to_vec(), columns.join("\t").into_bytes())
    };
    let rows: BTreeMap<Vec<u8>, Vec<u8>> =
        full.map(row).filter(|(key, _)| !key.is_empty()).collect();
    match rows.is_empty() {
        true => {
            Err(wrong("it has no line of five columns between tabs, of which the third is a key"))
        }
        false => Ok(shuffled(rows.into_iter().collect())),
    }
}

/// Names of about 24 bytes, and values of about 35.
pub(super) fn look_alike() -> Rows {
    const SYLLABLES: [&str; 16] = [
        "東", "京", "海", "道", "日", "本", "電", "気", "工", "業", "ア", "カ", "サ", "タ", "ナ",
        "ハ",
    ];
    let row = |number: u64| {
        let noise = scatter(number + 1);
        let syllables = 3 + noise % 4;
        let name: String =
            (0..syllables).map(|n| SYLLABLES[(noise >> (8 + 4 * n)) as usize % 16]).collect();
        let key = format!("(株){name}{number}");
        let noise = scatter(number + 1_000_000);
        let (age, income) = (300 + noise % 200, 3_000 + (noise >> 16) % 6_000);
        let (years, tenths) = (age / 10, age % 10);
        let value = format!("{:04}\t東証1部\t{years}.{tenths}歳\t{income}千円", 1300 + number);
        (key.into_bytes(), value.into_bytes())
    };
    shuffled((0..COMPANIES).map(row).collect())
}

/// In pseudo-random order, and the same each time: a sorted list would favour trees.
fn shuffled(mut rows: Rows) -> Rows {
    rows.sort_by_key(|(key, _)| {
        key.iter().fold(0, |hash: u64, byte| scatter(hash ^ u64::from(*byte)))
    });
    rows
}

/// The text of a list from which [`read`] returns the same rows.
#[cfg(test)]
fn text_of(rows: &Rows) -> String {
    let line = |(key, value): &(Vec<u8>, Vec<u8>)| {
        let (key, value) = (String::from_utf8_lossy(key), String::from_utf8_lossy(value));
        let columns: Vec<&str> = value.split('\t').collect();
        format!("{}\t{}\t{key}\t{}\t{}\n", columns[0], columns[1], columns[2], columns[3])
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_generated_list_has_the_size_and_shape_of_the_real_one() {
        let rows = look_alike();
        let keys: BTreeSet<&Vec<u8>> = rows.iter().map(|(key, _)| key).collect();
        assert_eq!((rows.len(), keys.len()), (2_249, 2_249));
        let bytes = |len: fn(&(Vec<u8>, Vec<u8>)) -> usize| rows.iter().map(len).sum::<usize>();
        assert!((20..28).contains(&(bytes(|row| row.0.len()) / rows.len())));
        assert!((30..40).contains(&(bytes(|row| row.1.len()) / rows.len())));
    }

    #[test]
    fn a_list_is_read_and_what_is_none_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("list");
        let rows = look_alike();
        fs::write(&path, format!("[section]\n{}", text_of(&rows))).unwrap();
        assert_eq!(read(&path).unwrap(), rows);
        fs::write(&path, "a\tb\n").unwrap();
        assert!(matches!(read(&path), Err(ListError::Form { .. })));
        assert!(matches!(read(&directory.path().join("none")), Err(ListError::Read { .. })));
    }
}
