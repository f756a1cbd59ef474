//! One JSON object per line.
//!
//! `dump` writes `{"key": …, "value": …}`, with `key_base64` or `value_base64` for a key or
//! value that is not UTF-8, and `flags` and `expires_at_ms` where a record has them. `load`
//! reads that back, or takes the given fields of any other object.

use std::{borrow::Cow, collections::BTreeMap};

use serde_json::value::RawValue;
use tokaido_wire::base64;

use super::row::{Reason, Row};

const KEY: &str = "key";
const VALUE: &str = "value";
const KEY_BASE64: &str = "key_base64";
const VALUE_BASE64: &str = "value_base64";
const FLAGS: &str = "flags";
const EXPIRES_AT_MS: &str = "expires_at_ms";

/// The fields that make up a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fields {
    /// The fields that `dump` writes.
    Dumped,
    /// Chosen fields. Values are joined by TABs; `None`: the whole line is the value.
    Chosen { key: String, values: Option<Vec<String>> },
}

type Object<'a> = BTreeMap<Cow<'a, str>, &'a RawValue>;

/// Parses one line.
pub(crate) fn parse(line: &[u8], fields: &Fields, row: &mut Row) -> Result<(), Reason> {
    row.clear();
    let object: Object = serde_json::from_slice(line).map_err(|error| bad_json(&error))?;
    match fields {
        Fields::Dumped => {
            take_dumped(&object, KEY, KEY_BASE64, &mut row.key)?;
            take_dumped(&object, VALUE, VALUE_BASE64, &mut row.value)?;
            row.flags = whole_number(&object, FLAGS, u32::MAX.into())?.unwrap_or(0) as u32;
            row.expires_at_ms = whole_number(&object, EXPIRES_AT_MS, u64::MAX)?;
        }
        Fields::Chosen { key, values } => {
            push_text(&object, key, &mut row.key)?;
            match values {
                None => row.value.extend_from_slice(line),
                Some(names) => {
                    for (index, name) in names.iter().enumerate() {
                        if index > 0 {
                            row.value.push(b'\t');
                        }
                        push_text(&object, name, &mut row.value)?;
                    }
                }
            }
        }
    }
    Ok(())
}

fn field<'a>(object: &Object<'a>, name: &str) -> Result<&'a str, Reason> {
    let missing = || Reason::NoField { name: name.to_owned() };
    object.get(name).map(|raw| raw.get()).ok_or_else(missing)
}

/// Appends the text of a field: a string without its quotes, anything else as it is written, so
/// that numbers keep every digit.
fn push_text(object: &Object, name: &str, bytes: &mut Vec<u8>) -> Result<(), Reason> {
    let raw = field(object, name)?;
    if raw.starts_with('"') {
        let text: String = serde_json::from_str(raw).map_err(|error| bad_json(&error))?;
        bytes.extend_from_slice(text.as_bytes());
    } else {
        bytes.extend_from_slice(raw.as_bytes());
    }
    Ok(())
}

fn take_dumped(
    object: &Object,
    plain: &str,
    encoded: &str,
    bytes: &mut Vec<u8>,
) -> Result<(), Reason> {
    if object.contains_key(plain) || !object.contains_key(encoded) {
        return push_text(object, plain, bytes);
    }
    let mut text = Vec::new();
    push_text(object, encoded, &mut text)?;
    let bad = || Reason::BadBase64 { name: encoded.to_owned() };
    bytes.append(&mut base64::decode(&text).ok_or_else(bad)?);
    Ok(())
}

fn whole_number(object: &Object, name: &str, max: u64) -> Result<Option<u64>, Reason> {
    let Some(raw) = object.get(name) else {
        return Ok(None);
    };
    let number: Option<u64> = raw.get().parse().ok().filter(|&number| number <= max);
    let bad = || Reason::BadNumber { name: name.to_owned(), max };
    number.ok_or_else(bad).map(Some)
}

/// The parser's message without its line number, which is always 1.
fn bad_json(error: &serde_json::Error) -> Reason {
    let message = error.to_string();
    let what = message.split(" at line ").next().unwrap_or_default();
    Reason::BadJson { message: format!("{what} (byte {})", error.column()) }
}

/// Writes one line.
pub(crate) fn write(row: &Row, line: &mut Vec<u8>) {
    line.push(b'{');
    push_field(KEY, KEY_BASE64, &row.key, line);
    line.push(b',');
    push_field(VALUE, VALUE_BASE64, &row.value, line);
    if row.flags != 0 {
        line.extend_from_slice(format!(",\"{FLAGS}\":{}", row.flags).as_bytes());
    }
    if let Some(at) = row.expires_at_ms {
        line.extend_from_slice(format!(",\"{EXPIRES_AT_MS}\":{at}").as_bytes());
    }
    line.extend_from_slice(b"}\n");
}

/// Writes a string, or base64 for bytes that are not text and for text that is longer with
/// JSON's escapes. So no line exceeds the length limit.
fn push_field(plain: &str, encoded: &str, bytes: &[u8], line: &mut Vec<u8>) {
    let start = line.len();
    if let Ok(text) = std::str::from_utf8(bytes) {
        line.extend_from_slice(format!("\"{plain}\":").as_bytes());
        let string = serde_json::Value::from(text).to_string();
        // Short strings stay readable: a newline in one is no reason to encode it.
        const READABLE_LEN_MAX: usize = 256;
        if string.len() <= READABLE_LEN_MAX.max(base64::encoded_len(bytes.len())) {
            line.extend_from_slice(string.as_bytes());
            return;
        }
        line.truncate(start);
    }
    line.extend_from_slice(format!("\"{encoded}\":\"").as_bytes());
    line.extend_from_slice(base64::encode(bytes).as_bytes());
    line.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str, fields: &Fields) -> Result<(String, String), String> {
        let mut row = Row::default();
        parse(line.as_bytes(), fields, &mut row).map_err(|reason| reason.to_string())?;
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        Ok((text(&row.key), text(&row.value)))
    }

    fn chosen(key: &str, values: Option<&[&str]>) -> Fields {
        let values = values.map(|names| names.iter().map(|&n| n.to_owned()).collect());
        Fields::Chosen { key: key.to_owned(), values }
    }

    #[test]
    fn chosen_fields_keep_their_text() {
        let line = r#"{"code": 1909, "name": "\u65e5本\n", "income": 6.20, "tags": ["a", 1]}"#;
        let of = |key, values: Option<&[&str]>| parsed(line, &chosen(key, values));
        let ok = |key: &str, value: &str| Ok((key.to_owned(), value.to_owned()));
        assert_eq!(of("code", Some(&["name"])), ok("1909", "日本\n"));
        assert_eq!(of("name", Some(&["income", "tags"])), ok("日本\n", "6.20\t[\"a\", 1]"));
        assert_eq!(of("code", None), ok("1909", line));
        assert_eq!(of("age", None), Err("no field \"age\"".to_owned()));
    }

    #[test]
    fn what_is_no_object_says_where_it_goes_wrong() {
        let message = |line| parsed(line, &Fields::Dumped).unwrap_err();
        insta::assert_snapshot!(
            [r"[1]", r#"{"key": 1"#, r#"{"key":"\ud800","value":""}"#, "nonsense", "{}"]
                .map(message)
                .join("\n"),
            @r#"
        not JSON: invalid type: sequence, expected a map (byte 0)
        not JSON: EOF while parsing an object (byte 9)
        not JSON: unexpected end of hex escape (byte 8)
        not JSON: expected ident (byte 2)
        no field "key"
        "#
        );
    }

    #[test]
    fn bytes_that_are_no_text_are_written_in_base64() {
        let row = Row {
            key: b"\xff".to_vec(),
            value: "東海道\n".into(),
            flags: 7,
            expires_at_ms: Some(u64::MAX),
            ..Row::default()
        };
        let mut line = Vec::new();
        write(&row, &mut line);
        insta::assert_snapshot!(
            String::from_utf8(line.clone()).unwrap(),
            @r#"{"key_base64":"/w==","value":"東海道\n","flags":7,"expires_at_ms":18446744073709551615}"#
        );
        let mut read = Row::default();
        parse(&line, &Fields::Dumped, &mut read).unwrap();
        assert_eq!(read, row);
    }
}
