//! The packed form of a small collection: texts back to back, each preceded by its length.
//!
//! A length has seven bits in each byte, the lowest first; all bytes but the last have the highest
//! bit set.

use std::ops::Range;

use tokaido_store::ReadError;

/// Up to what size a collection is packed into its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packing {
    /// Maximum number of elements.
    pub elements_max: usize,
    /// Maximum length of a text of an element (a field, a value, a member), in bytes.
    pub text_len_max: usize,
}

impl Default for Packing {
    fn default() -> Self {
        Self { elements_max: 128, text_len_max: 64 }
    }
}

impl Packing {
    /// Whether a text is short enough to be packed.
    pub(super) fn admits(&self, text: &[u8]) -> bool {
        text.len() <= self.text_len_max
    }
}

/// Appends a text.
pub(super) fn push(packed: &mut Vec<u8>, text: &[u8]) {
    let mut len = text.len();
    while len >= 0x80 {
        packed.push(len as u8 | 0x80);
        len >>= 7;
    }
    packed.push(len as u8);
    packed.extend_from_slice(text);
}

/// The texts of a packed collection, in order.
#[derive(Clone)]
pub(super) struct Texts<'p> {
    packed: &'p [u8],
    at: usize,
}

impl<'p> Texts<'p> {
    pub(super) fn of(packed: &'p [u8]) -> Self {
        Self { packed, at: 0 }
    }

    /// Where the next text begins, including its length.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// The next text; `None` at the end.
    #[inline]
    pub(super) fn next(&mut self) -> Result<Option<&'p [u8]>, ReadError> {
        let Some(&first) = self.packed.get(self.at) else { return Ok(None) };
        let (mut len, mut body) = (usize::from(first & 0x7f), self.at + 1);
        let (mut byte, mut shift) = (first, 7);
        while byte & 0x80 != 0 {
            byte = *self.packed.get(body).filter(|_| shift < 32).ok_or_else(damaged)?;
            len |= usize::from(byte & 0x7f) << shift;
            shift += 7;
            body += 1;
        }
        let text = self.packed.get(body..body.saturating_add(len)).ok_or_else(damaged)?;
        self.at = body + len;
        Ok(Some(text))
    }

    /// The next text, which must be there.
    #[inline]
    pub(super) fn must(&mut self) -> Result<&'p [u8], ReadError> {
        self.next()?.ok_or_else(damaged)
    }
}

/// The number of texts.
pub(super) fn count(packed: &[u8]) -> Result<usize, ReadError> {
    let (mut texts, mut count) = (Texts::of(packed), 0);
    while texts.next()?.is_some() {
        count += 1;
    }
    Ok(count)
}

/// Replaces what is in `range` with texts.
pub(super) fn replace(packed: &mut Vec<u8>, range: Range<usize>, texts: &[&[u8]]) {
    let mut new = Vec::new();
    for text in texts {
        push(&mut new, text);
    }
    packed.splice(range, new);
}

fn damaged() -> ReadError {
    ReadError::Damaged { what: "the elements of a packed collection are cut off".to_owned() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn texts_come_back(texts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..9)) {
            let mut packed = Vec::new();
            texts.iter().for_each(|text| push(&mut packed, text));
            prop_assert_eq!(count(&packed).unwrap(), texts.len());
            let mut read = Texts::of(&packed);
            for text in &texts {
                prop_assert_eq!(read.must().unwrap(), &text[..]);
            }
            prop_assert_eq!(read.next().unwrap(), None);
            prop_assert_eq!(read.at(), packed.len());
        }

        #[test]
        fn any_bytes_are_texts_or_damage(bytes: Vec<u8>) {
            let mut texts = Texts::of(&bytes);
            while let Ok(Some(_)) = texts.next() {}
        }
    }

    #[test]
    fn a_length_without_an_end_is_damage() {
        assert!(count(&[0xff; 20]).is_err());
        assert!(count(&[0x80]).is_err());
        assert!(count(&[3, b'a']).is_err());
    }

    #[test]
    fn texts_are_replaced_in_their_place() {
        let mut packed = Vec::new();
        for text in ["a", "bb", "c"] {
            push(&mut packed, text.as_bytes());
        }
        replace(&mut packed, 2..5, &[b"x", b"yy"]);
        assert_eq!(packed, b"\x01a\x01x\x02yy\x01c");
    }
}
