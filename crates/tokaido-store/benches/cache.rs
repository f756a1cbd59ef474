//! The cache compared with others: `cargo bench -p tokaido-store --bench cache`, and with
//! `-- hit-ratio`, `-- memory`, `-- threads` or `-- stalls` the tables of docs/cache.md.

use std::{
    hint::black_box,
    thread,
    time::{Duration, Instant},
};

use criterion::{BatchSize, Criterion, Throughput};

#[path = "cache/hit_ratio.rs"]
mod hit_ratio;
#[path = "cache/memory.rs"]
mod memory;
#[path = "cache/policies.rs"]
mod policies;
#[path = "cache/stalls.rs"]
mod stalls;
#[path = "cache/subjects.rs"]
mod subjects;
#[path = "cache/threads.rs"]
mod threads;
#[path = "cache/traces.rs"]
mod traces;

use subjects::Subject;

const RECORDS: u64 = 1_000_000;
const VALUE: [u8; 64] = [b'v'; 64];

/// Keys of records in random order, without the cost of drawing them.
struct Keys {
    keys: Vec<[u8; 16]>,
    next: usize,
}

impl Keys {
    fn new(number: impl FnMut(u64) -> u64) -> Self {
        Self { keys: (0..RECORDS).map(number).map(traces::key).collect(), next: 0 }
    }

    fn next(&mut self) -> [u8; 16] {
        self.next = (self.next + 1) % self.keys.len();
        self.keys[self.next]
    }
}

fn single(c: &mut Criterion) {
    for name in subjects::NAMES {
        let cache = subjects::new(name, RECORDS as usize * 11 / 10);
        (0..RECORDS).for_each(|n| cache.set(&traces::key(n), &VALUE));
        let mut present = Keys::new(|n| traces::scatter(n) % RECORDS);
        let mut absent = Keys::new(|n| RECORDS + n);
        let mut value = Vec::with_capacity(64);
        let hot = traces::key(7);
        let mut group = c.benchmark_group(format!("1 M records of 16 + 64 bytes/{name}"));
        group.bench_function("get, hot key", |b| b.iter(|| cache.get(&hot, &mut value)));
        group.bench_function("get, random keys", |b| {
            b.iter_batched(
                || present.next(),
                |key| cache.get(&key, &mut value),
                BatchSize::SmallInput,
            );
        });
        group.bench_function("get, absent keys", |b| {
            b.iter_batched(
                || absent.next(),
                |key| cache.get(&key, &mut value),
                BatchSize::SmallInput,
            );
        });
        group.bench_function("set, hot key", |b| b.iter(|| cache.set(&hot, black_box(&VALUE))));
        group.bench_function("set, random keys", |b| {
            b.iter_batched(|| present.next(), |key| cache.set(&key, &VALUE), BatchSize::SmallInput);
        });
        let mut n = RECORDS * 2;
        group.bench_function("set, new keys, evicting", |b| {
            b.iter_batched(
                || {
                    n += 1;
                    traces::key(n)
                },
                |key| cache.set(&key, &VALUE),
                BatchSize::SmallInput,
            );
        });
        group.finish();
    }
}

/// Nine reads to a write, with keys by Zipf 0.99 from ten times as many as there is room for.
fn mixed(c: &mut Criterion) {
    const ROOM: usize = 500_000;
    let mut group = c.benchmark_group("90 % get, 10 % set, Zipf 0.99");
    group.throughput(Throughput::Elements(1)).sample_size(20);
    let traces: Vec<Vec<[u8; 16]>> = (0..2)
        .map(|seed| {
            let mut zipf = traces::Zipf::new(ROOM * 10, 0.99, seed);
            (0..RECORDS).map(|_| traces::key(zipf.draw())).collect()
        })
        .collect();
    for name in subjects::NAMES {
        for threads in [1, 2] {
            let cache = subjects::new(name, ROOM);
            traces[0].iter().for_each(|key| cache.set(key, &VALUE));
            group.bench_function(format!("{name}, {threads} thread(s)"), |b| {
                b.iter_custom(|operations| run(&*cache, &traces[..threads], operations));
            });
        }
    }
    group.finish();
}

/// The time that the threads together take for `operations`.
fn run(cache: &dyn Subject, traces: &[Vec<[u8; 16]>], operations: u64) -> Duration {
    let each = operations as usize / traces.len() + 1;
    let start = Instant::now();
    thread::scope(|scope| {
        for trace in traces {
            scope.spawn(move || {
                let mut value = Vec::with_capacity(64);
                for (i, key) in trace.iter().cycle().take(each).enumerate() {
                    if i % 10 == 0 {
                        cache.set(key, &VALUE);
                    } else {
                        black_box(cache.get(key, &mut value));
                    }
                }
            });
        }
    });
    start.elapsed()
}

fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["hit-ratio", ..] => hit_ratio::print(),
        ["memory", ..] => memory::print(),
        ["threads", ..] => threads::print(),
        ["stalls", ..] => stalls::print(),
        ["memory-of", name] => memory::print_one(name),
        _ => {
            let mut criterion = Criterion::default().configure_from_args();
            single(&mut criterion);
            mixed(&mut criterion);
            criterion.final_summary();
        }
    }
}
