//! The file being written. It is appended to through a buffer. Until it is finished it can also be
//! read, overwritten and shortened, which removing a duplicate needs.

use std::{fs::File, io, os::unix::fs::FileExt};

/// Bytes buffered before they are written (256 KiB). Most files are written in one go.
const BUFFER_LEN_MAX: usize = 256 << 10;

/// Bytes that are moved at once when a gap is closed (256 KiB).
const MOVE_LEN_MAX: usize = 256 << 10;

pub(super) struct Output {
    file: File,
    /// What follows the first `flushed` bytes of the file.
    buffer: Vec<u8>,
    flushed: u64,
    /// The largest value that `flushed` has had: the file's length.
    file_len: u64,
}

impl Output {
    pub(super) fn new(file: File) -> Self {
        Self { file, buffer: Vec::new(), flushed: 0, file_len: 0 }
    }

    /// Bytes appended.
    pub(super) fn len(&self) -> u64 {
        self.flushed + self.buffer.len() as u64
    }

    pub(super) fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.buffer.len() + bytes.len() > BUFFER_LEN_MAX {
            self.flush()?;
        }
        if bytes.len() > BUFFER_LEN_MAX {
            self.file.write_all_at(bytes, self.flushed)?;
            self.advance(bytes.len());
        } else {
            self.buffer.extend_from_slice(bytes);
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.write_all_at(&self.buffer, self.flushed)?;
        self.advance(self.buffer.len());
        self.buffer.clear();
        Ok(())
    }

    fn advance(&mut self, len: usize) {
        self.flushed += len as u64;
        self.file_len = self.file_len.max(self.flushed);
    }

    /// Where these bytes, which are all within the output, are in the buffer. If they are not all
    /// there, this flushes, so that they are all in the file.
    fn find(&mut self, position: u64, len: usize) -> io::Result<Option<usize>> {
        debug_assert!(position + len as u64 <= self.len());
        if position >= self.flushed {
            return Ok(Some((position - self.flushed) as usize));
        }
        if position + len as u64 > self.flushed {
            self.flush()?;
        }
        Ok(None)
    }

    /// Reads bytes that were appended before.
    pub(super) fn read(&mut self, position: u64, into: &mut [u8]) -> io::Result<()> {
        match self.find(position, into.len())? {
            Some(start) => into.copy_from_slice(&self.buffer[start..start + into.len()]),
            None => self.file.read_exact_at(into, position)?,
        }
        Ok(())
    }

    /// Overwrites bytes that were appended before.
    pub(super) fn overwrite(&mut self, position: u64, bytes: &[u8]) -> io::Result<()> {
        match self.find(position, bytes.len())? {
            Some(start) => self.buffer[start..start + bytes.len()].copy_from_slice(bytes),
            None => self.file.write_all_at(bytes, position)?,
        }
        Ok(())
    }

    /// Truncates the output to `len` bytes.
    pub(super) fn shorten(&mut self, len: u64) {
        debug_assert!(len <= self.len());
        if len >= self.flushed {
            self.buffer.truncate((len - self.flushed) as usize);
        } else {
            self.buffer.clear();
            self.flushed = len;
        }
    }

    /// Moves `len` bytes towards the beginning of the output.
    pub(super) fn move_down(&mut self, from: u64, to: u64, len: u64) -> io::Result<()> {
        debug_assert!(to <= from);
        let mut chunk = Vec::new();
        let mut moved = 0;
        while moved < len {
            chunk.resize((len - moved).min(MOVE_LEN_MAX as u64) as usize, 0);
            self.read(from + moved, &mut chunk)?;
            self.overwrite(to + moved, &chunk)?;
            moved += chunk.len() as u64;
        }
        Ok(())
    }

    /// Writes what is left, and returns the file, which ends where the output ends.
    pub(super) fn finish(mut self) -> io::Result<File> {
        self.flush()?;
        if self.file_len > self.flushed {
            self.file.set_len(self.flushed)?;
        }
        Ok(self.file)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Append(usize),
        Overwrite(usize, usize),
        Shorten(usize),
        MoveDown(usize, usize, usize),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        // Around the length of the buffer, and far from it.
        let len = || prop_oneof![0..100usize, BUFFER_LEN_MAX - 50..BUFFER_LEN_MAX + 50];
        let place = || 0..2 * BUFFER_LEN_MAX;
        let step = prop_oneof![
            4 => len().prop_map(Step::Append),
            2 => (place(), len()).prop_map(|(at, len)| Step::Overwrite(at, len)),
            1 => place().prop_map(Step::Shorten),
            1 => (place(), place(), len()).prop_map(|(a, b, len)| Step::MoveDown(a, b, len)),
        ];
        prop::collection::vec(step, 0..12)
    }

    fn pattern(len: usize, seed: usize) -> Vec<u8> {
        (0..len).map(|i| (i * 7 + seed) as u8).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn the_file_is_what_a_vector_would_be(steps in steps()) {
            let mut output = Output::new(tempfile::tempfile().unwrap());
            let mut model: Vec<u8> = Vec::new();
            for (seed, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Append(len) => {
                        output.append(&pattern(len, seed)).unwrap();
                        model.extend(pattern(len, seed));
                    }
                    Step::Overwrite(at, len) => {
                        let at = at.min(model.len());
                        let len = len.min(model.len() - at);
                        output.overwrite(at as u64, &pattern(len, seed)).unwrap();
                        model[at..at + len].copy_from_slice(&pattern(len, seed));
                    }
                    Step::Shorten(len) => {
                        let len = len.min(model.len());
                        output.shorten(len as u64);
                        model.truncate(len);
                    }
                    Step::MoveDown(a, b, len) => {
                        let (to, from) = (a.min(b).min(model.len()), a.max(b).min(model.len()));
                        let len = len.min(model.len() - from);
                        output.move_down(from as u64, to as u64, len as u64).unwrap();
                        model.copy_within(from..from + len, to);
                    }
                }
                prop_assert_eq!(output.len(), model.len() as u64);
                let middle = model.len() / 2;
                let mut read = vec![0; model.len() - middle];
                output.read(middle as u64, &mut read).unwrap();
                prop_assert_eq!(&read, &model[middle..]);
            }
            let mut file = output.finish().unwrap();
            let mut bytes = Vec::new();
            io::Seek::rewind(&mut file).unwrap();
            file.read_to_end(&mut bytes).unwrap();
            prop_assert!(bytes == model);
        }
    }
}
