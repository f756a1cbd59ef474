//! `cargo bench -p tokaido-store --bench cache -- hit-ratio`: the table of docs/cache.md.

use tokaido_store::cache::{Cache, Options};

use crate::{
    policies::{Lru, Memcached, Policy},
    traces,
};

const BYTES_MAX: usize = 8 << 20;
/// Bytes that memcached 1.6 uses for such a record, by its RSS with a million of them.
const MEMCACHED_RECORD_BYTES: usize = 161;

fn tokaido() -> (Cache, Vec<u8>) {
    let options = Options { bytes_max: BYTES_MAX, ..Options::default() };
    (Cache::new(options).unwrap(), Vec::new())
}

/// How many records of 16 + 64 bytes fit. Every other policy gets room for as many.
fn capacity() -> usize {
    let mut cache = tokaido();
    (0..1_000_000).for_each(|n| assert!(!cache.access(n)));
    cache.0.statistics().records as usize
}

/// The percentage of hits after the first quarter.
fn hits(policy: &mut dyn Policy, trace: &[u64]) -> f64 {
    let (first, rest) = trace.split_at(trace.len() / 4);
    first.iter().for_each(|&key| {
        policy.access(key);
    });
    let hits = rest.iter().filter(|&&key| policy.access(key)).count();
    100.0 * hits as f64 / rest.len() as f64
}

pub(crate) fn print() {
    let capacity = capacity();
    let in_same_bytes = BYTES_MAX / MEMCACHED_RECORD_BYTES;
    println!("{capacity} records of 16 + 64 bytes; the last column has {in_same_bytes}\n");
    println!(
        "| trace | tokaido | LRU | memcached's LRU | quick_cache | moka | memcached's LRU in as many bytes |"
    );
    println!("|---|---|---|---|---|---|---|");
    for (name, trace) in traces::all(capacity) {
        let policies: [Box<dyn Policy>; 6] = [
            Box::new(tokaido()),
            Box::new(Lru::new(capacity)),
            Box::new(Memcached::new(capacity)),
            Box::new(quick_cache::sync::Cache::<u64, ()>::new(capacity)),
            Box::new(moka::sync::Cache::<u64, ()>::new(capacity as u64)),
            Box::new(Memcached::new(in_same_bytes)),
        ];
        print!("| {name} |");
        for mut policy in policies {
            print!(" {:.1} |", hits(&mut *policy, &trace));
        }
        println!();
    }
}
