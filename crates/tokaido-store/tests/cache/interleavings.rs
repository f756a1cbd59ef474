//! Runs under shuttle, which tries many thread schedules: `SHUTTLE_RANDOM_SEED=n` repeats one.
//!
//! Threads share only locks, so what may go wrong is an operation with two critical sections, and
//! a lock that is taken while another is held.

use std::sync::Arc;

use shuttle::{check_random, thread};
use tokaido_store::{
    DatabaseId, IncrementError, NewRecord, ReadTransaction, WriteError, WriteOperations,
    WriteTransaction,
    cache::{Cache, CacheTransaction, CasOutcome, Cursor, ScanPage},
};

use crate::support::{TestClock, cache, clocked_cache, get};

const RUNS: usize = 1_000;

fn run(thread: impl Fn(&Cache, u8) + Send + Sync + 'static, cache: &Arc<Cache>) {
    let thread = Arc::new(thread);
    let threads: Vec<_> = (0..3)
        .map(|n| {
            let (thread, cache) = (Arc::clone(&thread), Arc::clone(cache));
            thread::spawn(move || thread(&cache, n))
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn read_modify_write_is_one_step() {
    let body = || {
        let cache = Arc::new(cache(64 << 10, 1));
        cache.set(b"text", NewRecord::of(b"")).unwrap();
        run(
            |cache, n| {
                cache.increment_signed(b"count", 1).unwrap();
                cache.append(b"text", &[n]).unwrap();
                cache.add(b"once", NewRecord::of(&[n])).unwrap();
            },
            &cache,
        );
        assert_eq!(get(&cache, b"count").unwrap().0, b"3");
        let mut text = get(&cache, b"text").unwrap().0;
        text.sort_unstable();
        assert_eq!(text, [0, 1, 2]);
    };
    check_random(body, RUNS);
}

/// Commands that read and then write, without a lock in between.
#[test]
fn commands_that_read_and_then_write_lose_nothing() {
    const INCREMENTS: usize = 6;
    let body = || {
        let cache = Arc::new(cache(64 << 10, 1));
        run(
            |cache, n| {
                let id = DatabaseId::from_mount(0);
                // Often enough that some lose repeatedly, and take the turn.
                for _ in 0..INCREMENTS {
                    let more = |tx: &mut CacheTransaction<'_>| tx.increment(id, b"n", 1);
                    cache.transact::<_, IncrementError>(id, more).unwrap();
                }
                cache.transact::<_, WriteError>(id, |tx| tx.append(id, b"text", &[n])).unwrap();
                let once = cache.transact::<_, WriteError>(id, |tx| {
                    let is_absent = tx.get(id, b"once")?.is_none();
                    if is_absent {
                        tx.put(id, b"once", NewRecord::of(&[n]))?;
                    }
                    Ok(is_absent)
                });
                if once.unwrap() {
                    cache.increment_signed(b"firsts", 1).unwrap();
                }
            },
            &cache,
        );
        assert_eq!(get(&cache, b"n").unwrap().0, (3 * INCREMENTS).to_string().as_bytes());
        assert_eq!(get(&cache, b"firsts").unwrap().0, b"1");
        assert_eq!(get(&cache, b"text").unwrap().0.len(), 3);
    };
    check_random(body, RUNS);
}

#[test]
fn of_those_that_compare_and_set_from_one_version_one_wins() {
    let body = || {
        let cache = Arc::new(cache(64 << 10, 1));
        let version = cache.set(b"k", NewRecord::of(b"0")).unwrap();
        let wins = Arc::new(shuttle::sync::atomic::AtomicUsize::new(0));
        let counted = Arc::clone(&wins);
        run(
            move |cache, n| {
                let outcome = cache.cas(b"k", version, NewRecord::of(&[n])).unwrap();
                if matches!(outcome, CasOutcome::Stored(_)) {
                    counted.fetch_add(1, shuttle::sync::atomic::Ordering::SeqCst);
                }
            },
            &cache,
        );
        assert_eq!(wins.load(shuttle::sync::atomic::Ordering::SeqCst), 1);
    };
    check_random(body, RUNS);
}

#[test]
fn calls_over_all_shards_neither_block_nor_break_the_others() {
    let body = || {
        let clock = TestClock::at(1_000);
        let cache = Arc::new(clocked_cache(256 << 10, 4, clock));
        run(
            |cache, n| match n {
                0 => {
                    for key in 0..4u8 {
                        cache.set(&[key], NewRecord::of(&[key; 2_000])).unwrap();
                    }
                }
                1 => {
                    cache.flush_all(0);
                    cache.remove_expired(100);
                    assert!(cache.statistics().bytes_used <= 256 << 10);
                }
                _ => {
                    let (mut cursor, mut page) = (Some(Cursor::default()), ScanPage::default());
                    while let Some(at) = cursor {
                        cursor = cache.scan(at, 100, &mut page);
                        for entry in page.entries() {
                            assert_eq!(entry.record.value, [entry.key[0]; 2_000]);
                        }
                    }
                }
            },
            &cache,
        );
        for key in 0..4u8 {
            let found = get(&cache, &[key]);
            assert!(found.is_none_or(|(value, _)| value == [key; 2_000]));
        }
    };
    check_random(body, RUNS);
}
