//! The text formats of the `cdb` tool: what it reads to make a file, and what it prints.

mod error;
mod reader;
mod writer;

pub(crate) use error::TextError;
pub(crate) use reader::TextReader;
pub(crate) use writer::TextWriter;

/// A text format for records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextFormat {
    /// `+klen,vlen:key->value` and a newline for each record, then an empty line. Holds any bytes.
    /// What `cdb -c` reads and `cdb -d` prints.
    Native,
    /// `+klen:key` and a newline for each record, then an empty line. What `cdb -l` prints.
    NativeKeys,
    /// `key value` on a line for each record, with spaces or tabs between the two and before the
    /// key. Empty lines, and those whose key begins with `#`, are ignored. What `cdb -c -m` reads
    /// and `cdb -d -m` prints.
    Map,
    /// `key` on a line for each record. What `cdb -l -m` prints.
    MapKeys,
}

/// The characters between keys and values in [`TextFormat::Map`].
fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

#[cfg(test)]
mod tests;
