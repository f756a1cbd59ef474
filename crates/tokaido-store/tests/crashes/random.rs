//! Random numbers that a seed repeats.

/// SplitMix64, so that a seed says all.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let n = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (n ^ (n >> 31)) as usize % limit
    }
}

/// A number from the environment.
pub(crate) fn env(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// The seed of a run: the one that `TOKAIDO_SEED` gives, or a new one. It is printed.
pub(crate) fn seed() -> u64 {
    let seed = env("TOKAIDO_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    println!("TOKAIDO_SEED={seed}");
    seed
}

/// How many images of a disk a test is to open: `TOKAIDO_POWER_LOSS_IMAGES`, or this many.
pub(crate) fn images_wanted(default: usize) -> usize {
    env("TOKAIDO_POWER_LOSS_IMAGES").map_or(default, |n| n as usize)
}
