//! Inputs for checks that take arbitrary bytes, without a fuzzer: the corpus that the fuzz targets
//! begin with, and mutations of it that a seed reproduces.

use std::{fs, path::Path};

#[path = "../common/random.rs"]
mod random;

use random::Random;

/// Passes every file of `fuzz/corpus/TARGET` to `check`, and then `count` mutated ones.
pub(crate) fn smoke(target: &str, count: usize, mut check: impl FnMut(&[u8])) {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut corpus: Vec<Vec<u8>> = fs::read_dir(&place)
        .unwrap_or_else(|error| panic!("{}: {error}", place.display()))
        .map(|entry| fs::read(entry.unwrap().path()).unwrap())
        .collect();
    // Directories are not always read in the same order.
    corpus.sort();
    assert!(!corpus.is_empty(), "{} is empty", place.display());
    corpus.iter().for_each(|input| check(input));
    let seed = std::env::var("TOKAIDO_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(53);
    let mut random = Random::new(seed);
    // Miri is some hundred times slower.
    for _ in 0..if cfg!(miri) { count / 500 } else { count } {
        let mut input = corpus[random.below(corpus.len())].clone();
        for _ in 0..=random.below(5) {
            change(&mut random, &mut input, &corpus);
        }
        check(&input);
    }
}

/// Edge cases of numbers.
const EDGES: [u64; 10] =
    [0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0xffff, 0x7fff_ffff, 0xffff_ffff, u64::MAX];

fn change(random: &mut Random, input: &mut Vec<u8>, corpus: &[Vec<u8>]) {
    let at = random.below(input.len() + 1);
    match random.below(6) {
        0 if at < input.len() => input[at] ^= 1 << random.below(8),
        1 if at < input.len() => input[at] = random.below(256) as u8,
        2 => {
            let number = EDGES[random.below(EDGES.len())].to_le_bytes();
            let len = [1, 2, 4, 8][random.below(4)].min(input.len() - at);
            input[at..at + len].copy_from_slice(&number[..len]);
        }
        3 => input.truncate(at),
        4 => input.insert(at, random.below(256) as u8),
        // Inserts a part of another input.
        _ => {
            let other = &corpus[random.below(corpus.len())];
            let from = random.below(other.len() + 1);
            let part = &other[from..];
            let len = random.below(part.len() + 1);
            input.splice(at..at, part[..len].iter().copied());
        }
    }
}
