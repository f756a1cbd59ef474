//! Encodes values as payloads, in the plain forms that every version of Redis reads. RESTORE packs
//! small values again.

use super::decode::kind;

/// Appends a value to a buffer. A collection begins with the number of its elements; then each
/// element is added.
pub struct Encoder<'o> {
    output: &'o mut Vec<u8>,
}

impl<'o> Encoder<'o> {
    /// Writes to `output`.
    pub fn new(output: &'o mut Vec<u8>) -> Self {
        Self { output }
    }

    /// The number of bytes in the buffer.
    #[must_use]
    pub fn len(&self) -> usize {
        self.output.len()
    }

    /// Whether the buffer is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.output.is_empty()
    }

    /// Writes a string.
    pub fn string(&mut self, text: &[u8]) {
        self.output.push(kind::STRING);
        self.text(text);
    }

    /// Begins a list of `items` items, each of which is a [`text`](Self::text).
    pub fn list(&mut self, items: u64) {
        self.begin(kind::LIST, items);
    }

    /// Begins a set of `members` members, each of which is a [`text`](Self::text).
    pub fn set(&mut self, members: u64) {
        self.begin(kind::SET, members);
    }

    /// Begins a hash of `fields` fields; each is two [`text`](Self::text)s, the field and its value.
    pub fn hash(&mut self, fields: u64) {
        self.begin(kind::HASH, fields);
    }

    /// Begins a sorted set of `members` members, each a [`text`](Self::text) and a [`score`](Self::score).
    pub fn sorted_set(&mut self, members: u64) {
        self.begin(kind::ZSET_2, members);
    }

    fn begin(&mut self, kind: u8, elements: u64) {
        self.output.push(kind);
        self.length(elements);
    }

    pub(super) fn begin_stream(&mut self, nodes: u64) {
        self.begin(kind::STREAM_LISTPACKS_2, nodes);
    }

    pub(super) fn raw(&mut self, bytes: &[u8]) {
        self.output.extend_from_slice(bytes);
    }

    /// Adds a score.
    pub fn score(&mut self, score: f64) {
        self.output.extend_from_slice(&score.to_le_bytes());
    }

    /// Adds a text with its length before it.
    pub fn text(&mut self, text: &[u8]) {
        self.length(text.len() as u64);
        self.output.extend_from_slice(text);
    }

    pub(super) fn length(&mut self, length: u64) {
        match length {
            0..0x40 => self.output.push(length as u8),
            0x40..0x4000 => {
                self.output.extend_from_slice(&(0x4000 | length as u16).to_be_bytes());
            }
            0x4000..=0xffff_ffff => {
                self.output.push(0x80);
                self.output.extend_from_slice(&(length as u32).to_be_bytes());
            }
            _ => {
                self.output.push(0x81);
                self.output.extend_from_slice(&length.to_be_bytes());
            }
        }
    }
}
