//! A procedure's result for a person to read: in Lua notation, on one line if it is short
//! enough.

use tokaido_script::Value;
use tokaido_wire::resp::Reply;

/// Maximum width of a table on a single line, in characters.
const LINE_WIDTH: usize = 88;

/// A result on its own: a string unchanged, anything else in Lua notation.
pub(crate) fn print(value: &Value) -> Vec<u8> {
    match value {
        Value::String(bytes) => bytes.clone(),
        value => notation(value).into_bytes(),
    }
}

/// A value in Lua notation, with strings in quotes.
pub(crate) fn notation(value: &Value) -> String {
    let mut text = String::new();
    write_value(value, 0, &mut text);
    text
}

fn write_value(value: &Value, depth: usize, text: &mut String) {
    let fields: Vec<String> = match value {
        Value::Array(items) => items.iter().map(|item| field(None, item, depth)).collect(),
        Value::Map(pairs) => {
            pairs.iter().map(|(key, item)| field(Some(key), item, depth)).collect()
        }
        scalar => return text.push_str(&write_scalar(scalar)),
    };
    let width: usize = fields.iter().map(|field| field.chars().count() + 2).sum();
    if width + 2 * depth <= LINE_WIDTH && !fields.iter().any(|field| field.contains('\n')) {
        let (open, close) = if fields.is_empty() { ("{", "}") } else { ("{ ", " }") };
        text.push_str(&format!("{open}{}{close}", fields.join(", ")));
        return;
    }
    text.push_str("{\n");
    for field in fields {
        text.push_str(&format!("{:indent$}{field},\n", "", indent = 2 * (depth + 1)));
    }
    text.push_str(&format!("{:indent$}}}", "", indent = 2 * depth));
}

fn field(key: Option<&Value>, item: &Value, depth: usize) -> String {
    let mut text = match key {
        None => String::new(),
        Some(Value::String(name)) if is_name(name) => {
            format!("{} = ", String::from_utf8_lossy(name))
        }
        Some(key) => format!("[{}] = ", write_scalar(key)),
    };
    write_value(item, depth + 1, &mut text);
    text
}

fn write_scalar(value: &Value) -> String {
    match value {
        Value::Nil => "nil".to_owned(),
        Value::Boolean(boolean) => boolean.to_string(),
        Value::Integer(integer) => integer.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(bytes) => quote(bytes),
        Value::Array(_) | Value::Map(_) => notation(value),
    }
}

/// A string in quotes. Text stays readable in every script; bytes that are not text, or would
/// move the cursor, are escaped.
pub(crate) fn quote(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() + 2);
    text.push('"');
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '"' => text.push_str("\\\""),
                '\\' => text.push_str("\\\\"),
                '\n' => text.push_str("\\n"),
                '\r' => text.push_str("\\r"),
                '\t' => text.push_str("\\t"),
                control if control.is_control() => {
                    let mut utf8 = [0; 4];
                    control.encode_utf8(&mut utf8).bytes().for_each(|b| push_hex(b, &mut text));
                }
                other => text.push(other),
            }
        }
        chunk.invalid().iter().for_each(|&byte| push_hex(byte, &mut text));
    }
    text.push('"');
    text
}

fn push_hex(byte: u8, text: &mut String) {
    text.push_str(&format!("\\x{byte:02x}"));
}

fn is_name(name: &[u8]) -> bool {
    let starts = name.first().is_some_and(|b| b.is_ascii_alphabetic() || *b == b'_');
    starts && name.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_')
}

/// Converts a reply of version 3 of the Redis protocol to a value.
pub(crate) fn from_reply(reply: Reply) -> Value {
    let all = |replies: Vec<Reply>| replies.into_iter().map(from_reply).collect();
    match reply {
        Reply::Null => Value::Nil,
        Reply::Boolean(boolean) => Value::Boolean(boolean),
        Reply::Integer(integer) => Value::Integer(integer),
        Reply::Double(number) => Value::Number(number),
        Reply::Bulk(bytes) => Value::String(bytes),
        Reply::Simple(text)
        | Reply::Error(text)
        | Reply::BigNumber(text)
        | Reply::Verbatim { text, .. } => Value::String(text.into_bytes()),
        Reply::Array(items) | Reply::Set(items) | Reply::Push(items) => Value::Array(all(items)),
        Reply::Map(pairs) => Value::Map(
            pairs.into_iter().map(|(key, value)| (from_reply(key), from_reply(value))).collect(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn string(text: &str) -> Value {
        Value::String(text.into())
    }

    #[test]
    fn tables_stay_on_one_line_while_they_are_short() {
        let station = |name: &str, km: f64| {
            Value::Map(vec![
                (string("km"), Value::Number(km)),
                (string("name"), string(name)),
                (string("the road"), Value::Array(vec![Value::Integer(1), Value::Nil])),
            ])
        };
        let road = Value::Array(vec![station("品川", 7.9), station("Kawasaki", 17.7)]);
        insta::assert_snapshot!(notation(&road), @r#"
        {
          { km = 7.9, name = "品川", ["the road"] = { 1, nil } },
          { km = 17.7, name = "Kawasaki", ["the road"] = { 1, nil } },
        }
        "#);
        assert_eq!(notation(&Value::Array(vec![])), "{}");
    }

    #[test]
    fn a_string_alone_is_printed_as_it_is() {
        assert_eq!(print(&Value::String(b"a\xff\n".to_vec())), b"a\xff\n");
        assert_eq!(notation(&Value::String(b"a\xff\n\x1b\"\\".to_vec())), r#""a\xff\n\x1b\"\\""#);
    }
}
