//! The list of companies: the real one if TOKAIDO_BENCH_COMPANIES names it, else a look-alike.

use std::{fs, path::Path};

use crate::{Outcome, random::scatter};

/// Names the file of the real list: five columns between TABs, the third being the key.
pub(crate) const VARIABLE: &str = "TOKAIDO_BENCH_COMPANIES";

const ROWS: usize = 2_269;
const DISTINCT_KEYS: usize = 2_249;
const COLUMNS: usize = 5;
const KEY_COLUMN: usize = 2;

pub(crate) type Rows = Vec<(Vec<u8>, Vec<u8>)>;

/// Writes the rows for all subjects to read, as `peers/rows.h` says.
pub(crate) fn write(path: &Path) -> Outcome {
    let rows = match std::env::var_os(VARIABLE) {
        Some(list) => real(&fs::read_to_string(list)?),
        None => look_alike(),
    };
    if rows.is_empty() {
        return Err(format!("the file of {VARIABLE} has no line of {COLUMNS} columns").into());
    }
    let mut bytes = Vec::new();
    for (key, value) in &rows {
        bytes.extend((key.len() as u32).to_le_bytes());
        bytes.extend((value.len() as u32).to_le_bytes());
        bytes.extend(key);
        bytes.extend(value);
    }
    Ok(fs::write(path, bytes)?)
}

/// Reads them back.
pub(crate) fn read(path: &Path) -> Outcome<Rows> {
    let bytes = fs::read(path)?;
    let mut left = &bytes[..];
    let mut rows = Vec::new();
    while let Some((lens, rest)) = left.split_first_chunk::<8>() {
        let len = |at: usize| {
            let bytes = [lens[at], lens[at + 1], lens[at + 2], lens[at + 3]];
            u32::from_le_bytes(bytes) as usize
        };
        let (key, rest) = rest.split_at(len(0));
        let (value, rest) = rest.split_at(len(4));
        rows.push((key.to_vec(), value.to_vec()));
        left = rest;
    }
    Ok(rows)
}

/// The lines that have all columns; the value is the other columns.
fn real(text: &str) -> Rows {
    let columns = text.lines().map(|line| line.split('\t').collect::<Vec<_>>());
    let full = columns.filter(|columns| columns.len() == COLUMNS);
    full.map(|mut columns| {
        let key = columns.remove(KEY_COLUMN);
        (key.as_bytes().to_vec(), columns.join("\t").into_bytes())
    })
    .collect()
}

/// As many rows as the real list has, some keys twice, names of about 24 bytes, values of about
/// 35.
fn look_alike() -> Rows {
    const SYLLABLES: [&str; 16] = [
        "東", "京", "海", "道", "日", "本", "電", "気", "工", "業", "ア", "カ", "サ", "タ", "ナ",
        "ハ",
    ];
    let row = |number: usize| {
        let noise = scatter((number % DISTINCT_KEYS) as u64 + 1);
        let syllables = 3 + noise % 4;
        let name: String =
            (0..syllables).map(|n| SYLLABLES[(noise >> (8 + 4 * n)) as usize % 16]).collect();
        let key = format!("(株){name}{}", number % DISTINCT_KEYS);
        let noise = scatter(number as u64 + 1_000_000);
        let (age, income) = (300 + noise % 200, 3_000 + (noise >> 16) % 6_000);
        let (years, tenths) = (age / 10, age % 10);
        let value = format!("{:04}\t東証1部\t{years}.{tenths}歳\t{income}千円", 1300 + number);
        (key.into_bytes(), value.into_bytes())
    };
    (0..ROWS).map(row).collect()
}
