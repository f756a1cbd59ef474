//! What holds however much is evicted, and which records are kept.

use std::collections::HashMap;

use proptest::prelude::*;
use tokaido_store::{NewRecord, cache::Cache};

use crate::support::{cache, get, value};

const KIB: usize = 1 << 10;

/// A value that shows which key and which write it belongs to.
fn stamped(key: u16, write: u32, len: usize) -> Vec<u8> {
    let mut value = [&key.to_le_bytes()[..], &write.to_le_bytes()].concat();
    value.resize(len.max(value.len()), key as u8);
    value
}

fn check_bound(cache: &Cache) -> Result<(), TestCaseError> {
    let statistics = cache.statistics();
    prop_assert!(statistics.bytes_used <= statistics.bytes_max, "{:?}", statistics);
    prop_assert!(statistics.record_bytes <= statistics.bytes_used, "{:?}", statistics);
    Ok(())
}

fn lens() -> impl Strategy<Value = usize> {
    prop_oneof![6 => 6..60usize, 3 => 60..1_000usize, 1 => 1_000..25_000usize]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn memory_is_bounded_and_a_hit_is_the_last_value_set(
        steps in proptest::collection::vec((0..2_000u16, 0..10u8, lens()), 1_000..6_000),
        shards in 1..=4u32,
    ) {
        let shards = shards.next_power_of_two() as usize;
        let cache = cache(64 * KIB * shards, shards);
        let mut last = HashMap::new();
        for (write, (n, kind, len)) in (0u32..).zip(steps) {
            let key = n.to_le_bytes();
            match kind {
                0 => {
                    cache.delete(&key).unwrap();
                    last.remove(&n);
                }
                1..=4 => {
                    if let Some(found) = value(&cache, &key) {
                        prop_assert_eq!(Some(&found), last.get(&n));
                    }
                }
                5 => {
                    if cache.append(&key, b"tail").unwrap_or_default().is_some() {
                        let value: &mut Vec<u8> = last.get_mut(&n).unwrap();
                        value.extend_from_slice(b"tail");
                    }
                }
                _ => {
                    let value = stamped(n, write, len);
                    cache.set(&key, NewRecord::of(&value)).unwrap();
                    prop_assert_eq!(&get(&cache, &key).unwrap().0, &value, "just set");
                    last.insert(n, value);
                }
            }
            check_bound(&cache)?;
        }
        let count = (0..2_000u16).filter(|n| get(&cache, &n.to_le_bytes()).is_some()).count();
        prop_assert_eq!(cache.statistics().records, count as u64);
        for n in 0..2_000u16 {
            cache.delete(&n.to_le_bytes()).unwrap();
        }
        prop_assert_eq!(cache.statistics().records, 0);
        prop_assert_eq!(cache.statistics().record_bytes, 0, "deleting all leaves nothing");
        cache.flush_all(0);
        prop_assert_eq!(cache.statistics().bytes_used, 0);
    }
}

/// Small records that are set again soon after their eviction, so that drains keep many of them.
#[test]
fn memory_is_bounded_in_loops_that_nearly_fit() {
    for bytes_max in [64 * KIB, 1024 * KIB] {
        for percent in [90, 100, 110, 120, 150, 200] {
            let cache = cache(bytes_max, 1);
            let keys = (bytes_max / 110 * percent / 100) as u32;
            let mut value = Vec::new();
            for n in 0..keys * 10 {
                let key = (n % keys).to_le_bytes();
                if cache.get(&key, &mut value).unwrap().is_none() {
                    cache.set(&key, NewRecord::of(&[0; 76])).unwrap();
                }
                let bytes_used = cache.statistics().bytes_used as usize;
                assert!(bytes_used <= bytes_max, "{bytes_used} of {bytes_max} at {n}");
            }
        }
    }
}

#[test]
fn a_loop_too_long_still_hits() {
    let cache = cache(1024 * KIB, 1);
    let (keys, mut hits) = (11_000u32, 0);
    for n in 0..keys * 20 {
        let key = (n % keys).to_le_bytes();
        let is_hit = cache.get(&key, &mut Vec::new()).unwrap().is_some();
        hits += u32::from(is_hit && n >= keys * 10);
        if !is_hit {
            cache.set(&key, NewRecord::of(&[0; 76])).unwrap();
        }
    }
    let held = cache.statistics().records;
    assert!(held < 9_500, "{held} of {keys} fit");
    assert!(hits > keys * 10 / 2, "LRU would have none, not {hits}");
}

#[test]
fn a_scan_does_not_push_out_what_is_used() {
    let cache = cache(1024 * KIB, 1);
    let hot = |n: u32| [b'h', n as u8, (n >> 8) as u8];
    for n in 0..3_000 {
        cache.set(&hot(n), NewRecord::of(&[0; 64])).unwrap();
        get(&cache, &hot(n));
    }
    for n in 0..100_000u32 {
        cache.set(&n.to_le_bytes(), NewRecord::of(&[0; 64])).unwrap();
    }
    let left = (0..3_000).filter(|&n| get(&cache, &hot(n)).is_some()).count();
    assert!(left > 2_900, "{left} of 3,000 are left");
    assert!(cache.statistics().evicted > 90_000);
}

#[test]
fn what_is_used_in_every_round_stays_among_what_is_used_once() {
    let cache = cache(1024 * KIB, 1);
    let hot = |n: u32| [b'h', n as u8, (n >> 8) as u8];
    let mut misses = 0;
    for round in 0..50u32 {
        for n in 0..1_000 {
            if get(&cache, &hot(n)).is_none() {
                misses += u32::from(round > 5);
                cache.set(&hot(n), NewRecord::of(&[0; 64])).unwrap();
            }
        }
        for n in round * 1_000..(round + 1) * 1_000 {
            cache.set(&n.to_le_bytes(), NewRecord::of(&[0; 64])).unwrap();
            get(&cache, &n.to_le_bytes());
        }
    }
    assert!(cache.statistics().evicted > 30_000);
    assert!(misses < 500, "{misses} of 44,000");
}

#[test]
fn memory_of_the_dead_is_used_before_the_living_go() {
    let cache = cache(1024 * KIB, 1);
    for n in 0..40_000u32 {
        cache.set(&n.to_le_bytes(), NewRecord::of(&[1; 100])).unwrap();
        // One in ten stays, so every segment holds a few live records among many dead ones.
        if let Some(old) = n.checked_sub(50)
            && old % 10 != 0
        {
            cache.delete(&old.to_le_bytes()).unwrap();
        }
    }
    let statistics = cache.statistics();
    assert_eq!((statistics.evicted, statistics.records), (0, 4_045));
}

#[test]
fn when_all_are_used_newcomers_still_get_in() {
    let cache = cache(256 * KIB, 1);
    for n in 0..20_000u32 {
        cache.set(&n.to_le_bytes(), NewRecord::of(&[0; 64])).unwrap();
        for back in 0..2_000 {
            if let Some(n) = n.checked_sub(back * 7) {
                cache.get(&n.to_le_bytes(), &mut Vec::new()).unwrap();
            }
            if back > 20 {
                break;
            }
        }
    }
    for n in 19_990..20_000u32 {
        assert!(get(&cache, &n.to_le_bytes()).is_some());
    }
}
