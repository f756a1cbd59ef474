//! Reads values from JSON in one pass: each value is converted where it occurs in the text, so that
//! the count covers every value there is.

use std::{cell::Cell, fmt};

use serde::de::{self, DeserializeSeed, MapAccess, SeqAccess, Visitor};

use crate::{
    Value,
    convert::{self, VALUES_PER_LOOK, key_order},
    json::Rules,
    limits::{VALUE_COUNT_MAX, VALUE_DEPTH_MAX},
    watchdog,
};

/// Reads one JSON value, with nothing after it.
pub(crate) fn decode(text: &[u8], rules: Rules) -> serde_json::Result<Value> {
    let count = Cell::new(0);
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let value = Seed { rules, count: &count, depth: 0 }.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(value)
}

/// Reads the next value.
#[derive(Clone, Copy)]
struct Seed<'c> {
    rules: Rules,
    /// How many values the text has had so far, keys included.
    count: &'c Cell<usize>,
    depth: usize,
}

impl Seed<'_> {
    /// For the items of the array or object being read.
    fn nested(self) -> Self {
        Self { depth: self.depth + 1, ..self }
    }
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: de::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        if self.depth > VALUE_DEPTH_MAX {
            let message = format!("JSON may be nested {VALUE_DEPTH_MAX} levels deep");
            return Err(de::Error::custom(message));
        }
        let count = self.count.get() + 1;
        self.count.set(count);
        if count > VALUE_COUNT_MAX {
            let message = format!("JSON may have {VALUE_COUNT_MAX} values");
            return Err(de::Error::custom(message));
        }
        if count.is_multiple_of(VALUES_PER_LOOK) && watchdog::is_stopping() {
            return Err(de::Error::custom("JSON takes longer than the time limit"));
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Nil)
    }

    fn visit_bool<E>(self, boolean: bool) -> Result<Value, E> {
        Ok(Value::Boolean(boolean))
    }

    fn visit_i64<E>(self, integer: i64) -> Result<Value, E> {
        Ok(Value::Integer(integer))
    }

    fn visit_u64<E: de::Error>(self, integer: u64) -> Result<Value, E> {
        match i64::try_from(integer) {
            Ok(integer) => Ok(Value::Integer(integer)),
            Err(_) if self.rules == Rules::Api => {
                Err(E::custom(format!("the integer {integer} does not fit 64 bits")))
            }
            Err(_) => Ok(convert::number(integer as f64)),
        }
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(convert::number(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::String(text.as_bytes().to_vec()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut array = Vec::new();
        while let Some(item) = items.next_element_seed(self.nested())? {
            array.push(item);
        }
        Ok(Value::Array(array))
    }

    /// If a key comes twice, the last value counts.
    fn visit_map<A: MapAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = items.next_key_seed(self)? {
            entries.push((key, items.next_value_seed(self.nested())?));
        }
        entries.sort_by(|(a, _), (b, _)| key_order(a, b));
        entries.dedup_by(|later, earlier| {
            let is_same = later.0 == earlier.0;
            if is_same {
                std::mem::swap(later, earlier);
            }
            is_same
        });
        Ok(Value::Map(entries))
    }
}
