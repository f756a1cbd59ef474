//! `add KEY FLAGS EXPTIME BYTES`, then the value and a line end, as `memcached-tool HOST dump`
//! writes it. It is what a client sends, but the expiry always counts from the epoch.

use super::row::{Reason, Row};

/// Maximum length of a memcached key, in bytes.
const KEY_LEN_MAX: usize = 250;

/// Reads the line before a value, and returns the value's length in bytes.
pub(crate) fn parse_head(line: &[u8], row: &mut Row) -> Result<u64, Reason> {
    row.clear();
    let mut words = line.split(|&byte| byte == b' ');
    let mut word = || words.next().ok_or(Reason::NotMemcached);
    if word()? != b"add" {
        return Err(Reason::NotMemcached);
    }
    row.key.extend_from_slice(word()?);
    row.flags = number(word()?)?;
    let expires_at_s: u64 = number(word()?)?;
    row.expires_at_ms = (expires_at_s > 0).then(|| expires_at_s.saturating_mul(1000));
    let value_len = number(word()?)?;
    words.next().map_or(Ok(value_len), |_| Err(Reason::NotMemcached))
}

fn number<N: std::str::FromStr>(word: &[u8]) -> Result<N, Reason> {
    std::str::from_utf8(word).ok().and_then(|word| word.parse().ok()).ok_or(Reason::NotMemcached)
}

/// Writes a record. An expiry within a second is rounded up.
pub(crate) fn write(row: &Row, text: &mut Vec<u8>) -> Result<(), &'static str> {
    if row.key.len() > KEY_LEN_MAX {
        return Err("a key of more than 250 bytes");
    }
    if row.key.iter().any(|&byte| byte <= b' ' || byte == 0x7f) {
        return Err("a space or a control character in its key");
    }
    let expires_at_s = row.expires_at_ms.map_or(0, |at_ms| at_ms.div_ceil(1000).max(1));
    text.extend_from_slice(b"add ");
    text.extend_from_slice(&row.key);
    let numbers = format!(" {} {expires_at_s} {}\r\n", row.flags, row.value.len());
    text.extend_from_slice(numbers.as_bytes());
    text.extend_from_slice(&row.value);
    text.extend_from_slice(b"\r\n");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{Format, Options, RowReader};
    use super::*;

    type Record = (Vec<u8>, Vec<u8>);

    /// The rows of a dump, or their errors.
    fn read(text: &[u8]) -> Vec<Result<Record, String>> {
        let options = Options { format: Some(Format::MemcachedDump), ..Options::default() };
        // A buffer of 3 bytes, so that values are split everywhere.
        let input = std::io::BufReader::with_capacity(3, text);
        let mut reader = RowReader::new(input, None, &options).unwrap();
        let (mut rows, mut row) = (Vec::new(), Row::default());
        while let Some(read) = reader.read(&mut row).unwrap() {
            let read = read.map_err(|bad| bad.to_string());
            rows.push(read.map(|()| (row.key.clone(), row.value.clone())));
        }
        rows
    }

    #[test]
    fn the_line_tells_of_the_record() {
        let mut row = Row::default();
        assert_eq!(parse_head(b"add k 7 60 5", &mut row), Ok(5));
        // However small, the time does not count from now.
        assert_eq!((row.flags, row.expires_at_ms), (7, Some(60_000)));
        assert_eq!(parse_head(b"add k 0 0 0", &mut row), Ok(0));
        assert_eq!((row.flags, row.expires_at_ms), (0, None));
        for line in ["", "add", "add k 0 0", "add k 0 0 1 2", "get k 0 0 1", "add k x 0 1"] {
            assert_eq!(parse_head(line.as_bytes(), &mut row), Err(Reason::NotMemcached), "{line}");
        }
    }

    #[test]
    fn a_value_may_hold_lines() {
        let ok = |key: &str, value: &str| Ok((key.into(), value.into()));
        assert_eq!(
            read(b"add a 0 0 6\r\n1\n\r\n2\n\r\nadd b 0 0 0\r\n\r\nadd c 0 0 2\r\nxy\r\n"),
            [ok("a", "1\n\r\n2\n"), ok("b", ""), ok("c", "xy")]
        );
    }

    #[test]
    fn what_is_no_record_is_passed_over() {
        let long = tokaido_store::limits::VALUE_LEN_MAX + 1;
        let head = format!("add long 0 0 {long}\r\n");
        let text = [head.as_bytes(), &vec![b'\n'; long], b"\r\nadd b 0 0 1\r\nb\r\n"].concat();
        let rows = read(&text);
        assert_eq!(rows.len(), 2);
        assert!(rows[0].as_ref().unwrap_err().starts_with("1: the value has"), "{:?}", rows[0]);
        assert_eq!(rows[1], Ok((b"b".to_vec(), b"b".to_vec())));
        let rows = read(
            b"key=a exp=-1\nadd b 0 0 1\r\nxyz\r\nadd c 0 0 3\r\nc\nc\r\nadd d 0 0 9\r\nd\r\n",
        );
        let lines = |row: &Result<_, String>| row.clone().err().map(|e| e[..1].to_owned());
        let bad: Vec<_> = rows.iter().map(lines).collect();
        assert_eq!(bad, [Some("1".into()), Some("2".into()), None, Some("7".into())]);
    }
}
