//! Which values are written.

use std::{path::PathBuf, str::FromStr, sync::Arc};

use super::keys::{KeysError, lines};
use crate::random::{Random, Zipf};

/// Maximum length of a value, in bytes.
const LEN_MAX: usize = 64 << 20;

/// Number of random bytes beyond the longest value, so that values differ.
const POOL_LEN: usize = 64 << 10;

/// The bytes that values consist of: 64 of them, so that they look random to a compressor.
const ALPHABET: &[u8; 64] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";

/// The exponent of lengths with a Zipf distribution.
const EXPONENT: f64 = 0.99;

/// The lengths and contents of values.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Random texts of one length.
    Fixed(usize),
    /// Random texts whose lengths are uniformly distributed between the two.
    Uniform(usize, usize),
    /// Random texts whose lengths are between the two, most of them short.
    Zipf(usize, usize),
    /// The lines of a file, in order, over and over.
    File(PathBuf),
}

/// The text does not describe values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("values are LENGTH, MIN-MAX, zipf:MIN-MAX, in bytes and up to {LEN_MAX}, or file:PATH")]
pub struct ValuesError;

impl FromStr for Values {
    type Err = ValuesError;

    fn from_str(text: &str) -> Result<Self, ValuesError> {
        if let Some(path) = text.strip_prefix("file:").filter(|path| !path.is_empty()) {
            return Ok(Self::File(path.into()));
        }
        let range = |text: &str| {
            let (min, max) = text.split_once('-').ok_or(ValuesError)?;
            let (min, max) = (length(min)?, length(max)?);
            if min <= max { Ok((min, max)) } else { Err(ValuesError) }
        };
        if let Some(rest) = text.strip_prefix("zipf:") {
            return range(rest).map(|(min, max)| Self::Zipf(min, max));
        }
        if text.contains('-') {
            return range(text).map(|(min, max)| Self::Uniform(min, max));
        }
        length(text).map(Self::Fixed)
    }
}

fn length(text: &str) -> Result<usize, ValuesError> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let length = is_number.then(|| text.parse().ok()).flatten();
    length.filter(|length| *length <= LEN_MAX).ok_or(ValuesError)
}

/// Where the values of one thread come from. Threads share large data.
#[derive(Clone, Debug)]
pub(super) struct ValueSource {
    lengths: Lengths,
    /// Random bytes, of which values are slices.
    pool: Arc<Vec<u8>>,
}

#[derive(Clone, Debug)]
enum Lengths {
    Uniform(usize, usize),
    Zipf(usize, Zipf),
    Lines(Arc<Vec<Vec<u8>>>, usize),
}

impl ValueSource {
    pub(super) fn new(values: &Values, seed: u64) -> Result<Self, KeysError> {
        let (lengths, longest) = match values {
            Values::Fixed(len) => (Lengths::Uniform(*len, *len), *len),
            Values::Uniform(min, max) => (Lengths::Uniform(*min, *max), *max),
            Values::Zipf(min, max) => {
                let count = (max - min + 1) as u64;
                (Lengths::Zipf(*min, Zipf::new(count, EXPONENT)), *max)
            }
            Values::File(path) => (Lengths::Lines(Arc::new(lines(path)?), 0), 0),
        };
        let mut random = Random::new(seed);
        let letter = |_| ALPHABET[random.below(ALPHABET.len() as u64) as usize];
        let pool = (0..longest + POOL_LEN).map(letter).collect();
        Ok(Self { lengths, pool: Arc::new(pool) })
    }

    /// The next value.
    pub(super) fn next(&mut self, random: &mut Random) -> &[u8] {
        let len = match &mut self.lengths {
            Lengths::Uniform(min, max) => *min + random.below((*max - *min + 1) as u64) as usize,
            Lengths::Zipf(min, zipf) => *min + zipf.draw(random) as usize - 1,
            Lengths::Lines(lines, next) => {
                let line = *next % lines.len();
                *next = line + 1;
                return &lines[line];
            }
        };
        let begin = random.below(POOL_LEN as u64) as usize;
        &self.pool[begin..begin + len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(text: &str, count: usize) -> Vec<usize> {
        let mut source = ValueSource::new(&text.parse().unwrap(), 1).unwrap();
        let mut random = Random::new(2);
        (0..count).map(|_| source.next(&mut random).len()).collect()
    }

    #[test]
    fn values_have_the_lengths_that_were_asked_for() {
        assert!(lengths("64", 100).iter().all(|len| *len == 64));
        assert!(lengths("0", 3).iter().all(|len| *len == 0));
        let uniform = lengths("10-20", 5_000);
        assert_eq!((uniform.iter().min(), uniform.iter().max()), (Some(&10), Some(&20)));
        let zipf = lengths("zipf:10-1000", 5_000);
        assert!(zipf.iter().all(|len| (10..=1000).contains(len)));
        let short = zipf.iter().filter(|len| **len < 100).count();
        assert!(short > 2_500, "{short}");
    }

    #[test]
    fn values_differ() {
        let mut source = ValueSource::new(&Values::Fixed(32), 1).unwrap();
        let mut random = Random::new(2);
        assert_ne!(source.next(&mut random).to_vec(), source.next(&mut random).to_vec());
    }

    #[test]
    fn what_says_no_values_is_refused() {
        for text in ["", "x", "-", "1-", "20-10", "+5", "67108865", "zipf:5", "file:"] {
            assert_eq!(text.parse::<Values>(), Err(ValuesError), "{text}");
        }
        assert_eq!("67108864".parse(), Ok(Values::Fixed(LEN_MAX)));
    }
}
