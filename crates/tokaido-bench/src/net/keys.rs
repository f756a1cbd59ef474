//! Which keys are requested.

use std::{fs, io, path::PathBuf, str::FromStr, sync::Arc};

use crate::random::{Random, Shuffle, Zipf, scatter};

/// The prefix and the length of a generated key.
const PREFIX: &[u8] = b"key:";
const KEY_LEN: usize = 16;

/// Maximum number of generated keys, limited by the number of digits.
pub const KEYS_MAX: u64 = 1_000_000_000_000;

/// Maximum length of a key file in bytes: it is held in memory.
const FILE_LEN_MAX: u64 = 1 << 30;

/// The exponent of a Zipf distribution if none is given.
const EXPONENT_DEFAULT: f64 = 0.99;
const EXPONENT_MAX: f64 = 10.0;

/// How keys are distributed.
#[derive(Clone, Debug, PartialEq)]
pub enum Keys {
    /// All equally often.
    Uniform,
    /// Some far more often than others, in proportion to 1 / rank^exponent. The frequent ones are scattered over all.
    Zipf(f64),
    /// In order, over and over.
    Sequential,
    /// Each once, in pseudo-random order, over and over.
    Shuffled,
    /// The lines of a file, in order, over and over.
    File(PathBuf),
}

/// The keys are unavailable.
#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    /// There is no such distribution.
    #[error("keys are uniform, zipf, zipf:EXPONENT, sequential, shuffled or file:PATH")]
    Unknown,
    /// A file cannot be read.
    #[error("{}: {source}", path.display())]
    File {
        /// Its path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A file has no lines.
    #[error("{} has no lines; each one is a key", path.display())]
    Empty {
        /// Its path.
        path: PathBuf,
    },
    /// A file is too long.
    #[error("{} is longer than {FILE_LEN_MAX} bytes; take a part of it", path.display())]
    TooLong {
        /// Its path.
        path: PathBuf,
    },
}

impl FromStr for Keys {
    type Err = KeysError;

    fn from_str(text: &str) -> Result<Self, KeysError> {
        let (name, rest) =
            text.split_once(':').map_or((text, None), |(name, rest)| (name, Some(rest)));
        match (name, rest) {
            ("uniform", None) => Ok(Self::Uniform),
            ("sequential", None) => Ok(Self::Sequential),
            ("shuffled", None) => Ok(Self::Shuffled),
            ("zipf", None) => Ok(Self::Zipf(EXPONENT_DEFAULT)),
            ("zipf", Some(exponent)) => match exponent.parse::<f64>() {
                Ok(exponent) if exponent > 0.0 && exponent <= EXPONENT_MAX => {
                    Ok(Self::Zipf(exponent))
                }
                _ => Err(KeysError::Unknown),
            },
            ("file", Some(path)) if !path.is_empty() => Ok(Self::File(path.into())),
            _ => Err(KeysError::Unknown),
        }
    }
}

/// The lines of a file, without empty ones.
pub(super) fn lines(path: &PathBuf) -> Result<Vec<Vec<u8>>, KeysError> {
    let failed = |source| KeysError::File { path: path.clone(), source };
    if fs::metadata(path).map_err(failed)?.len() > FILE_LEN_MAX {
        return Err(KeysError::TooLong { path: path.clone() });
    }
    let text = fs::read(path).map_err(failed)?;
    let lines = text.split(|byte| *byte == b'\n');
    let lines = lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let lines: Vec<Vec<u8>> = lines.filter(|line| !line.is_empty()).map(<[u8]>::to_vec).collect();
    match lines.is_empty() {
        true => Err(KeysError::Empty { path: path.clone() }),
        false => Ok(lines),
    }
}

/// Where the keys of one thread come from. Threads share large data.
#[derive(Clone, Debug)]
pub(super) struct KeySource {
    order: Order,
    /// Turns a sequence into a pseudo-random order.
    shuffle: Option<Shuffle>,
    /// Used instead of generated keys.
    lines: Option<Arc<Vec<Vec<u8>>>>,
    count: u64,
}

#[derive(Clone, Debug)]
enum Order {
    Uniform,
    Zipf(Zipf),
    /// The next index, and the step to the one after it: each thread has its own indexes.
    Sequential {
        next: u64,
        step: u64,
    },
}

impl KeySource {
    /// Creates the source of a single thread; `count` is the number of generated keys.
    pub(super) fn new(keys: &Keys, count: u64) -> Result<Self, KeysError> {
        let sequential = Order::Sequential { next: 0, step: 1 };
        let of = |order| Self { order, shuffle: None, lines: None, count };
        Ok(match keys {
            Keys::Uniform => of(Order::Uniform),
            Keys::Zipf(exponent) => of(Order::Zipf(Zipf::new(count, *exponent))),
            Keys::Sequential => of(sequential),
            Keys::Shuffled => Self { shuffle: Some(Shuffle::new(count)), ..of(sequential) },
            Keys::File(path) => {
                let lines = lines(path)?;
                let count = lines.len() as u64;
                Self { lines: Some(Arc::new(lines)), count, ..of(sequential) }
            }
        })
    }

    /// The number of keys.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// The source for one of `threads`.
    pub(super) fn of_thread(&self, thread: usize, threads: usize) -> Self {
        let mut source = self.clone();
        if let Order::Sequential { next, step } = &mut source.order {
            (*next, *step) = (thread as u64, threads as u64);
        }
        source
    }

    /// Writes the next key to `key`.
    pub(super) fn next(&mut self, random: &mut Random, key: &mut Vec<u8>) {
        let index = match &mut self.order {
            Order::Uniform => random.below(self.count),
            Order::Zipf(zipf) => scatter(zipf.draw(random)) % self.count,
            Order::Sequential { next, step } => {
                let index = *next % self.count;
                *next = next.wrapping_add(*step);
                index
            }
        };
        let index = self.shuffle.map_or(index, |shuffle| shuffle.at(index));
        key.clear();
        match &self.lines {
            Some(lines) => key.extend_from_slice(&lines[index as usize]),
            None => generate(index, key),
        }
    }
}

/// `key:` and the number, padded with zeros.
pub(crate) fn generate(index: u64, key: &mut Vec<u8>) {
    key.extend_from_slice(PREFIX);
    key.resize(KEY_LEN, b'0');
    let mut left = index;
    for digit in key[PREFIX.len()..].iter_mut().rev() {
        *digit = b'0' + (left % 10) as u8;
        left /= 10;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn keys(source: &mut KeySource, count: usize) -> Vec<String> {
        let (mut random, mut key) = (Random::new(1), Vec::new());
        let mut next = || {
            source.next(&mut random, &mut key);
            String::from_utf8(key.clone()).unwrap()
        };
        (0..count).map(|_| next()).collect()
    }

    #[test]
    fn generated_keys_have_one_length() {
        let mut key = Vec::new();
        generate(1_234, &mut key);
        assert_eq!(key, b"key:000000001234");
    }

    #[test]
    fn threads_share_a_sequence() {
        let source = KeySource::new(&Keys::Sequential, 4).unwrap();
        let mut seen = keys(&mut source.of_thread(0, 2), 2);
        seen.extend(keys(&mut source.of_thread(1, 2), 2));
        assert_eq!(BTreeSet::from_iter(seen).len(), 4);
        assert_eq!(keys(&mut source.of_thread(0, 1), 5)[4], "key:000000000000");
    }

    #[test]
    fn all_keys_come_up_and_some_more_often() {
        let mut uniform = KeySource::new(&Keys::Uniform, 10).unwrap();
        assert_eq!(BTreeSet::from_iter(keys(&mut uniform, 500)).len(), 10);
        let mut shuffled = KeySource::new(&Keys::Shuffled, 10).unwrap();
        assert_eq!(BTreeSet::from_iter(keys(&mut shuffled, 10)).len(), 10);
        let mut zipf = KeySource::new(&Keys::Zipf(0.99), 1000).unwrap();
        let drawn = keys(&mut zipf, 1000);
        let most = drawn.iter().map(|key| drawn.iter().filter(|other| *other == key).count()).max();
        assert!(most > Some(50), "{most:?}");
    }

    #[test]
    fn keys_from_a_file_are_its_lines() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("keys");
        fs::write(&path, "Shinagawa\r\n\nKawasaki").unwrap();
        let mut source = KeySource::new(&Keys::File(path.clone()), 99).unwrap();
        assert_eq!((source.count(), keys(&mut source, 3)[2].as_str()), (2, "Shinagawa"));
        fs::write(&path, "\n").unwrap();
        let refused = KeySource::new(&Keys::File(path), 99).unwrap_err();
        assert!(matches!(refused, KeysError::Empty { .. }));
        let missing = Keys::File(directory.path().join("none"));
        assert!(matches!(KeySource::new(&missing, 1), Err(KeysError::File { .. })));
    }

    #[test]
    fn distributions_have_names() {
        let parsed = ["uniform", "zipf", "zipf:1.2", "sequential", "shuffled", "file:a:b"]
            .map(|text| text.parse::<Keys>().unwrap());
        let expected = [
            Keys::Uniform,
            Keys::Zipf(0.99),
            Keys::Zipf(1.2),
            Keys::Sequential,
            Keys::Shuffled,
            Keys::File("a:b".into()),
        ];
        assert_eq!(parsed, expected);
        for text in ["", "zipf:", "zipf:0", "zipf:-1", "zipf:NaN", "file", "file:", "uniform:1"] {
            assert!(text.parse::<Keys>().is_err(), "{text}");
        }
    }
}
