//! Time: expiry, touch, flush with and without delay, and a clock that fails.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use tokaido_store::{
    Clock, NewRecord,
    cache::{CasOutcome, Cursor, ScanPage},
};

use crate::support::{TestClock, cache, clocked_cache, get, value};

const MIB: usize = 1 << 20;

fn until(at_ms: u64) -> NewRecord<'static> {
    NewRecord::of(b"v").expiring(Some(at_ms))
}

#[test]
fn a_record_expires_at_its_millisecond_for_every_operation() {
    let clock = TestClock::at(1_000);
    let cache = clocked_cache(MIB, 1, clock.clone());
    let version = cache.set(b"k", until(2_000)).unwrap();
    clock.advance(999);
    assert!(get(&cache, b"k").is_some());
    clock.advance(1);
    assert_eq!(cache.statistics().records, 1, "it is there, unseen");
    let mut page = ScanPage::default();
    assert_eq!(cache.scan(Cursor::default(), 100, &mut page), None);
    assert_eq!(page.entries().count(), 0);
    assert_eq!(cache.cas(b"k", version, until(9_000)), Ok(CasOutcome::NotFound));
    for key in [&b"a"[..], b"b", b"c", b"d", b"e", b"f"] {
        cache.set(key, until(1)).unwrap();
    }
    assert_eq!(cache.replace(b"a", until(9_000)), Ok(None));
    assert_eq!(cache.append(b"b", b"x"), Ok(None));
    assert_eq!(cache.touch(b"c", None), Ok(false));
    assert_eq!(cache.delete(b"d"), Ok(false));
    assert_eq!(cache.increment(b"e", 1).unwrap(), None);
    assert!(cache.add(b"f", until(9_000)).unwrap().is_some());
    let statistics = cache.statistics();
    assert_eq!((statistics.records, statistics.expired), (1, 7));
}

#[test]
fn touch_moves_the_expiry_and_keeps_the_version() {
    let clock = TestClock::at(1_000);
    let cache = clocked_cache(MIB, 1, clock.clone());
    let version = cache.set(b"k", until(2_000)).unwrap();
    assert_eq!(cache.touch(b"k", Some(3_000)), Ok(true));
    clock.advance(1_500);
    assert_eq!(get(&cache, b"k").unwrap().1.version, version);
    let mut value = Vec::new();
    let found = cache.get_and_touch(b"k", None, &mut value).unwrap().unwrap();
    assert_eq!((&value[..], found.expires_at_ms, found.version), (&b"v"[..], None, version));
    clock.advance(1 << 40);
    assert!(get(&cache, b"k").is_some());
    assert_eq!(cache.touch(b"absent", None), Ok(false));
    assert_eq!(cache.get_and_touch(b"absent", None, &mut value), Ok(None));
}

#[test]
fn a_flush_removes_what_is_there_at_its_time() {
    let clock = TestClock::at(1_000);
    let cache = clocked_cache(MIB, 4, clock.clone());
    let set = |range: std::ops::Range<u8>| {
        range.for_each(|n| {
            cache.set(&[n], NewRecord::of(b"v")).unwrap();
        });
    };
    set(0..50);
    cache.flush_all(0);
    assert_eq!((cache.statistics().records, cache.statistics().flushed), (0, 50));
    assert_eq!(cache.statistics().bytes_used, 0, "and gives the memory back");

    set(0..50);
    cache.flush_all(500);
    set(50..100);
    clock.advance(499);
    assert_eq!(cache.statistics().records, 100);
    clock.advance(1);
    set(100..110);
    assert_eq!(cache.statistics().records, 10, "those set after its time stay");
    cache.flush_all(500);
    cache.flush_all(9_000);
    clock.advance(500);
    assert_eq!(cache.statistics().records, 10, "the second call replaces the first");
}

#[test]
fn the_expired_are_removed_without_being_asked_for() {
    let clock = TestClock::at(1_000);
    let cache = clocked_cache(8 * MIB, 4, clock.clone());
    for n in 0..10_000u32 {
        cache.set(&n.to_le_bytes(), until(if n % 2 == 0 { 2_000 } else { 3_000 })).unwrap();
    }
    assert_eq!(cache.remove_expired(100_000), 0);
    clock.advance(1_000);
    let mut removed = 0;
    let mut calls = 0;
    while removed < 5_000 {
        removed += cache.remove_expired(1_000);
        calls += 1;
    }
    assert!((5..40).contains(&calls), "{calls}");
    assert_eq!((cache.statistics().records, cache.statistics().expired), (5_000, 5_000));
    assert!((0..10_000u32).all(|n| get(&cache, &n.to_le_bytes()).is_some() == (n % 2 == 1)));
}

#[test]
fn the_expired_go_before_the_living_are_asked_twice() {
    let clock = TestClock::at(1_000);
    let cache = clocked_cache(MIB, 1, clock.clone());
    for n in 0..3_000u32 {
        cache.set(&n.to_le_bytes(), until(2_000)).unwrap();
    }
    clock.advance(1_000);
    for n in 0..30_000u32 {
        cache.set(&n.to_le_bytes(), NewRecord::of(&[0; 100])).unwrap();
    }
    let statistics = cache.statistics();
    assert_eq!(statistics.expired, 3_000);
    assert!(statistics.evicted > 10_000);
}

struct FailingClock(AtomicBool);

impl Clock for FailingClock {
    fn now_ms(&self) -> u64 {
        assert!(!self.0.load(Ordering::Relaxed), "the clock has stopped");
        1_000
    }
}

#[test]
fn a_panic_empties_the_shard_and_no_more() {
    let clock = Arc::new(FailingClock(AtomicBool::new(false)));
    let cache = clocked_cache(MIB, 1, clock.clone());
    cache.set(b"a", NewRecord::of(b"1")).unwrap();
    cache.set(b"k", until(2_000)).unwrap();
    clock.0.store(true, Ordering::Relaxed);
    assert!(catch_unwind(AssertUnwindSafe(|| get(&cache, b"k"))).is_err());
    assert_eq!(value(&cache, b"a"), None);
    cache.set(b"a", NewRecord::of(b"2")).unwrap();
    assert_eq!(value(&cache, b"a").unwrap(), b"2");
}

#[test]
fn a_time_that_48_bits_do_not_hold_is_the_last_that_they_do() {
    let cache = cache(MIB, 1);
    cache.set(b"k", until(u64::MAX)).unwrap();
    assert_eq!(get(&cache, b"k").unwrap().1.expires_at_ms, Some((1 << 48) - 2));
}
