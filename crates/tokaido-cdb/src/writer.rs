//! Making a cdb file: records as they come, then hash tables, then the header, then the rename.

use std::{
    io,
    path::{Path, PathBuf},
};

use super::{
    duplicates::{Gaps, Index},
    error::{MakeError, shown_key},
    format::{self, FILE_LEN_MAX, HEADER_LEN, PAIR_LEN, SLOTS_LEN},
    options::{Duplicates, Options},
    output::Output,
    tables::{self, Entry},
    target::Target,
};

/// Removed records stay in the temporary file until they take as much space as the others, and at
/// least this much (64 MiB), so that each byte is moved a few times at most.
const GAPS_LEN_MAX: u64 = 64 << 20;

/// Makes a cdb file.
///
/// The target is not touched before [`Writer::finish`], which replaces it with the new file
/// atomically. A writer that is dropped before that leaves nothing behind.
///
/// ```
/// use tokaido_cdb::{Duplicates, Options, Put, Reader, Writer};
///
/// let directory = tempfile::tempdir()?;
/// let path = directory.path().join("a.cdb");
/// let options = Options { duplicates: Duplicates::Replace, ..Options::default() };
/// let mut writer = Writer::create(&path, &options)?;
/// assert_eq!(writer.put(b"key", b"1")?, Put::Added);
/// assert_eq!(writer.put(b"key", b"2")?, Put::Duplicate);
/// writer.finish()?;
/// assert_eq!(Reader::open(&path)?.get(b"key")?, Some(&b"2"[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Writer {
    output: Output,
    target: Target,
    duplicates: Duplicates,
    len_max: u64,
    entries: Vec<Entry>,
    index: Index,
    gaps: Gaps,
    /// Records accepted by `put`, for messages.
    put: u64,
    /// Whether `entries` may be out of the order of their positions.
    is_shuffled: bool,
    is_broken: bool,
}

/// Whether a key was new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// It was, or was not checked ([`Duplicates::Keep`]).
    Added,
    /// It was put before; [`Duplicates`] says what happened to the two records.
    Duplicate,
}

impl Writer {
    /// Begins a file that will end up at `path`.
    ///
    /// # Errors
    /// [`MakeError::Io`] and [`MakeError::BadPermissions`].
    pub fn create(path: impl AsRef<Path>, options: &Options) -> Result<Self, MakeError> {
        let (target, file) = Target::create(path.as_ref(), options)?;
        let mut writer = Self {
            output: Output::new(file),
            target,
            duplicates: options.duplicates,
            len_max: options.len_max.clamp(HEADER_LEN as u64, FILE_LEN_MAX),
            entries: Vec::new(),
            index: Index::default(),
            gaps: Gaps::default(),
            put: 0,
            is_shuffled: false,
            is_broken: false,
        };
        // Room for the header. A reader refuses zeros, so an unfinished file is recognised.
        writer.guard(|writer| writer.output.append(&[0; HEADER_LEN]))?;
        Ok(writer)
    }

    /// Adds a record. Key and value may be empty, and may hold any bytes.
    ///
    /// # Errors
    /// [`MakeError::TooLarge`] and [`MakeError::Duplicate`], after which the writer continues
    /// without this record; [`MakeError::Io`], and [`MakeError::Broken`] from then on.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<Put, MakeError> {
        self.check()?;
        let record = self.put + 1;
        let hash = format::hash(key);
        let earlier = match self.duplicates {
            Duplicates::Keep => None,
            _ => self.guard(|w| w.index.find(key, hash, &w.entries, &mut w.output))?,
        };
        match (self.duplicates, earlier) {
            (Duplicates::Refuse, Some(_)) => {
                return Err(MakeError::Duplicate { record, key: shown_key(key) });
            }
            (Duplicates::KeepFirst, Some(_)) => {}
            (Duplicates::Replace | Duplicates::ZeroFill, Some((number, len))) => {
                self.replace(number, len, key, value)?;
            }
            _ => {
                self.check_len(key, value, 0)?;
                let position = self.append(key, value)?;
                self.entries.push(Entry { hash, position });
                if self.duplicates != Duplicates::Keep {
                    self.index.add(hash);
                }
            }
        }
        self.put = record;
        Ok(if earlier.is_some() { Put::Duplicate } else { Put::Added })
    }

    /// The number of records that will be found in the finished file.
    pub fn records(&self) -> u64 {
        self.entries.len() as u64
    }

    /// Writes the hash tables and the header, and puts the file in its place.
    ///
    /// # Errors
    /// [`MakeError::Io`], [`MakeError::Broken`] and, if the file is in its place nevertheless,
    /// [`MakeError::NotSynced`].
    pub fn finish(mut self) -> Result<(), MakeError> {
        self.check()?;
        self.guard(|w| w.gaps.close(&mut w.entries, &mut w.output))?;
        if self.is_shuffled {
            self.entries.sort_unstable_by_key(|entry| entry.position);
        }
        self.guard(|w| {
            let header = tables::append(&w.entries, &mut w.output)?;
            w.output.overwrite(0, &header)
        })?;
        debug_assert!(self.output.len() <= self.len_max);
        let Self { output, target, .. } = self;
        let io_error = |source| MakeError::Io { path: target.built().to_owned(), source };
        let file = output.finish().map_err(io_error)?;
        target.install(&file)
    }

    fn check(&self) -> Result<(), MakeError> {
        if self.is_broken {
            return Err(MakeError::Broken { path: self.built() });
        }
        Ok(())
    }

    fn built(&self) -> PathBuf {
        self.target.built().to_owned()
    }

    /// Does something with the file, and remembers an error: then the file's contents are unknown.
    fn guard<T>(&mut self, act: impl FnOnce(&mut Self) -> io::Result<T>) -> Result<T, MakeError> {
        act(self).map_err(|source| {
            self.is_broken = true;
            MakeError::Io { path: self.built(), source }
        })
    }

    /// Refuses a record that would make the file too long, after `freed` bytes have been removed
    /// from it.
    fn check_len(&self, key: &[u8], value: &[u8], freed: u64) -> Result<(), MakeError> {
        let present = self.output.len() - self.gaps.len();
        let tables = self.entries.len() as u64 * SLOTS_LEN;
        let record = format::record_len(key.len(), value.len()) + SLOTS_LEN;
        let len = present + tables - freed + record;
        if len > self.len_max {
            return Err(MakeError::TooLarge { record: self.put + 1, len, len_max: self.len_max });
        }
        Ok(())
    }

    /// Appends a record, for which there is room in the finished file.
    fn append(&mut self, key: &[u8], value: &[u8]) -> Result<u32, MakeError> {
        let end = self.output.len() + format::record_len(key.len(), value.len());
        let is_full = end > self.len_max;
        let are_gaps_large = self.gaps.len() > GAPS_LEN_MAX.max(self.output.len() / 2);
        if is_full || are_gaps_large {
            self.guard(|w| w.gaps.close(&mut w.entries, &mut w.output))?;
        }
        // So the position fits into 32 bits.
        debug_assert!(self.output.len() < self.len_max);
        let position = self.output.len() as u32;
        self.guard(|w| {
            let lengths = format::encode_pair(key.len() as u32, value.len() as u32);
            w.output.append(&lengths)?;
            w.output.append(key)?;
            w.output.append(value)
        })?;
        Ok(position)
    }

    /// Removes the record with this number and length, and appends another one under its number.
    fn replace(
        &mut self,
        number: usize,
        len: u64,
        key: &[u8],
        value: &[u8],
    ) -> Result<(), MakeError> {
        let position = u64::from(self.entries[number].position);
        let is_last = position + len == self.output.len();
        let is_zero_filled = self.duplicates == Duplicates::ZeroFill && !is_last;
        // The slots of the record pass to its successor.
        let freed = if is_zero_filled { SLOTS_LEN } else { SLOTS_LEN + len };
        self.check_len(key, value, freed)?;
        if is_last {
            self.output.shorten(position);
        } else if is_zero_filled {
            self.guard(|w| fill_with_zeros(position, len, &mut w.output))?;
        } else {
            self.gaps.add(position, len);
        }
        self.entries[number].position = self.append(key, value)?;
        self.is_shuffled = true;
        Ok(())
    }
}

/// Overwrites a record with one of the same length, with an empty key and a value of zeros.
fn fill_with_zeros(position: u64, len: u64, output: &mut Output) -> io::Result<()> {
    const ZEROS: [u8; 4096] = [0; 4096];
    let value_len = len - PAIR_LEN as u64;
    output.overwrite(position, &format::encode_pair(0, value_len as u32))?;
    let mut filled = 0;
    while filled < value_len {
        let part = &ZEROS[..(value_len - filled).min(ZEROS.len() as u64) as usize];
        output.overwrite(position + PAIR_LEN as u64 + filled, part)?;
        filled += part.len() as u64;
    }
    Ok(())
}
