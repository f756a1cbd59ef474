//! Unused buffers. A connection that waits for its client holds none.

/// The unused buffers of one worker, for whichever of its connections needs one.
pub(crate) struct Buffers {
    kept: Vec<Vec<u8>>,
    /// Maximum number of buffers that are kept.
    kept_max: usize,
    /// Bytes of a new buffer.
    bytes: usize,
}

impl Buffers {
    /// A buffer that has grown to the size of more new ones than this is not kept.
    const GROWTH_MAX: usize = 4;

    pub(crate) fn new(bytes: usize, kept_max: usize) -> Self {
        Self { kept: Vec::new(), kept_max, bytes }
    }

    /// Gives memory to a buffer that has none.
    pub(crate) fn fill(&mut self, buffer: &mut Vec<u8>) {
        if buffer.capacity() == 0 {
            *buffer = self.kept.pop().unwrap_or_else(|| Vec::with_capacity(self.bytes));
        }
    }

    /// Takes an empty buffer back.
    pub(crate) fn put(&mut self, buffer: Vec<u8>) {
        let kept = self.bytes..=Self::GROWTH_MAX * self.bytes;
        if kept.contains(&buffer.capacity()) && self.kept.len() < self.kept_max {
            self.kept.push(buffer);
        }
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.kept.len()
    }
}
