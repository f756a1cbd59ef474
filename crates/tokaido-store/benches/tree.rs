//! The tree engine in process: `cargo bench -p tokaido-store`.

use std::{
    hint::black_box,
    ops::{ControlFlow, Range},
};

use criterion::{
    BatchSize, BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main,
    measurement::WallTime,
};
use tokaido_store::{
    DatabaseId, Direction, NewRecord, ScanRange, Scanner, Snapshot, Store, WriteError,
    WriteTransaction, Writer, transact, tree,
};

const KEYS: usize = 100_000;
const MANY_KEYS: u64 = 1_000_000;

struct Bench {
    _directory: tempfile::TempDir,
    store: tree::TreeStore,
    main: DatabaseId,
}

fn open() -> Bench {
    open_with(tree::Options::default())
}

fn open_with(options: tree::Options) -> Bench {
    let directory = tempfile::tempdir().unwrap();
    let store = tree::open(directory.path(), options).unwrap();
    let main = store.database("main").unwrap();
    Bench { _directory: directory, store, main }
}

/// Spreads numbers over 64 bits, for keys in random order (the finaliser of SplitMix64).
fn scatter(n: u64) -> u64 {
    let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ (n >> 31)
}

fn random_key(n: u64) -> [u8; 16] {
    let mut key = [0; 16];
    for (byte, digit) in key.iter_mut().zip(format!("{:016x}", scatter(n)).bytes()) {
        *byte = digit;
    }
    key
}

/// The article's pattern "order": every key is set, got and removed in one transaction.
fn order(tx: &mut dyn WriteTransaction, main: DatabaseId) -> Result<(), WriteError> {
    let mut digits = itoa::Buffer::new();
    for i in 0..KEYS {
        let key = digits.format(i).as_bytes();
        tx.put(main, key, NewRecord::of(key))?;
    }
    for i in 0..KEYS {
        black_box(tx.get(main, digits.format(i).as_bytes())?);
    }
    for i in 0..KEYS {
        tx.delete(main, digits.format(i).as_bytes())?;
    }
    Ok(())
}

fn patterns(c: &mut Criterion) {
    let bench = open();
    let mut writer = bench.store.writer().unwrap();
    let mut group = c.benchmark_group("patterns");
    group.sample_size(10).throughput(Throughput::Elements(3 * KEYS as u64));
    group.bench_function("order, 100,000 keys, one transaction with commit", |b| {
        b.iter(|| transact(&mut *writer, |tx| order(tx, bench.main)).unwrap());
    });
    group.finish();
}

fn put_range(
    tx: &mut dyn WriteTransaction,
    main: DatabaseId,
    mut numbers: Range<u64>,
) -> Result<(), WriteError> {
    numbers.try_for_each(|n| tx.put(main, &random_key(n), NewRecord::of(&[b'v'; 64])))
}

fn fill(writer: &mut dyn Writer, main: DatabaseId) {
    for first in (0..MANY_KEYS).step_by(50_000) {
        transact(writer, |tx| put_range(tx, main, first..first + 50_000)).unwrap();
    }
}

fn reads(c: &mut Criterion) {
    let bench = open();
    fill(&mut *bench.store.writer().unwrap(), bench.main);
    let mut snapshot = bench.store.snapshot().unwrap();
    let hot = random_key(7);
    let mut group = c.benchmark_group("1 M records of 16 + 64 bytes");
    group.bench_function("get, hot key", |b| {
        b.iter(|| black_box(snapshot.get(bench.main, &hot).unwrap()).is_some());
    });
    let mut n = 0;
    group.bench_function("get, random keys", |b| {
        b.iter_batched(
            || {
                n = (n + 1) % MANY_KEYS;
                random_key(scatter(n) % MANY_KEYS)
            },
            |key| black_box(snapshot.get(bench.main, &key).unwrap()).is_some(),
            BatchSize::SmallInput,
        );
    });
    group.bench_function("renew and get, hot key", |b| {
        b.iter(|| {
            snapshot.renew().unwrap();
            black_box(snapshot.get(bench.main, &hot).unwrap()).is_some()
        });
    });
    group.sample_size(10).throughput(Throughput::Elements(MANY_KEYS));
    scans(&mut group, "partly in the memtable", &mut *snapshot, bench.main);
    group.finish();
}

/// Scans of a store that has been checkpointed completely.
fn base_scans(c: &mut Criterion) {
    let bench = open();
    fill(&mut *bench.store.writer().unwrap(), bench.main);
    bench.store.checkpoint().unwrap();
    let mut group = c.benchmark_group("1 M records of 16 + 64 bytes");
    group.sample_size(10).throughput(Throughput::Elements(MANY_KEYS));
    scans(&mut group, "in the base", &mut *bench.store.snapshot().unwrap(), bench.main);
    group.finish();
}

fn scans(
    group: &mut BenchmarkGroup<'_, WallTime>,
    place: &str,
    snapshot: &mut dyn Snapshot,
    main: DatabaseId,
) {
    for direction in [Direction::Forward, Direction::Backward] {
        group.bench_function(format!("scan {direction:?} {place}, per record"), |b| {
            b.iter(|| {
                let mut records = 0;
                scanner(main, direction)
                    .visit(&mut *snapshot, |entry| {
                        records += u64::from(black_box(entry).record.value.len() == 64);
                        ControlFlow::Continue(())
                    })
                    .unwrap();
                assert_eq!(records, MANY_KEYS);
            });
        });
        group.bench_function(format!("steps {direction:?} {place}, per record"), |b| {
            b.iter(|| {
                let mut scanner = scanner(main, direction);
                let mut records = 0;
                while scanner.next(&mut *snapshot).unwrap().is_some() {
                    records += 1;
                }
                assert_eq!(records, MANY_KEYS);
            });
        });
    }
}

fn scanner(main: DatabaseId, direction: Direction) -> Scanner {
    Scanner::new(main, ScanRange { direction, ..ScanRange::all() }, usize::MAX)
}

/// Small transactions in random order, more of them than fit into the memtable, so that
/// checkpoints are included.
fn random_puts(c: &mut Criterion) {
    let mut group = c.benchmark_group("1 M random puts, 50 a transaction");
    group.sample_size(10).throughput(Throughput::Elements(MANY_KEYS));
    group.bench_function("sync os, per record", |b| {
        b.iter_batched(
            || open_with(tree::Options { sync: tree::SyncMode::Os, ..tree::Options::default() }),
            |bench| {
                let mut writer = bench.store.writer().unwrap();
                for first in (0..MANY_KEYS).step_by(50) {
                    transact(&mut *writer, |tx| put_range(tx, bench.main, first..first + 50))
                        .unwrap();
                }
                drop(writer);
                bench
            },
            BatchSize::PerIteration,
        );
    });
    group.finish();
}

fn commits(c: &mut Criterion) {
    let bench = open();
    let mut writer = bench.store.writer().unwrap();
    let mut group = c.benchmark_group("durable commits");
    group.sample_size(20);
    for transactions in [1u64, 64] {
        group.throughput(Throughput::Elements(transactions));
        let mut n = 0;
        group.bench_function(format!("{transactions} transactions a sync"), |b| {
            b.iter(|| {
                for _ in 0..transactions {
                    n += 1;
                    let tx = writer.begin().unwrap();
                    tx.put(bench.main, &random_key(n % 10_000), NewRecord::of(&[b'v'; 64]))
                        .unwrap();
                    writer.commit().unwrap();
                }
                writer.flush().unwrap();
            });
        });
    }
    group.finish();
}

criterion_group!(benches, patterns, reads, base_scans, random_puts, commits);
criterion_main!(benches);
