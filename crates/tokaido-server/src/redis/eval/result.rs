//! How the result of a script becomes a reply.

use tokaido_script::Value;
use tokaido_wire::resp::Version;

use crate::redis::reply::Reply;

/// Writes a result in the client's version. `version`, which the script has chosen, decides only about booleans.
pub(in crate::redis) fn write(reply: &mut dyn Reply, version: Version, value: &Value) {
    match value {
        Value::Nil => reply.null(),
        Value::Boolean(value) if version == Version::Resp3 => reply.boolean(*value),
        Value::Boolean(true) => reply.integer(1),
        Value::Boolean(false) => reply.null(),
        Value::Integer(value) => reply.integer(*value),
        Value::Number(value) => reply.integer(truncated(*value)),
        Value::String(value) => reply.bulk(value),
        Value::Array(items) => write_array(reply, version, items.iter()),
        Value::Map(fields) => write_table(reply, version, fields),
    }
}

/// Converts like C on most machines: a number out of range becomes the smallest integer.
fn truncated(number: f64) -> i64 {
    if (-(2f64.powi(63))..2f64.powi(63)).contains(&number) { number as i64 } else { i64::MIN }
}

fn write_array<'v>(
    reply: &mut dyn Reply,
    version: Version,
    items: impl ExactSizeIterator<Item = &'v Value>,
) {
    reply.array(items.len());
    for item in items {
        write(reply, version, item);
    }
}

/// The first field with a special meaning decides; otherwise a table is an array up to its first nil.
fn write_table(reply: &mut dyn Reply, version: Version, fields: &[(Value, Value)]) {
    let field = |name: &str| field(fields, name);
    if let Some(Value::String(message)) = field("err") {
        return reply.error(&String::from_utf8_lossy(message));
    }
    if let Some(Value::String(status)) = field("ok") {
        return reply.simple(&String::from_utf8_lossy(status));
    }
    match field("double") {
        Some(Value::Number(number)) => return reply.double(*number),
        Some(Value::Integer(number)) => return reply.double(*number as f64),
        _ => {}
    }
    if let Some(entries) = field("map").and_then(entries) {
        reply.map(entries.len());
        for (key, item) in &entries {
            write(reply, version, key);
            write(reply, version, item);
        }
        return;
    }
    if let Some(entries) = field("set").and_then(entries) {
        reply.set(entries.len());
        for (key, _) in &entries {
            write(reply, version, key);
        }
        return;
    }
    if let Some(Value::String(digits)) = field("big_number") {
        return reply.big_number(&String::from_utf8_lossy(digits));
    }
    if let Some(Value::Map(parts)) = field("verbatim_string")
        && let (Some(Value::String(text)), Some(Value::String(format))) =
            (self::field(parts, "string"), self::field(parts, "format"))
        && format.len() == 3
    {
        let (format, text) = (String::from_utf8_lossy(format), String::from_utf8_lossy(text));
        return reply.verbatim(&format, &text);
    }
    let items: Vec<&Value> = sequence(fields).collect();
    write_array(reply, version, items.into_iter());
}

fn field<'v>(fields: &'v [(Value, Value)], name: &str) -> Option<&'v Value> {
    let is_named = |key: &Value| matches!(key, Value::String(key) if key == name.as_bytes());
    fields.iter().find(|(key, _)| is_named(key)).map(|(_, value)| value)
}

/// The keys of a table with their values.
fn entries(table: &Value) -> Option<Vec<(Value, &Value)>> {
    match table {
        Value::Array(items) => Some((1..).map(Value::Integer).zip(items).collect()),
        Value::Map(fields) => {
            Some(fields.iter().map(|(key, value)| (key.clone(), value)).collect())
        }
        _ => None,
    }
}

/// The values under 1, 2, 3 and so on, up to the first gap. Fields must be sorted.
fn sequence(fields: &[(Value, Value)]) -> impl Iterator<Item = &Value> {
    let places = fields.iter().filter(|(key, _)| matches!(key, Value::Integer(1..)));
    let in_sequence = |(place, (key, _)): &(i64, &(Value, Value))| *key == Value::Integer(*place);
    (1i64..).zip(places).take_while(in_sequence).map(|(_, (_, value))| value)
}
