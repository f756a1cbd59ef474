//! What goes into a procedure and what comes out of it.

use crate::limits::VALUE_DEPTH_MAX;

/// A Lua value without identity: arguments and results are copied.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `nil`.
    Nil,
    /// `true` or `false`.
    Boolean(bool),
    /// An integer, exact over 64 bits. In Lua a number up to 2^53, beyond that an `int64_t`.
    Integer(i64),
    /// Any other number.
    Number(f64),
    /// A string of any bytes.
    String(Vec<u8>),
    /// A table whose keys are 1 to n.
    Array(Vec<Value>),
    /// Any other table, sorted by key so that results are stable.
    Map(Vec<(Value, Value)>),
}

impl Value {
    /// Whether a procedure can be given it: not nested too deeply, with map keys that tables can have.
    #[must_use]
    pub fn is_passable(&self) -> bool {
        self.is_passable_at(0)
    }

    fn is_passable_at(&self, depth: usize) -> bool {
        let key = |key: &Value| match key {
            Value::Boolean(_) | Value::Integer(_) | Value::String(_) => true,
            Value::Number(number) => !number.is_nan(),
            Value::Nil | Value::Array(_) | Value::Map(_) => false,
        };
        match self {
            Value::Array(items) => {
                depth < VALUE_DEPTH_MAX && items.iter().all(|item| item.is_passable_at(depth + 1))
            }
            Value::Map(entries) => {
                depth < VALUE_DEPTH_MAX
                    && entries.iter().all(|(k, item)| key(k) && item.is_passable_at(depth + 1))
            }
            _ => true,
        }
    }
}
