//! Writes rows so that `load` reads the same ones back.

use std::io::{self, Write};

use tokaido_store::Kind;

use super::{Format, Row, jsonl, memcached, pairs, tyrant};

/// A row cannot be written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UnwritableRow {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(
        "the record {key:?} has {what}, which {format} cannot hold; use --format pairs or jsonl"
    )]
    Unfit { key: String, what: &'static str, format: &'static str },
    #[error(
        "the record {key:?} is no string, and a {kind:?} cannot be written as text; `tokaido backup` copies it"
    )]
    NotBytes { key: String, kind: Kind },
}

impl UnwritableRow {
    fn unfit(row: &Row, what: &'static str, format: &'static str) -> Self {
        Self::Unfit { key: String::from_utf8_lossy(&row.key).into_owned(), what, format }
    }
}

/// What to write of a row.
#[derive(Clone, Copy)]
enum Form {
    Whole(Format),
    /// The key, with the escapes of `pairs`.
    Key,
}

/// Writes rows in one format.
pub(crate) struct RowWriter<W> {
    out: W,
    form: Form,
    line: Vec<u8>,
    rows: u64,
}

impl<W: Write> RowWriter<W> {
    pub(crate) fn new(out: W, format: Format) -> Self {
        Self { out, form: Form::Whole(format), line: Vec::new(), rows: 0 }
    }

    /// Creates a writer of keys only, one per line.
    pub(crate) fn of_keys(out: W) -> Self {
        Self { out, form: Form::Key, line: Vec::new(), rows: 0 }
    }

    /// Rows written so far.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// Writes one row.
    pub(crate) fn write(&mut self, row: &Row) -> Result<(), UnwritableRow> {
        self.line.clear();
        if row.kind != Kind::Bytes && matches!(self.form, Form::Whole(_)) {
            let key = String::from_utf8_lossy(&row.key).into_owned();
            return Err(UnwritableRow::NotBytes { key, kind: row.kind });
        }
        match self.form {
            Form::Whole(Format::Jsonl) => jsonl::write(row, &mut self.line),
            Form::Whole(Format::Pairs) => pairs::write(row, &mut self.line),
            Form::Whole(Format::MemcachedDump) => memcached::write(row, &mut self.line)
                .map_err(|what| UnwritableRow::unfit(row, what, "memcached"))?,
            Form::Whole(Format::TyrantTsv) => tyrant::write(row, self.rows == 0, &mut self.line)
                .map_err(|what| UnwritableRow::unfit(row, what, "tyrant-tsv"))?,
            Form::Whole(Format::Csv) => write_csv(row, &mut self.line),
            Form::Whole(Format::Tsv) => write_tsv(row, self.rows == 0, &mut self.line)?,
            Form::Key => pairs::write_key(&row.key, &mut self.line),
        }
        self.out.write_all(&self.line)?;
        self.rows += 1;
        Ok(())
    }

    /// Returns the flushed stream.
    pub(crate) fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }
}

fn write_csv(row: &Row, line: &mut Vec<u8>) {
    // Always quoted, so that no key is read as a blank line, a byte order mark or a quote.
    for (column, end) in [(&row.key, b','), (&row.value, b'\n')] {
        line.push(b'"');
        for &byte in column {
            if byte == b'"' {
                line.push(b'"');
            }
            line.push(byte);
        }
        line.extend_from_slice(&[b'"', end]);
    }
}

/// The value may hold TABs, since without `--value` all columns but the key are the value.
fn write_tsv(row: &Row, is_first: bool, line: &mut Vec<u8>) -> Result<(), UnwritableRow> {
    let refuse = |what| Err(UnwritableRow::unfit(row, what, "TSV"));
    if row.key.contains(&b'\t') {
        return refuse("a TAB in its key");
    }
    if row.key.contains(&b'\n') || row.value.contains(&b'\n') {
        return refuse("a newline");
    }
    if row.value.ends_with(b"\r") {
        return refuse("a carriage return at its end");
    }
    if is_first && row.key.starts_with(b"\xef\xbb\xbf") {
        return refuse("a byte order mark at its start");
    }
    for (column, end) in [(&row.key, b'\t'), (&row.value, b'\n')] {
        line.extend_from_slice(column);
        line.push(end);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Options, RowReader};
    use super::*;

    /// Bytes many of which are special in one of the formats.
    fn bytes(len: std::ops::Range<usize>) -> impl Strategy<Value = Vec<u8>> {
        let special = prop::sample::select(b"\t\n\r\\\",{}#x0\xef\xbb\xbf\xff\0a ".to_vec());
        prop::collection::vec(prop_oneof![3 => special, 1 => any::<u8>()], len)
    }

    fn row() -> impl Strategy<Value = Row> {
        (bytes(1..12), bytes(0..20), prop_oneof![Just(0), any::<u32>()], any::<Option<u64>>())
            .prop_map(|(key, value, flags, expires_at_ms)| {
                let kind = Kind::Bytes;
                Row { key, value, flags, expires_at_ms, kind }
            })
    }

    fn written(rows: &[Row], format: Format) -> Result<Vec<u8>, UnwritableRow> {
        let mut writer = RowWriter::new(Vec::new(), format);
        for row in rows {
            writer.write(row)?;
        }
        Ok(writer.finish()?)
    }

    fn read(text: &[u8], format: Format) -> Vec<Row> {
        let options = Options { format: Some(format), ..Options::default() };
        let mut reader = RowReader::new(text, None, &options).unwrap();
        let mut rows = Vec::new();
        let mut row = Row::default();
        while let Some(result) = reader.read(&mut row).unwrap() {
            result.unwrap();
            rows.push(row.clone());
        }
        rows
    }

    /// The parts of a row that formats other than JSON lines keep.
    fn bare(row: &Row) -> Row {
        Row { flags: 0, expires_at_ms: None, ..row.clone() }
    }

    #[test]
    fn of_a_collection_only_the_key_is_written() {
        let row = Row { key: b"h".to_vec(), kind: Kind::Hash, ..Row::default() };
        let error = written(std::slice::from_ref(&row), Format::Jsonl).unwrap_err();
        assert!(matches!(error, UnwritableRow::NotBytes { .. }), "{error}");
        RowWriter::of_keys(Vec::new()).write(&row).unwrap();
    }

    proptest! {
        #[test]
        fn what_is_dumped_is_loaded(rows in prop::collection::vec(row(), 0..6)) {
            let bare_rows: Vec<_> = rows.iter().map(bare).collect();
            prop_assert_eq!(&read(&written(&rows, Format::Jsonl).unwrap(), Format::Jsonl), &rows);
            for format in [Format::Pairs, Format::Csv] {
                prop_assert_eq!(&read(&written(&rows, format).unwrap(), format), &bare_rows);
            }
            // memcached counts in seconds.
            if let Ok(text) = written(&rows, Format::MemcachedDump) {
                let in_seconds = |row: &Row| {
                    let expires_at_ms =
                        row.expires_at_ms.map(|at| at.div_ceil(1000).max(1).saturating_mul(1000));
                    Row { expires_at_ms, ..row.clone() }
                };
                let rounded: Vec<_> = rows.iter().map(in_seconds).collect();
                prop_assert_eq!(&read(&text, Format::MemcachedDump), &rounded);
            }
            // These report what they cannot write, and never write something else.
            for format in [Format::Tsv, Format::TyrantTsv] {
                if let Ok(text) = written(&rows, format) {
                    prop_assert_eq!(&read(&text, format), &bare_rows);
                }
            }
        }
    }
}
