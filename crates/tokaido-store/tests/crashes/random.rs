//! Random numbers, and the settings of a run from the environment.

#[path = "../common/random.rs"]
mod generator;

pub(crate) use generator::Random;

/// A number from the environment.
pub(crate) fn env(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// The seed of a run: the one in `TOKAIDO_SEED`, or a new one. It is printed.
pub(crate) fn seed() -> u64 {
    let seed = env("TOKAIDO_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    println!("TOKAIDO_SEED={seed}");
    seed
}

/// How many disk images a test has to open: `TOKAIDO_POWER_LOSS_IMAGES`, or `default`.
pub(crate) fn images_wanted(default: usize) -> usize {
    env("TOKAIDO_POWER_LOSS_IMAGES").map_or(default, |n| n as usize)
}
