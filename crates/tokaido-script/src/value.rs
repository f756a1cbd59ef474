//! What goes into a procedure and what comes out of it.

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
