//! Converts between JSON and [`Value`], and has the two Lua functions behind `tokaido.json`.

use std::{
    ffi::c_int,
    io::{self, Write},
};

use mlua::ffi;
use tokaido_wire::base64;

use crate::{Value, bridge::Context, convert, json_decode, watchdog};

/// How many bytes of text are handled between two checks whether to stop.
const LEN_PER_LOOK: usize = 64 << 10;

/// A value that JSON cannot represent, or a text that is not JSON.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct JsonError(String);

/// How values are handled that only one side has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rules {
    /// A string that is not UTF-8 is refused, and an integer beyond 64 bits becomes a number.
    Lua,
    /// A string that is not UTF-8 is written as `{"base64": "…"}`, and an integer beyond 64 bits is
    /// refused.
    Api,
}

/// Appends `value` as JSON. Integers keep all their digits; [`Value::Nil`] is `null`.
///
/// # Errors
/// For a number that is not finite, a string that the rules refuse, and keys that are neither
/// UTF-8 strings nor numbers.
pub fn encode(value: &Value, rules: Rules, out: &mut Vec<u8>) -> Result<(), JsonError> {
    encode_value(value, rules, &mut Output { text: out, len_max: usize::MAX })
}

/// The text being written, and its limit.
struct Output<'o> {
    text: &'o mut Vec<u8>,
    /// In bytes.
    len_max: usize,
}

impl Write for Output<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let len = self.text.len() + bytes.len();
        if len > self.len_max {
            return Err(io::Error::other("the JSON is longer than the memory limit allows"));
        }
        if len / LEN_PER_LOOK != self.text.len() / LEN_PER_LOOK && watchdog::is_stopping() {
            return Err(io::Error::other("the JSON takes longer than the time limit"));
        }
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Output<'_> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), JsonError> {
        self.write_all(bytes).map_err(|error| JsonError(error.to_string()))
    }
}

fn encode_value(value: &Value, rules: Rules, out: &mut Output<'_>) -> Result<(), JsonError> {
    match value {
        Value::Nil => out.put(b"null"),
        Value::Boolean(true) => out.put(b"true"),
        Value::Boolean(false) => out.put(b"false"),
        Value::Integer(integer) => out.put(integer.to_string().as_bytes()),
        Value::Number(number) => encode_number(*number, out),
        Value::String(bytes) if rules == Rules::Api && std::str::from_utf8(bytes).is_err() => {
            let text = base64::encode(bytes);
            out.put(format!("{{\"base64\":\"{text}\"}}").as_bytes())
        }
        Value::String(bytes) => encode_string(bytes, out),
        Value::Array(items) => {
            out.put(b"[")?;
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.put(b",")?;
                }
                encode_value(item, rules, out)?;
            }
            out.put(b"]")
        }
        Value::Map(entries) => {
            out.put(b"{")?;
            for (i, (key, item)) in entries.iter().enumerate() {
                if i > 0 {
                    out.put(b",")?;
                }
                encode_key(key, out)?;
                out.put(b":")?;
                encode_value(item, rules, out)?;
            }
            out.put(b"}")
        }
    }
}

fn encode_number(number: f64, out: &mut Output<'_>) -> Result<(), JsonError> {
    if !number.is_finite() {
        return Err(JsonError(format!("JSON has no number {number}")));
    }
    write_serialized(&number, out)
}

fn encode_string(bytes: &[u8], out: &mut Output<'_>) -> Result<(), JsonError> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        JsonError(format!("JSON takes UTF-8, and a string is not, at byte {}", error.valid_up_to()))
    })?;
    write_serialized(text, out)
}

fn write_serialized<T: serde::Serialize + ?Sized>(
    value: &T,
    out: &mut Output<'_>,
) -> Result<(), JsonError> {
    serde_json::to_writer(out, value).map_err(|error| JsonError(error.to_string()))
}

fn encode_key(key: &Value, out: &mut Output<'_>) -> Result<(), JsonError> {
    match key {
        Value::String(bytes) => encode_string(bytes, out),
        Value::Integer(integer) => encode_string(integer.to_string().as_bytes(), out),
        Value::Number(number) => encode_string(number.to_string().as_bytes(), out),
        _ => Err(JsonError("a key of a JSON object is a string or a number".to_owned())),
    }
}

/// Reads one JSON value. `null` is [`Value::Nil`].
///
/// # Errors
/// If the text is not JSON, or contains what the rules refuse.
pub fn decode(text: &[u8], rules: Rules) -> Result<Value, JsonError> {
    json_decode::decode(text, rules).map_err(|error| JsonError(error.to_string()))
}

/// `encode(context, value)` → text, or nil and a message.
///
/// # Safety
/// To be called from Lua with the VM's context first.
pub(crate) unsafe extern "C-unwind" fn lua_encode(state: *mut ffi::lua_State) -> c_int {
    // SAFETY: the prelude passes the context. The context owns what is pushed, so a raise leaks
    // nothing.
    unsafe {
        let context = &mut *ffi::lua_touserdata(state, 1).cast::<Context>();
        ffi::lua_settop(state, 2);
        context.scratch.clear();
        let converter = context.lua_side.converter;
        let mut out = Output { text: &mut context.scratch, len_max: converter.bytes_max };
        let message = match converter.read(state, 2) {
            Ok(value) => encode_value(&value, Rules::Lua, &mut out).err().map(|error| error.0),
            Err(why) => Some(why.message("the value")),
        };
        answer(state, context, message)
    }
}

/// Pushes `context.scratch`, or nil and the message. May raise.
///
/// # Safety
/// To be called as the last thing in a C function, which has room for two more values.
pub(crate) unsafe fn answer(
    state: *mut ffi::lua_State,
    context: &mut Context,
    message: Option<String>,
) -> c_int {
    let failed = message.is_some();
    if let Some(message) = message {
        context.scratch.clear();
        context.scratch.extend_from_slice(message.as_bytes());
    }
    // SAFETY: the caller's promise. The context owns what is pushed.
    unsafe {
        if failed {
            ffi::lua_pushnil(state);
        }
        convert::push_bytes(state, &context.scratch);
    }
    c_int::from(failed) + 1
}

/// `decode(context, text)` → value, or nil and a message.
///
/// # Safety
/// To be called from Lua with the VM's context and a string.
pub(crate) unsafe extern "C-unwind" fn lua_decode(state: *mut ffi::lua_State) -> c_int {
    // SAFETY: as in `lua_encode`; the context keeps the parsed value while it is pushed.
    unsafe {
        let context = &mut *ffi::lua_touserdata(state, 1).cast::<Context>();
        match decode(convert::string(state, 2), Rules::Lua) {
            Ok(value) => {
                let value = &*context.parsed.insert(value);
                context.lua_side.converter.push(state, value, true);
                context.parsed = None;
                1
            }
            Err(error) => answer(state, context, Some(error.0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::VALUE_COUNT_MAX;

    fn encoded(value: &Value, rules: Rules) -> Result<String, String> {
        let mut out = Vec::new();
        encode(value, rules, &mut out).map_err(|error| error.to_string())?;
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn values_survive_the_way_there_and_back() {
        let text = "{\"a\":[1,-2.5,null,true,\"日本\",9223372036854775807],\"b\":{\"c\":[]}}";
        for rules in [Rules::Lua, Rules::Api] {
            let value = decode(text.as_bytes(), rules).unwrap();
            assert_eq!(encoded(&value, rules).as_deref(), Ok(text));
        }
    }

    #[test]
    fn each_side_has_its_rules() {
        let bytes = Value::String(b"\xff".to_vec());
        assert_eq!(encoded(&bytes, Rules::Api).as_deref(), Ok("{\"base64\":\"/w==\"}"));
        assert!(encoded(&bytes, Rules::Lua).unwrap_err().contains("UTF-8"));
        let beyond = u64::MAX.to_string();
        assert_eq!(decode(beyond.as_bytes(), Rules::Lua), Ok(Value::Number(u64::MAX as f64)));
        let refused = decode(beyond.as_bytes(), Rules::Api).unwrap_err().to_string();
        assert!(refused.contains("does not fit 64 bits"), "{refused}");
    }

    #[test]
    fn of_a_key_that_comes_twice_the_last_value_counts() {
        let value = decode(br#"{"b":1,"a":2,"b":3,"a":4,"b":5}"#, Rules::Lua).unwrap();
        assert_eq!(encoded(&value, Rules::Lua).as_deref(), Ok(r#"{"a":4,"b":5}"#));
    }

    #[test]
    fn too_many_values_are_refused() {
        let text = format!("[{}1]", "1,".repeat(VALUE_COUNT_MAX));
        let refused = decode(text.as_bytes(), Rules::Api).unwrap_err().to_string();
        assert!(refused.starts_with("JSON may have 4000000 values"), "{refused}");
    }

    #[test]
    fn what_has_no_form_is_refused() {
        for rules in [Rules::Lua, Rules::Api] {
            assert!(encoded(&Value::Number(f64::NAN), rules).is_err());
            let key = |key| Value::Map(vec![(key, Value::Nil)]);
            assert!(encoded(&key(Value::Boolean(true)), rules).is_err());
            assert!(encoded(&key(Value::String(b"\xff".to_vec())), rules).is_err());
            assert_eq!(encoded(&key(Value::Integer(7)), rules).as_deref(), Ok("{\"7\":null}"));
            let deep = format!("{}1{}", "[".repeat(120), "]".repeat(120));
            assert!(decode(deep.as_bytes(), rules).is_err());
        }
    }
}
