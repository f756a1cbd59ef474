//! Errors of records as text. Each message says where it occurred.

/// A text could not be read as records, or a record could not be written as text.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TextError {
    /// Reading or writing failed.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// The text violates its format.
    #[error("record {record}, byte {position}: {what}")]
    Syntax {
        /// The number of the record at fault; the first is 1.
        record: u64,
        /// Where in the text, in bytes; the first is 0.
        position: u64,
        /// What is wrong.
        what: &'static str,
    },
    /// The format cannot hold the record, so that reading it back would give another one.
    #[error("record {record} with the key {key:?}: {what}; use the native format")]
    Unwritable {
        /// The record's number; the first is 1.
        record: u64,
        /// The key, shortened, with replacement characters where it is not text.
        key: String,
        /// What the format cannot hold.
        what: &'static str,
    },
}
