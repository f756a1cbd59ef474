//! Many texts in one block of memory.

use super::PayloadError;

/// Texts, stored back to back: each costs one number besides its bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Texts {
    bytes: Vec<u8>,
    /// Where each text ends.
    ends: Vec<usize>,
}

impl Texts {
    /// The number of texts.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The text at an index, counted from 0.
    #[must_use]
    pub fn get(&self, place: usize) -> Option<&[u8]> {
        let end = *self.ends.get(place)?;
        let start = place.checked_sub(1).and_then(|before| self.ends.get(before)).copied();
        self.bytes.get(start.unwrap_or(0)..end)
    }

    /// All texts, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.len()).map(|place| self.get(place).unwrap_or_default())
    }

    /// Adds a text, unless the total would exceed `bytes_max`.
    pub(super) fn push(&mut self, text: &[u8], bytes_max: usize) -> Result<(), PayloadError> {
        let numbers = (self.ends.len() + 1) * size_of::<usize>();
        if self.bytes.len() + text.len() + numbers > bytes_max {
            return Err(PayloadError::TooLarge);
        }
        self.bytes.extend_from_slice(text);
        self.ends.push(self.bytes.len());
        Ok(())
    }
}
