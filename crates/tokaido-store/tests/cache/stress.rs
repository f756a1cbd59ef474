//! Many threads at once, with no scheduler controlling them.

use std::{sync::atomic::Ordering, thread};

use std::sync::atomic::AtomicU64;

use tokaido_store::{
    NewRecord,
    cache::{CasOutcome, Cursor, ScanPage},
};

use crate::support::{cache, get};

const THREADS: u64 = 4;

#[test]
fn no_increment_is_lost_while_others_evict() {
    const ROUNDS: u64 = 20_000;
    let cache = cache(4 << 20, 4);
    cache.set(b"unsigned", NewRecord::of(b"0")).unwrap();
    cache.set(b"cas", NewRecord::of(b"0")).unwrap();
    let cas_done = AtomicU64::new(0);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (cache, cas_done) = (&cache, &cas_done);
            scope.spawn(move || {
                let mut value = Vec::new();
                for n in 0..ROUNDS {
                    cache.increment(b"unsigned", 1).unwrap().unwrap();
                    cache.increment_signed(b"signed", 1).unwrap();
                    let found = cache.get(b"cas", &mut value).unwrap().unwrap();
                    let next: u64 = std::str::from_utf8(&value).unwrap().parse().unwrap();
                    let next = (next + 1).to_string();
                    let outcome = cache.cas(b"cas", found.version, NewRecord::of(next.as_bytes()));
                    if matches!(outcome, Ok(CasOutcome::Stored(_))) {
                        cas_done.fetch_add(1, Ordering::Relaxed);
                    }
                    let passing = [thread, n].map(u64::to_le_bytes).concat();
                    cache.set(&passing, NewRecord::of(&[0; 100])).unwrap();
                }
            });
        }
    });
    let total = (THREADS * ROUNDS).to_string();
    assert_eq!(get(&cache, b"unsigned").unwrap().0, total.as_bytes());
    assert_eq!(get(&cache, b"signed").unwrap().0, total.as_bytes());
    let cas_done = cas_done.into_inner().to_string();
    assert_eq!(get(&cache, b"cas").unwrap().0, cas_done.as_bytes());
    assert!(cache.statistics().evicted > 0);
}

#[test]
fn a_value_is_never_seen_torn() {
    let cache = cache(256 << 10, 2);
    let value_of = |n: u64| vec![n as u8; 8 + (n as usize * 37) % 3_000];
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let cache = &cache;
            scope.spawn(move || {
                let (mut value, mut page) = (Vec::new(), ScanPage::default());
                let mut cursor = Cursor::default();
                for n in 0..20_000u64 {
                    let key = (n * 7919 + thread * 31) % 300;
                    match n % 5 {
                        0 | 1 => {
                            let new = value_of(n + thread);
                            cache.set(&key.to_le_bytes(), NewRecord::of(&new)).unwrap();
                        }
                        2 if n % 100 == 2 => {
                            cursor = cache.scan(cursor, 50, &mut page).unwrap_or_default();
                            for entry in page.entries() {
                                let value = entry.record.value;
                                assert!(value.iter().all(|byte| *byte == value[0]));
                            }
                        }
                        2 if n % 5_000 == 7 => cache.flush_all(0),
                        3 => {
                            cache.delete(&key.to_le_bytes()).unwrap();
                        }
                        _ => {
                            if cache.get(&key.to_le_bytes(), &mut value).unwrap().is_some() {
                                assert!(value.iter().all(|byte| *byte == value[0]));
                            }
                        }
                    }
                    let statistics = cache.statistics();
                    assert!(statistics.bytes_used <= statistics.bytes_max);
                }
            });
        }
    });
}
