//! Between JSON and the values of procedures. Integers of 64 bits stay exact both ways.

use serde_json::{Map, Number, Value as Json};
use tokaido_script::Value;

use super::base64;

/// Arguments and results nest at most this deep.
const DEPTH_MAX: usize = 64;

/// A value that has no form on the other side.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum JsonError {
    #[error("the integer {0} does not fit 64 bits")]
    Integer(Number),
    #[error("{0} is no JSON number")]
    NotFinite(String),
    #[error("a table with a {0} as a key is no JSON object")]
    Key(&'static str),
    #[error("values nest at most {DEPTH_MAX} deep")]
    Depth,
}

/// The value that a procedure gets for a JSON argument.
pub(super) fn to_value(json: Json) -> Result<Value, JsonError> {
    to_value_at(json, 0)
}

fn to_value_at(json: Json, depth: usize) -> Result<Value, JsonError> {
    if depth > DEPTH_MAX {
        return Err(JsonError::Depth);
    }
    Ok(match json {
        Json::Null => Value::Nil,
        Json::Bool(b) => Value::Boolean(b),
        Json::Number(n) => match (n.as_i64(), n.as_f64()) {
            (Some(integer), _) => Value::Integer(integer),
            (None, Some(number)) if n.is_f64() => Value::Number(number),
            _ => return Err(JsonError::Integer(n)),
        },
        Json::String(s) => Value::String(s.into_bytes()),
        Json::Array(items) => {
            let items = items.into_iter().map(|item| to_value_at(item, depth + 1));
            Value::Array(items.collect::<Result<_, _>>()?)
        }
        Json::Object(fields) => {
            let fields = fields.into_iter().map(|(key, value)| {
                Ok((Value::String(key.into_bytes()), to_value_at(value, depth + 1)?))
            });
            Value::Map(fields.collect::<Result<_, JsonError>>()?)
        }
    })
}

/// The JSON of a result. A string that is not UTF-8 becomes `{"base64": "…"}`.
pub(super) fn from_value(value: &Value) -> Result<Json, JsonError> {
    from_value_at(value, 0)
}

fn from_value_at(value: &Value, depth: usize) -> Result<Json, JsonError> {
    if depth > DEPTH_MAX {
        return Err(JsonError::Depth);
    }
    Ok(match value {
        Value::Nil => Json::Null,
        Value::Boolean(b) => Json::Bool(*b),
        Value::Integer(integer) => Json::Number((*integer).into()),
        Value::Number(number) => match Number::from_f64(*number) {
            Some(number) => Json::Number(number),
            None => return Err(JsonError::NotFinite(number.to_string())),
        },
        Value::String(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Json::String(text.to_owned()),
            Err(_) => {
                Json::Object(Map::from_iter([("base64".to_owned(), base64::encode(bytes).into())]))
            }
        },
        Value::Array(items) => {
            let items = items.iter().map(|item| from_value_at(item, depth + 1));
            Json::Array(items.collect::<Result<_, _>>()?)
        }
        Value::Map(fields) => {
            let fields = fields
                .iter()
                .map(|(key, value)| Ok((key_text(key)?, from_value_at(value, depth + 1)?)));
            Json::Object(fields.collect::<Result<_, JsonError>>()?)
        }
    })
}

/// A table's key as JSON has it: numbers are written as text, as every JSON library of Lua does.
fn key_text(key: &Value) -> Result<String, JsonError> {
    match key {
        Value::String(bytes) => {
            String::from_utf8(bytes.clone()).map_err(|_| JsonError::Key("string that is not UTF-8"))
        }
        Value::Integer(integer) => Ok(integer.to_string()),
        Value::Number(number) => Ok(number.to_string()),
        Value::Boolean(_) => Err(JsonError::Key("boolean")),
        _ => Err(JsonError::Key("table")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_survive_the_way_there_and_back() {
        let json = json!({
            "a": [1, -2.5, null, true, "日本", i64::MAX, i64::MIN],
            "b": {"c": []},
        });
        let value = to_value(json.clone()).expect("it has a form");
        assert_eq!(from_value(&value), Ok(json));
    }

    #[test]
    fn what_has_no_form_is_refused() {
        assert!(matches!(to_value(json!(u64::MAX)), Err(JsonError::Integer(_))));
        assert!(matches!(from_value(&Value::Number(f64::NAN)), Err(JsonError::NotFinite(_))));
        let table = Value::Map(vec![(Value::Boolean(true), Value::Nil)]);
        assert_eq!(from_value(&table), Err(JsonError::Key("boolean")));
        let deep = (0..=DEPTH_MAX).fold(json!(1), |inner, _| json!([inner]));
        assert_eq!(to_value(deep), Err(JsonError::Depth));
    }

    #[test]
    fn bytes_and_numbered_keys_have_a_form() {
        assert_eq!(from_value(&Value::String(b"\xff".to_vec())), Ok(json!({"base64": "/w=="})));
        let table = Value::Map(vec![(Value::Integer(7), Value::Nil)]);
        assert_eq!(from_value(&table), Ok(json!({"7": null})));
    }
}
