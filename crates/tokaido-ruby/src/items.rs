//! Conversion of values to and from the items of `tokaido-mruby-sys`.

use std::borrow::Cow;

use tokaido_mruby_sys::{self as sys, Item};
use tokaido_script::{Fault, VALUE_COUNT_MAX, VALUE_DEPTH_MAX, Value};
use tokaido_store::counter::format_float;

/// An item that has only a kind.
pub(crate) fn of_kind(kind: i32) -> Item {
    Item { kind, integer: 0, number: 0.0, bytes: std::ptr::null(), len: 0 }
}

pub(crate) fn boolean(is_true: bool) -> Item {
    of_kind(if is_true { sys::TRUE } else { sys::FALSE })
}

pub(crate) fn integer(integer: i64) -> Item {
    Item { integer, ..of_kind(sys::INTEGER) }
}

pub(crate) fn number(number: f64) -> Item {
    Item { number, ..of_kind(sys::NUMBER) }
}

/// The bytes must live until Ruby has taken them.
pub(crate) fn bytes(bytes: &[u8]) -> Item {
    Item { bytes: bytes.as_ptr().cast(), len: bytes.len(), ..of_kind(sys::BYTES) }
}

/// The head of an array; `len` values follow.
pub(crate) fn array(len: usize) -> Item {
    Item { integer: len as i64, ..of_kind(sys::ARRAY) }
}

/// The head of a map; `len` pairs follow.
pub(crate) fn map(len: usize) -> Item {
    Item { integer: len as i64, ..of_kind(sys::MAP) }
}

/// Appends the items of a value, which must live until Ruby has taken them.
pub(crate) fn flatten(value: &Value, items: &mut Vec<Item>) {
    match value {
        Value::Nil => items.push(of_kind(sys::NIL)),
        Value::Boolean(is_true) => items.push(boolean(*is_true)),
        Value::Integer(value) => items.push(integer(*value)),
        Value::Number(value) => items.push(number(*value)),
        Value::String(text) => items.push(bytes(text)),
        Value::Array(values) => {
            items.push(array(values.len()));
            values.iter().for_each(|value| flatten(value, items));
        }
        Value::Map(entries) => {
            items.push(map(entries.len()));
            for (key, value) in entries {
                flatten(key, items);
                flatten(value, items);
            }
        }
    }
}

/// An argument from C.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Argument<'a> {
    Nil,
    Boolean(bool),
    Integer(i64),
    Number(f64),
    Bytes(&'a [u8]),
}

impl<'a> Argument<'a> {
    /// # Safety
    /// The bytes of the item must live for `'a`.
    pub(crate) unsafe fn of(item: &Item) -> Self {
        match item.kind {
            sys::FALSE => Self::Boolean(false),
            sys::TRUE => Self::Boolean(true),
            sys::INTEGER => Self::Integer(item.integer),
            sys::NUMBER => Self::Number(item.number),
            // SAFETY: the caller's promise; an empty string of C may have no address.
            sys::BYTES if item.len > 0 => unsafe {
                Self::Bytes(std::slice::from_raw_parts(item.bytes.cast(), item.len))
            },
            sys::BYTES => Self::Bytes(&[]),
            _ => Self::Nil,
        }
    }

    fn described(self) -> &'static str {
        match self {
            Self::Nil => "nil",
            Self::Boolean(true) => "true",
            Self::Boolean(false) => "false",
            Self::Integer(_) => "an integer",
            Self::Number(_) => "a float",
            Self::Bytes(_) => "a string",
        }
    }

    /// The text of a string or number; `what` names its purpose.
    #[inline(always)]
    pub(crate) fn text(self, what: &str) -> Result<Cow<'a, [u8]>, Fault> {
        match self {
            Self::Bytes(bytes) => Ok(Cow::Borrowed(bytes)),
            other => other.text_of_other(what),
        }
    }

    #[cold]
    fn text_of_other(self, what: &str) -> Result<Cow<'a, [u8]>, Fault> {
        match self {
            Self::Bytes(bytes) => Ok(Cow::Borrowed(bytes)),
            Self::Integer(integer) => {
                Ok(Cow::Owned(itoa::Buffer::new().format(integer).as_bytes().to_vec()))
            }
            Self::Number(number) if number.is_finite() => {
                Ok(Cow::Owned(format_float(number).into_bytes()))
            }
            Self::Number(number) => Err(Fault::Refused(format!("{number} cannot be stored"))),
            other => Err(Fault::Refused(format!(
                "{what} is a string, a symbol or a number, this one is {}",
                other.described()
            ))),
        }
    }

    /// Like [`text`](Self::text), but nil stands for none.
    pub(crate) fn optional_text(self, what: &str) -> Result<Option<Cow<'a, [u8]>>, Fault> {
        match self {
            Self::Nil => Ok(None),
            other => other.text(what).map(Some),
        }
    }

    pub(crate) fn integer(self, what: &str) -> Result<i64, Fault> {
        match self {
            Self::Integer(integer) => Ok(integer),
            other => {
                Err(Fault::Refused(format!("{what} is an integer, this is {}", other.described())))
            }
        }
    }

    /// A finite number.
    pub(crate) fn number(self, what: &str) -> Result<f64, Fault> {
        match self {
            Self::Integer(integer) => Ok(integer as f64),
            Self::Number(number) if number.is_finite() => Ok(number),
            other => {
                Err(Fault::Refused(format!("{what} is a number, this is {}", other.described())))
            }
        }
    }

    pub(crate) fn is_true(self) -> bool {
        !matches!(self, Self::Nil | Self::Boolean(false))
    }
}

/// A value that arrives item by item.
#[derive(Default)]
pub(crate) struct Gathering {
    /// The open containers, outermost first, and how many values each still lacks.
    open: Vec<(Value, usize)>,
    done: Option<Value>,
    values: usize,
    bytes: usize,
    /// Maximum number of bytes of strings.
    bytes_max: usize,
}

impl Gathering {
    pub(crate) fn begin(&mut self, bytes_max: usize) {
        *self = Self { bytes_max, ..Self::default() };
    }

    pub(crate) fn take(&mut self) -> Value {
        self.open.clear();
        self.done.take().unwrap_or(Value::Nil)
    }

    /// Adds the next item; returns whether it was within the limits.
    ///
    /// # Safety
    /// The bytes of the item must be valid.
    pub(crate) unsafe fn add(&mut self, item: &Item) -> bool {
        self.values += 1;
        self.bytes += if item.kind == sys::BYTES { item.len } else { 0 };
        if self.values > VALUE_COUNT_MAX
            || self.bytes > self.bytes_max
            || self.open.len() > VALUE_DEPTH_MAX
        {
            return false;
        }
        let count = usize::try_from(item.integer).unwrap_or(0);
        match item.kind {
            sys::ARRAY if count > 0 => self.open.push((Value::Array(Vec::new()), count)),
            sys::MAP if count > 0 => self.open.push((Value::Map(Vec::new()), 2 * count)),
            sys::ARRAY => self.add_value(Value::Array(Vec::new())),
            sys::MAP => self.add_value(Value::Map(Vec::new())),
            // SAFETY: the caller's promise.
            _ => self.add_value(match unsafe { Argument::of(item) } {
                Argument::Nil => Value::Nil,
                Argument::Boolean(is_true) => Value::Boolean(is_true),
                Argument::Integer(integer) => Value::Integer(integer),
                Argument::Number(number) => Value::Number(number),
                Argument::Bytes(bytes) => Value::String(bytes.to_vec()),
            }),
        }
        true
    }

    fn add_value(&mut self, mut value: Value) {
        while let Some((container, missing)) = self.open.last_mut() {
            match container {
                Value::Map(entries) if missing.is_multiple_of(2) => {
                    entries.push((value, Value::Nil));
                }
                Value::Map(entries) => {
                    if let Some((_, place)) = entries.last_mut() {
                        *place = value;
                    }
                }
                Value::Array(values) => values.push(value),
                _ => {}
            }
            *missing -= 1;
            if *missing > 0 {
                return;
            }
            let Some((closed, _)) = self.open.pop() else { return };
            value = closed;
        }
        self.done = Some(value);
    }
}
