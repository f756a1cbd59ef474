//! The format of a file.

use std::path::Path;

/// A text format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// Columns separated by TABs, taken literally: no quotes, no escapes
    Tsv,
    /// Columns separated by commas; "…" around a column that contains a comma, a quote ("") or a newline
    Csv,
    /// One JSON object per line
    Jsonl,
    /// key TAB value; \\ \t \n \r and \xHH stand for the bytes that a line cannot contain
    Pairs,
    /// The output of `memcached-tool HOST dump`
    MemcachedDump,
    /// What `tcrmgr list -pv` writes and `tcrmgr importtsv` reads: key TAB value
    TyrantTsv,
}

impl Format {
    /// Guesses from the file's extension, otherwise from its start; without a clue it is TSV.
    pub(crate) fn guess(path: Option<&Path>, start: &[u8]) -> Self {
        path.and_then(Self::of_ending).unwrap_or_else(|| {
            let start = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start);
            if start.starts_with(b"{") { Self::Jsonl } else { Self::Tsv }
        })
    }

    pub(crate) fn of_ending(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "tsv" | "tab" => Some(Self::Tsv),
            "csv" => Some(Self::Csv),
            "jsonl" | "ndjson" => Some(Self::Jsonl),
            "pairs" => Some(Self::Pairs),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ending_goes_before_the_first_line() {
        let guess =
            |path: &str, start: &str| Format::guess(Some(Path::new(path)), start.as_bytes());
        assert_eq!(guess("a.csv", "{"), Format::Csv);
        assert_eq!(guess("a.NDJSON", ""), Format::Jsonl);
        assert_eq!(guess("a.pairs", ""), Format::Pairs);
        assert_eq!(guess("a.txt", "\u{feff}{\"a\":1}"), Format::Jsonl);
        assert_eq!(guess("a.txt", "a,b"), Format::Tsv);
        assert_eq!(Format::guess(None, b""), Format::Tsv);
    }
}
