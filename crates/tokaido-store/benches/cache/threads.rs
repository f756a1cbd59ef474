//! `cargo bench -p tokaido-store --bench cache -- threads`: whether threads slow each other down.
//!
//! Besides the wall clock, which other work on the machine distorts, it measures the processor
//! time of each thread. And besides two threads on one cache, it runs two with a cache each: what
//! these lose is due to the machine and not to the cache.

use std::{thread, time::Instant};

use crate::{
    VALUE,
    subjects::{self, Subject},
    traces,
};

const ROOM: usize = 500_000;
const OPERATIONS: usize = 2_000_000;
const ROUNDS: usize = 7;

/// Processor time of this thread.
fn thread_time_ns() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the clock exists, and `time` is a valid place for the result.
    let code = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    assert_eq!(code, 0);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// Nine reads to a write; returns the processor time of one operation.
fn work(cache: &dyn Subject, keys: &[[u8; 16]]) -> f64 {
    let mut value = Vec::with_capacity(VALUE.len());
    let start_ns = thread_time_ns();
    for (i, key) in keys.iter().enumerate() {
        if i % 10 == 0 {
            cache.set(key, &VALUE);
        } else {
            cache.get(key, &mut value);
        }
    }
    (thread_time_ns() - start_ns) / keys.len() as f64
}

/// Runs a thread for each trace; returns processor time and wall time of one operation, in ns.
fn run(caches: &[&dyn Subject], traces: &[Vec<[u8; 16]>]) -> (f64, f64) {
    let start = Instant::now();
    let times: Vec<f64> = thread::scope(|scope| {
        let jobs = caches.iter().zip(traces);
        let threads: Vec<_> =
            jobs.map(|(cache, keys)| scope.spawn(move || work(*cache, keys))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let operations = (OPERATIONS * caches.len()) as f64;
    let mean = times.iter().sum::<f64>() / times.len() as f64;
    (mean, start.elapsed().as_nanos() as f64 / operations)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

pub(crate) fn print() {
    let traces: Vec<Vec<_>> = (0..2)
        .map(|seed| {
            let mut zipf = traces::Zipf::new(ROOM * 10, 0.99, seed);
            (0..OPERATIONS).map(|_| traces::key(zipf.draw())).collect()
        })
        .collect();
    println!("ns per operation, median of {ROUNDS}: processor time of a thread / wall time of all");
    println!("| cache | 1 thread | 2 threads | 2 threads with a cache each |");
    println!("|---|---|---|---|");
    for name in ["tokaido", "quick_cache"] {
        let caches = [subjects::new(name, ROOM), subjects::new(name, ROOM)];
        let [a, b] = [&*caches[0], &*caches[1]];
        for cache in [a, b] {
            work(cache, &traces[0]);
        }
        let rounds: Vec<_> =
            (0..ROUNDS).map(|_| [&[a][..], &[a, a], &[a, b]].map(|c| run(c, &traces))).collect();
        print!("| {name} |");
        for column in 0..3 {
            let processor = median(rounds.iter().map(|round| round[column].0).collect());
            let wall = median(rounds.iter().map(|round| round[column].1).collect());
            print!(" {processor:.0} / {wall:.0} |");
        }
        println!();
    }
}
