//! Values that requests leave for each other across all workers: `r:ivm_set` and `r:ivm_get`.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

/// Maximum number of values.
const VALUES_MAX: usize = 10_000;

/// Maximum total length of all names and texts, in bytes.
const BYTES_MAX: usize = 16 << 20;

/// A value that is not a table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum StoredValue {
    Boolean(bool),
    Number(f64),
    Text(Box<[u8]>),
}

impl StoredValue {
    fn len(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Boolean(_) | Self::Number(_) => 0,
        }
    }
}

/// There is no room for a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "ivm_set keeps at most {VALUES_MAX} values, of {BYTES_MAX} bytes together; put what is more into a database"
)]
pub(crate) struct ValuesError;

/// The values, by name. They stay until the server ends.
#[derive(Debug, Default)]
pub struct SharedValues(Mutex<Values>);

#[derive(Debug, Default)]
struct Values {
    by_name: HashMap<Box<[u8]>, StoredValue>,
    bytes: usize,
}

impl SharedValues {
    /// The value of that name.
    pub(crate) fn get(&self, name: &[u8]) -> Option<StoredValue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).by_name.get(name).cloned()
    }

    /// Sets a value, or removes it.
    ///
    /// # Errors
    /// If there is no room; the old value stays then.
    pub(crate) fn set(&self, name: &[u8], value: Option<StoredValue>) -> Result<(), ValuesError> {
        let mut values = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = values.by_name.get(name).map_or(0, |old| name.len() + old.len());
        let Some(value) = value else {
            values.by_name.remove(name);
            values.bytes -= before;
            return Ok(());
        };
        let bytes = values.bytes - before + name.len() + value.len();
        let is_new = !values.by_name.contains_key(name);
        if bytes > BYTES_MAX || is_new && values.by_name.len() == VALUES_MAX {
            return Err(ValuesError);
        }
        values.by_name.insert(name.into(), value);
        values.bytes = bytes;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(len: usize) -> Option<StoredValue> {
        Some(StoredValue::Text(vec![b'x'; len].into()))
    }

    #[test]
    fn values_are_bounded_in_number_and_length() {
        let values = SharedValues::default();
        assert_eq!(values.set(b"large", text(BYTES_MAX - 4)), Err(ValuesError));
        assert_eq!(values.set(b"a", text(BYTES_MAX - 1)), Ok(()));
        assert_eq!(values.set(b"b", Some(StoredValue::Boolean(true))), Err(ValuesError));
        assert_eq!(values.set(b"a", text(1)), Ok(()));
        for i in 1..VALUES_MAX {
            assert_eq!(values.set(i.to_string().as_bytes(), text(0)), Ok(()));
        }
        assert_eq!(values.set(b"more", text(0)), Err(ValuesError));
        assert_eq!(values.set(b"a", None), Ok(()));
        assert_eq!(values.set(b"more", Some(StoredValue::Number(1.5))), Ok(()));
        assert_eq!(values.get(b"more"), Some(StoredValue::Number(1.5)));
        assert_eq!(values.get(b"a"), None);
    }
}
