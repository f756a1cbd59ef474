//! The cache in a program of one's own: `cargo run -p tokaido-store --example cache`.
//!
//! A function that is slow keeps what it worked out in a cache of 8 MiB, for a minute at most.

use std::{error::Error, io::Write};

use tokaido_store::{
    Clock, NewRecord, SystemClock,
    cache::{Cache, Options},
};

const TTL_MS: u64 = 60_000;

/// The length of the way from `n` to 1 by halving what is even and making 3n + 1 of what is odd.
fn steps(mut n: u64) -> u64 {
    let mut steps = 0;
    while n != 1 {
        n = if n.is_multiple_of(2) { n / 2 } else { 3 * n + 1 };
        steps += 1;
    }
    steps
}

/// The answer, and whether it came out of the cache. `buffer` is used again for every read.
fn ask(cache: &Cache, n: u64, buffer: &mut Vec<u8>) -> Result<(u64, bool), Box<dyn Error>> {
    let key = n.to_string();
    if cache.get(key.as_bytes(), buffer)?.is_some() {
        return Ok((std::str::from_utf8(buffer)?.parse()?, true));
    }
    let answer = steps(n);
    let text = answer.to_string();
    let record = NewRecord::of(text.as_bytes()).expiring(Some(SystemClock.now_ms() + TTL_MS));
    cache.set(key.as_bytes(), record)?;
    Ok((answer, false))
}

fn run(out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let cache = Cache::new(Options { bytes_max: 8 << 20, ..Options::default() })?;
    let mut buffer = Vec::new();
    for n in [27, 97, 27] {
        let (answer, was_cached) = ask(&cache, n, &mut buffer)?;
        writeln!(out, "{n}: {answer} steps{}", if was_cached { ", from the cache" } else { "" })?;
    }

    // However much is put in, it keeps to its bytes.
    for n in 0..50_000_u32 {
        cache.set(&n.to_le_bytes(), NewRecord::of(&[b'x'; 1000]))?;
    }
    let statistics = cache.statistics();
    writeln!(out, "within its bounds: {}", statistics.bytes_used <= statistics.bytes_max)?;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    run(&mut std::io::stdout())
}

#[test]
fn it_prints_what_it_should() {
    let mut out = Vec::new();
    run(&mut out).unwrap();
    let expected =
        "27: 111 steps\n97: 118 steps\n27: 111 steps, from the cache\nwithin its bounds: true\n";
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}
