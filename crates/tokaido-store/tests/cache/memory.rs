//! Whether `bytes_used` is what the allocator really uses.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

use tokaido_store::{NewRecord, cache::Cache};

use crate::support::cache;

/// The system's allocator, which counts what each thread has allocated: the real sizes of blocks,
/// with the word before them.
struct Counting;

thread_local! {
    static TAKEN: Cell<i64> = const { Cell::new(0) };
}

const WORD: i64 = 8;

fn count(block: *mut u8, sign: i64) {
    // SAFETY: the block comes from the system's allocator and is not freed yet.
    let len = unsafe { libc::malloc_usable_size(block.cast()) } as i64;
    TAKEN.set(TAKEN.get() + sign * (len + WORD));
}

// SAFETY: every call is passed on to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise is the one that `System` requires.
        let block = unsafe { System.alloc(layout) };
        count(block, 1);
        block
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        let block = unsafe { System.alloc_zeroed(layout) };
        count(block, 1);
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(block, -1);
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) };
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What the cache reports as used, and what it has really allocated since `before`.
fn compare(cache: &Cache, before: i64) -> (i64, i64) {
    let really = TAKEN.get() - before;
    (cache.statistics().bytes_used as i64, really)
}

fn key(n: u64) -> [u8; 16] {
    let mut key = [b'k'; 16];
    key[..8].copy_from_slice(&n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes());
    key
}

#[test]
fn what_is_said_to_be_used_is_what_the_allocator_takes() {
    let cache = cache(64 << 20, 16);
    let before = TAKEN.get();
    for round in 0..30 {
        for n in 0..40_000u64 {
            let n = n * 7 + round * 20_000;
            let value = vec![0; ((n * n) % 900) as usize];
            cache.set(&key(n), NewRecord::of(&value)).unwrap();
            if n % 9 == 0 {
                cache.set(&key(n), NewRecord::of(&[0; 300_000])).unwrap();
            }
            if n % 5 == 0 {
                cache.delete(&key(n / 2)).unwrap();
            }
        }
        let (said, really) = compare(&cache, before);
        assert!(really <= said, "{really} taken, {said} admitted to");
        assert!(really * 100 >= said * 98, "{really} taken, {said} complained of");
    }
    assert!(cache.statistics().evicted > 0);
    cache.flush_all(0);
    assert_eq!(compare(&cache, before), (0, 0));
}

#[test]
fn a_record_of_16_and_64_bytes_takes_at_most_130() {
    let before = TAKEN.get();
    let cache = cache(1 << 30, 16);
    for n in 0..400_000u64 {
        cache.set(&key(n), NewRecord::of(&[0; 64])).unwrap();
        // From here on, allocations that are not filled yet are small compared with the rest.
        if n >= 100_000 && n % 10_000 == 0 {
            let (_, really) = compare(&cache, before);
            assert!(really <= 130 * n as i64, "{} bytes at {n}", really / n as i64);
        }
    }
}
