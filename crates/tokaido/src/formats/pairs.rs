//! `key TAB value`, with backslash escapes for the bytes that a line cannot hold, so that any
//! record fits on one line: `\\`, `\t`, `\n`, `\r`, and `\xHH` for any byte.

use super::row::{Reason, Row};

/// Parses one line.
pub(crate) fn parse(line: &[u8], row: &mut Row) -> Result<(), Reason> {
    row.clear();
    let tab = memchr::memchr(b'\t', line).ok_or(Reason::NoTab)?;
    unescape(&line[..tab], &mut row.key)?;
    // A TAB in the value is understood without an escape; `dump` escapes it all the same.
    unescape(&line[tab + 1..], &mut row.value)
}

/// Writes one line.
pub(crate) fn write(row: &Row, line: &mut Vec<u8>) {
    // The start of a record must not look like a byte order mark at the start of a file.
    let key = match row.key.split_first() {
        Some((&first @ 0xef, rest)) => {
            line.extend_from_slice(format!("\\x{first:02x}").as_bytes());
            rest
        }
        _ => &row.key[..],
    };
    escape(key, line);
    line.push(b'\t');
    escape(&row.value, line);
    line.push(b'\n');
}

/// Writes a line with only a key, for a person or a program to read.
pub(super) fn write_key(key: &[u8], line: &mut Vec<u8>) {
    escape(key, line);
    line.push(b'\n');
}

fn escape(bytes: &[u8], line: &mut Vec<u8>) {
    for &byte in bytes {
        match byte {
            b'\\' => line.extend_from_slice(b"\\\\"),
            b'\t' => line.extend_from_slice(b"\\t"),
            b'\n' => line.extend_from_slice(b"\\n"),
            b'\r' => line.extend_from_slice(b"\\r"),
            _ => line.push(byte),
        }
    }
}

/// Resolves the escapes of one field. An unknown escape is an error, not a guess.
fn unescape(mut text: &[u8], bytes: &mut Vec<u8>) -> Result<(), Reason> {
    while let Some(at) = memchr::memchr(b'\\', text) {
        bytes.extend_from_slice(&text[..at]);
        let sequence = &text[at + 1..];
        let (byte, len) = match sequence.first() {
            Some(b'\\') => (b'\\', 1),
            Some(b't') => (b'\t', 1),
            Some(b'n') => (b'\n', 1),
            Some(b'r') => (b'\r', 1),
            Some(b'x') => (hexadecimal(sequence)?, 3),
            _ => return Err(bad_escape(sequence, 1)),
        };
        bytes.push(byte);
        text = &sequence[len..];
    }
    bytes.extend_from_slice(text);
    Ok(())
}

fn hexadecimal(sequence: &[u8]) -> Result<u8, Reason> {
    let digit = |at: usize| char::from(*sequence.get(at)?).to_digit(16);
    match (digit(1), digit(2)) {
        (Some(high), Some(low)) => Ok((high << 4 | low) as u8),
        _ => Err(bad_escape(sequence, 3)),
    }
}

fn bad_escape(sequence: &[u8], len: usize) -> Reason {
    let shown = &sequence[..len.min(sequence.len())];
    Reason::BadEscape { sequence: String::from_utf8_lossy(shown).into_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &[u8]) -> Result<(Vec<u8>, Vec<u8>), Reason> {
        let mut row = Row::default();
        parse(line, &mut row).map(|()| (row.key, row.value))
    }

    #[test]
    fn escapes_are_resolved_and_only_known_ones() {
        assert_eq!(parsed(b"k\tv").unwrap(), (b"k".to_vec(), b"v".to_vec()));
        assert_eq!(
            parsed(b"a\\tb\\\\\\xff\t\\x00\tx").unwrap(),
            (b"a\tb\\\xff".to_vec(), b"\0\tx".to_vec())
        );
        assert_eq!(parsed(b"k"), Err(Reason::NoTab));
        for (line, sequence) in
            [("k\t\\", ""), ("k\t\\q", "q"), ("k\t\\x4", "x4"), ("\\xg1\tv", "xg1")]
        {
            let sequence = sequence.to_owned();
            assert_eq!(parsed(line.as_bytes()), Err(Reason::BadEscape { sequence }), "{line}");
        }
    }
}
