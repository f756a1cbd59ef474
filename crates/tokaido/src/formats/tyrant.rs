//! The format of the tools of Tokyo Tyrant and Tokyo Cabinet, one record per line: `tcrmgr list
//! -pv` and `tcrmgr importtsv`, and those of `tchmgr`, `tcbmgr` and `tcfmgr`. There are no escapes:
//! a key ends at the first TAB, and a value at the end of the line.

use super::{
    lines::Ending,
    row::{Reason, Row},
};

/// Parses one line. A `\r` at its end is the value's, since the tools write only `\n`.
pub(crate) fn parse(line: &[u8], ending: Ending, row: &mut Row) -> Result<(), Reason> {
    row.clear();
    let tab = memchr::memchr(b'\t', line).ok_or(Reason::NoTab)?;
    row.key.extend_from_slice(&line[..tab]);
    row.value.extend_from_slice(&line[tab + 1..]);
    if ending == Ending::CarriageReturnNewline {
        row.value.push(b'\r');
    }
    Ok(())
}

/// Writes one line, or reports what in the record `importtsv` would not read unchanged: it ends
/// lines at `\r`, too, and drops every NUL.
pub(crate) fn write(row: &Row, is_first: bool, line: &mut Vec<u8>) -> Result<(), &'static str> {
    if row.key.contains(&b'\t') {
        return Err("a TAB in its key");
    }
    for (byte, what) in [(b'\n', "a newline"), (b'\r', "a carriage return"), (b'\0', "a NUL byte")]
    {
        if row.key.contains(&byte) || row.value.contains(&byte) {
            return Err(what);
        }
    }
    if is_first && row.key.starts_with(b"\xef\xbb\xbf") {
        return Err("a byte order mark at its start");
    }
    for (part, end) in [(&row.key, b'\t'), (&row.value, b'\n')] {
        line.extend_from_slice(part);
        line.push(end);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_all_behind_the_first_tab() {
        let parsed = |line: &[u8], ending| {
            let mut row = Row::default();
            parse(line, ending, &mut row).map(|()| (row.key, row.value))
        };
        let row = |key: &str, value: &str| Ok((key.into(), value.into()));
        assert_eq!(parsed(b"k\tv\tw", Ending::Newline), row("k", "v\tw"));
        assert_eq!(parsed(b"k\tv", Ending::CarriageReturnNewline), row("k", "v\r"));
        assert_eq!(parsed(b"k\t", Ending::EndOfFile), row("k", ""));
        assert_eq!(parsed(b"k", Ending::Newline), Err(Reason::NoTab));
    }

    #[test]
    fn what_importtsv_would_change_is_not_written() {
        let written = |key: &str, value: &str| {
            let row = Row { key: key.into(), value: value.into(), ..Row::default() };
            let mut line = Vec::new();
            write(&row, true, &mut line).map(|()| line)
        };
        assert_eq!(written("k", "v\tw"), Ok(b"k\tv\tw\n".to_vec()));
        for (key, value) in
            [("a\tb", ""), ("a\nb", ""), ("k", "a\rb"), ("k", "\0"), ("\u{feff}k", "")]
        {
            assert!(written(key, value).is_err(), "{key:?} {value:?}");
        }
    }
}
