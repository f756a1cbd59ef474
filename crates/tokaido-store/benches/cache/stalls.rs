//! `cargo bench -p tokaido-store --bench cache -- stalls`: how long the slowest insertions take.

use std::time::Instant;

use tokaido_store::{
    NewRecord,
    cache::{Cache, Options},
};

use crate::traces;

const INSERTIONS: u64 = 5_000_000;
/// After each insertion, so many earlier records are read again, which makes drains keep them.
const USED_AGAIN: u64 = 3;

/// Sets new keys in a cache of 256 MiB, from empty until long after it is full.
pub(crate) fn print() {
    println!("| insertions | p50, ns | p99 | p99.9 | p99.99 | longest |");
    println!("|---|---|---|---|---|---|");
    for (what, is_used) in [("of what nobody reads", false), ("of what is read again", true)] {
        let options = Options { bytes_max: 256 << 20, ..Options::default() };
        let cache = Cache::new(options).unwrap();
        let mut value = Vec::new();
        let mut took_ns: Vec<u64> = (0..INSERTIONS)
            .map(|n| {
                let key = traces::key(n);
                let start = Instant::now();
                cache.set(&key, NewRecord::of(&[b'v'; 64])).unwrap();
                let took = start.elapsed();
                if is_used {
                    for back in 0..USED_AGAIN {
                        let key = traces::key(traces::scatter(n + back) % (n + 1));
                        cache.get(&key, &mut value).unwrap();
                    }
                }
                took.as_nanos() as u64
            })
            .collect();
        took_ns.sort_unstable();
        let at = |part: f64| took_ns[((INSERTIONS - 1) as f64 * part) as usize];
        let [p50, p99, p999, p9999, longest] = [0.5, 0.99, 0.999, 0.9999, 1.0].map(at);
        println!("| {what} | {p50} | {p99} | {p999} | {p9999} | {longest} |");
    }
}
