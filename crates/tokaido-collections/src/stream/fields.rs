//! The contents of an entry.

use tokaido_store::ReadError;

use super::super::{
    packed::{self, Texts},
    place::damaged,
};

/// The fields of an entry with their values, in the order in which they were given: field, value, field, value.
#[derive(Clone)]
pub struct Fields<'e> {
    texts: Texts<'e>,
    left: usize,
}

impl<'e> Fields<'e> {
    /// The fields of a stored entry.
    pub(super) fn read(stored: &'e [u8]) -> Result<Self, ReadError> {
        let left = packed::count(stored)?;
        if left % 2 != 0 {
            return Err(damaged("an entry of a stream has a field without a value"));
        }
        Ok(Self { texts: Texts::of(stored), left })
    }

    /// The fields as they are stored.
    pub(super) fn pack<'f>(texts: impl Iterator<Item = &'f [u8]>) -> Vec<u8> {
        let mut packed = Vec::new();
        texts.for_each(|text| packed::push(&mut packed, text));
        packed
    }
}

impl<'e> Iterator for Fields<'e> {
    type Item = &'e [u8];

    fn next(&mut self) -> Option<&'e [u8]> {
        let text = self.texts.next().ok().flatten()?;
        self.left -= 1;
        Some(text)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Fields<'_> {}
