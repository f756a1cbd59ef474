//! Inputs for what takes any bytes, without a fuzzer: the corpus that the fuzz targets begin with,
//! and changes of it that a seed repeats.

use std::{fs, path::Path};

/// Gives `check` every file of `fuzz/corpus/TARGET`, and then `count` changed ones.
pub(crate) fn smoke(target: &str, count: usize, mut check: impl FnMut(&[u8])) {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut corpus: Vec<Vec<u8>> = fs::read_dir(&place)
        .unwrap_or_else(|error| panic!("{}: {error}", place.display()))
        .map(|entry| fs::read(entry.unwrap().path()).unwrap())
        .collect();
    // The order in which a directory is read is not always the same.
    corpus.sort();
    assert!(!corpus.is_empty(), "{} is empty", place.display());
    corpus.iter().for_each(|input| check(input));
    let seed = std::env::var("TOKAIDO_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(53);
    let mut random = Random(seed);
    // Miri is some hundred times slower.
    for _ in 0..if cfg!(miri) { count / 500 } else { count } {
        let mut input = corpus[random.below(corpus.len())].clone();
        for _ in 0..=random.below(5) {
            random.change(&mut input, &corpus);
        }
        check(&input);
    }
}

/// SplitMix64.
struct Random(u64);

/// Numbers at the edge of something.
const EDGES: [u64; 10] =
    [0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0xffff, 0x7fff_ffff, 0xffff_ffff, u64::MAX];

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let n = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (n ^ (n >> 31)) as usize % limit
    }

    fn change(&mut self, input: &mut Vec<u8>, corpus: &[Vec<u8>]) {
        let at = self.below(input.len() + 1);
        match self.below(6) {
            0 if at < input.len() => input[at] ^= 1 << self.below(8),
            1 if at < input.len() => input[at] = self.below(256) as u8,
            2 => {
                let number = EDGES[self.below(EDGES.len())].to_le_bytes();
                let len = [1, 2, 4, 8][self.below(4)].min(input.len() - at);
                input[at..at + len].copy_from_slice(&number[..len]);
            }
            3 => input.truncate(at),
            4 => input.insert(at, self.below(256) as u8),
            // A part of another input goes in.
            _ => {
                let other = &corpus[self.below(corpus.len())];
                let from = self.below(other.len() + 1);
                let part = &other[from..];
                let len = self.below(part.len() + 1);
                input.splice(at..at, part[..len].iter().copied());
            }
        }
    }
}
