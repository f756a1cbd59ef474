//! One record on its way in or out, and why a line is not a record.

use tokaido_store::{Entry, Kind, limits};

/// A record as a file contains it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) key: Vec<u8>,
    pub(crate) value: Vec<u8>,
    /// Only JSON lines and memcached dumps have them.
    pub(crate) flags: u32,
    /// In ms since the epoch. Only JSON lines and memcached dumps have it.
    pub(crate) expires_at_ms: Option<u64>,
    pub(crate) kind: Kind,
}

impl Row {
    /// Empties the row but keeps its buffers for the next one.
    pub(crate) fn clear(&mut self) {
        self.key.clear();
        self.value.clear();
        self.flags = 0;
        self.expires_at_ms = None;
        self.kind = Kind::Bytes;
    }

    /// Replaces the row by an entry of a scan.
    pub(crate) fn set(&mut self, entry: &Entry<'_>) {
        self.clear();
        self.key.extend_from_slice(entry.key);
        self.value.extend_from_slice(entry.record.value);
        self.flags = entry.record.flags;
        self.expires_at_ms = entry.record.expires_at_ms;
        self.kind = entry.record.kind;
    }

    /// Checks what the store would refuse, so that it is one bad line and not a failed transaction.
    pub(crate) fn check(&self) -> Result<(), Reason> {
        match (self.key.len(), self.value.len()) {
            (0, _) => Err(Reason::EmptyKey),
            (len, _) if len > limits::KEY_LEN_MAX => Err(Reason::KeyTooLong { len }),
            (_, len) if len > limits::VALUE_LEN_MAX => Err(Reason::ValueTooLong { len }),
            _ => Ok(()),
        }
    }
}

/// A line that is not a record. The following lines are read all the same.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}: {reason}")]
pub(crate) struct BadRow {
    /// The line that it begins on, counted from 1.
    pub(crate) line: u64,
    pub(crate) reason: Reason,
}

/// Why a line is not a record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Reason {
    #[error("the line is empty")]
    Blank,
    #[error("no column {wanted}: the line has {found}")]
    NoColumn { wanted: usize, found: usize },
    #[error("no field {name:?}")]
    NoField { name: String },
    #[error("no TAB between key and value")]
    NoTab,
    #[error("the key is empty")]
    EmptyKey,
    #[error("the key has {len} bytes, the most is {max}", max = limits::KEY_LEN_MAX)]
    KeyTooLong { len: usize },
    #[error("the value has {len} bytes, the most is {max}", max = limits::VALUE_LEN_MAX)]
    ValueTooLong { len: usize },
    #[error("the line is longer than {max} bytes", max = super::lines::LINE_LEN_MAX)]
    LineTooLong,
    #[error("a quote is opened and not closed before line {end}")]
    OpenQuote { end: u64 },
    #[error("text after a closing quote in column {column}")]
    AfterQuote { column: usize },
    #[error("\\{sequence} is no escape; write \\\\ for a backslash")]
    BadEscape { sequence: String },
    #[error("no `add KEY FLAGS EXPTIME BYTES`, as `memcached-tool HOST dump` writes it")]
    NotMemcached,
    #[error("the value does not end where the line before it says")]
    BadBlock,
    #[error("not JSON: {message}")]
    BadJson { message: String },
    #[error("field {name:?} is not base64")]
    BadBase64 { name: String },
    #[error("field {name:?} is not a whole number from 0 to {max}")]
    BadNumber { name: String, max: u64 },
}
