//! Inline requests: lines typed by a human, split into arguments as a shell would.

use super::{error::ProtocolError, request::Span};

/// Splits a line (without its line end) into `arguments_max` arguments at most. Appends the
/// unquoted arguments to `bytes`, and their positions to `spans`.
///
/// Arguments are separated by white space. `"..."` has the escapes `\n \r \t \b \a` and `\xHH`,
/// and any other escaped byte stands for itself; `'...'` has only `\'`. A quote may open within
/// an argument, and the closing quote must end the argument. Unlike in Redis, whose lines are C
/// strings, a NUL is a byte like any other and does not end the line.
pub(super) fn split(
    line: &[u8],
    arguments_max: usize,
    bytes: &mut Vec<u8>,
    spans: &mut Vec<Span>,
) -> Result<(), ProtocolError> {
    let mut rest = skip_spaces(line);
    while !rest.is_empty() {
        if spans.len() >= arguments_max {
            return Err(ProtocolError::TooBigInline);
        }
        let start = bytes.len();
        rest = take_argument(rest, bytes)?;
        spans.push(Span::new(start, bytes.len()));
        rest = skip_spaces(rest);
    }
    Ok(())
}

/// Redis's white space, which unlike Rust's includes the vertical tab.
fn is_space(byte: u8) -> bool {
    byte == b' ' || (b'\t'..=b'\r').contains(&byte)
}

fn skip_spaces(text: &[u8]) -> &[u8] {
    let spaces = text.iter().take_while(|byte| is_space(**byte)).count();
    &text[spaces..]
}

/// Appends the argument at the start of `rest`, and returns what follows it.
fn take_argument<'l>(mut rest: &'l [u8], bytes: &mut Vec<u8>) -> Result<&'l [u8], ProtocolError> {
    loop {
        rest = match rest {
            [b'"', quoted @ ..] => return take_double_quoted(quoted, bytes),
            [b'\'', quoted @ ..] => return take_single_quoted(quoted, bytes),
            [byte, after @ ..] if !is_space(*byte) => {
                bytes.push(*byte);
                after
            }
            _ => return Ok(rest),
        }
    }
}

fn take_double_quoted<'l>(
    mut rest: &'l [u8],
    bytes: &mut Vec<u8>,
) -> Result<&'l [u8], ProtocolError> {
    loop {
        let (byte, after) = match rest {
            [b'"', after @ ..] => return after_quote(after),
            [b'\\', b'x', high, low, after @ ..]
                if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                (hex_value(*high) << 4 | hex_value(*low), after)
            }
            [b'\\', escaped, after @ ..] => (unescape(*escaped), after),
            [byte, after @ ..] => (*byte, after),
            [] => return Err(ProtocolError::UnbalancedQuotes),
        };
        bytes.push(byte);
        rest = after;
    }
}

fn take_single_quoted<'l>(
    mut rest: &'l [u8],
    bytes: &mut Vec<u8>,
) -> Result<&'l [u8], ProtocolError> {
    loop {
        let (byte, after) = match rest {
            [b'\'', after @ ..] => return after_quote(after),
            [b'\\', b'\'', after @ ..] => (b'\'', after),
            [byte, after @ ..] => (*byte, after),
            [] => return Err(ProtocolError::UnbalancedQuotes),
        };
        bytes.push(byte);
        rest = after;
    }
}

/// A closing quote ends the argument: a space or the line's end must follow.
fn after_quote(rest: &[u8]) -> Result<&[u8], ProtocolError> {
    match rest {
        [byte, ..] if !is_space(*byte) => Err(ProtocolError::UnbalancedQuotes),
        _ => Ok(rest),
    }
}

fn unescape(byte: u8) -> u8 {
    match byte {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 0x08,
        b'a' => 0x07,
        other => other,
    }
}

/// The value of an ASCII hexadecimal digit.
fn hex_value(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(line: &str) -> Result<Vec<Vec<u8>>, ProtocolError> {
        let (mut bytes, mut spans) = (Vec::new(), Vec::new());
        split(line.as_bytes(), 8, &mut bytes, &mut spans)?;
        Ok(spans.iter().map(|span| span.of(&bytes).to_vec()).collect())
    }

    #[track_caller]
    fn check(line: &str, expected: &[&[u8]]) {
        assert_eq!(arguments(line).expect(line), expected, "{line}");
    }

    #[test]
    fn splits_at_white_space() {
        check("", &[]);
        check(" \t \x0b\r", &[]);
        check("PING", &[b"PING"]);
        check("  SET\tkey  value ", &[b"SET", b"key", b"value"]);
        check("SET 駅 一", &[b"SET", "駅".as_bytes(), "一".as_bytes()]);
        check("a\0b \0", &[b"a\0b", b"\0"]);
    }

    #[test]
    fn double_quotes_know_escapes() {
        check(r#"SET "a b" """#, &[b"SET", b"a b", b""]);
        check(r#""\n\r\t\b\a""#, &[b"\n\r\t\x08\x07"]);
        check(r#""\x00\xfF\x4a""#, &[b"\x00\xff\x4a"]);
        check(r#""\"\\\q'""#, &[br#""\q'"#]);
        check(r#""\xg0\x1""#, &[b"xg0x1"]);
    }

    #[test]
    fn single_quotes_know_only_themselves() {
        check(r"'a b' ''", &[b"a b", b""]);
        check(r"'it\'s' '\n\x41'", &[b"it's", br"\n\x41"]);
        check(r#"'"'"#, &[b"\""]);
    }

    #[test]
    fn a_quote_may_open_within_an_argument() {
        check(r#"key:"a b" x'y z'"#, &[b"key:a b", b"xy z"]);
    }

    #[test]
    fn unbalanced_quotes_are_refused() {
        for line in [r#"""#, r#"GET "a"#, r#""a\""#, r#""a"b"#, "'", "'a'b", r"'a\'", r#""a"'b'"#] {
            assert_eq!(arguments(line), Err(ProtocolError::UnbalancedQuotes), "{line}");
        }
    }

    #[test]
    fn more_arguments_than_the_limit_are_refused() {
        assert_eq!(arguments("1 2 3 4 5 6 7 8").map(|all| all.len()), Ok(8));
        assert_eq!(arguments("1 2 3 4 5 6 7 8 9"), Err(ProtocolError::TooBigInline));
    }
}
