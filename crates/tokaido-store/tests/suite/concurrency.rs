//! Readers beside the writer: each view shows one commit, even while databases get other trees.

use std::{
    ops::ControlFlow,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use crate::support::{Engine, TestClock, TreeEngine};
use tokaido_store::{
    DatabaseId, Direction, Entry, NewRecord, ReadError, ScanRange, Scanner, Snapshot, Store,
    WriteError, counter, transact,
};

const COMMITS: u64 = 1500;

/// The number under `n`, and nothing else, must be the same in every database.
fn check_view(snapshot: &mut dyn Snapshot, ids: &[DatabaseId]) -> Result<Option<u64>, ReadError> {
    let mut numbers = Vec::new();
    for id in ids {
        let number = snapshot.get(*id, b"n")?.map(|r| counter::parse(r.value));
        numbers.push(number.map(|n| n.expect("a number") as u64));
        // Statistics are as of the last commit, and each but the first leaves one record.
        let records = snapshot.statistics(*id)?.records;
        assert!(records == 1 || (records == 0 && number.is_none()), "{records} records");
    }
    assert!(numbers.windows(2).all(|pair| pair[0] == pair[1]), "a torn view: {numbers:?}");
    Ok(numbers[0])
}

/// Every commit clears three databases and writes to them again, so that trees change hands.
fn write(store: &dyn Store, ids: &[DatabaseId]) {
    let mut writer = store.writer().unwrap();
    for n in 1..=COMMITS {
        transact(&mut *writer, |tx| {
            for id in ids {
                tx.clear(*id)?;
                tx.put(*id, b"n", NewRecord::of(n.to_string().as_bytes()))?;
            }
            Ok::<_, WriteError>(())
        })
        .unwrap();
    }
}

#[test]
fn every_view_is_of_one_commit() {
    check_views(&TreeEngine::new(TestClock::new()));
}

#[test]
fn every_view_is_of_one_commit_while_checkpoints_go_on() {
    check_views(&TreeEngine::checkpointing(TestClock::new()));
}

#[test]
fn every_view_is_of_one_commit_while_runs_are_merged() {
    check_views(&TreeEngine::with_runs(TestClock::new()));
}

fn check_views(engine: &impl Engine) {
    let store = engine.store();
    let ids = ["a", "b", "c"].map(|name| store.database(name).unwrap());
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut snapshot = store.snapshot().unwrap();
                let mut last = None;
                while !is_done.load(Ordering::Relaxed) {
                    let seen = check_view(&mut *snapshot, &ids).unwrap();
                    assert!(seen >= last, "time went back from {last:?} to {seen:?}");
                    last = seen;
                    snapshot.renew().unwrap();
                }
            });
        }
        scope.spawn(|| {
            write(&*store, &ids);
            is_done.store(true, Ordering::Relaxed);
        });
    });
    let mut snapshot = store.snapshot().unwrap();
    assert_eq!(check_view(&mut *snapshot, &ids).unwrap(), Some(COMMITS));
}

#[test]
fn a_snapshot_stays_while_the_writer_goes_on() {
    let clock = TestClock::new();
    let engine = TreeEngine::new(clock.clone());
    let store = engine.store();
    let main = store.database("main").unwrap();
    let mut writer = store.writer().unwrap();
    let put = |n: u32| {
        move |tx: &mut dyn tokaido_store::WriteTransaction| {
            tx.put(main, b"n", NewRecord::of(n.to_string().as_bytes()))
        }
    };
    transact(&mut *writer, put(1)).unwrap();
    let mut old = store.snapshot().unwrap();
    for n in 2..50 {
        transact(&mut *writer, put(n)).unwrap();
    }
    assert_eq!(old.get(main, b"n").unwrap().unwrap().value, b"1");
    old.renew().unwrap();
    assert_eq!(old.get(main, b"n").unwrap().unwrap().value, b"49");
    old.release();
    transact(&mut *writer, put(50)).unwrap();
    assert_eq!(old.get(main, b"n").unwrap().unwrap().value, b"50");
    // A released snapshot gets its time at once, and its view with the first read.
    old.release();
    clock.pass(10);
    old.renew().unwrap();
    let now_ms = old.now_ms();
    assert_eq!(now_ms, store.snapshot().unwrap().now_ms());
    clock.pass(10);
    transact(&mut *writer, put(51)).unwrap();
    assert_eq!(old.get(main, b"n").unwrap().unwrap().value, b"51");
    assert_eq!(old.now_ms(), now_ms);
    transact(&mut *writer, put(52)).unwrap();
    assert_eq!(old.get(main, b"n").unwrap().unwrap().value, b"51");
    // Without being renewed, it takes both with the read.
    old.release();
    assert_eq!(old.get(main, b"n").unwrap().unwrap().value, b"52");
    assert_eq!(old.now_ms(), now_ms + 10);
}

const KEYS: usize = 20_000;

/// Keys are written in random order, so that they go into the middle of what readers walk over.
fn scattered(n: usize) -> [u8; 8] {
    (n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}

/// A scan must return exactly the first keys that were written, in order, in both directions.
fn check_scan(snapshot: &mut dyn Snapshot, main: DatabaseId) -> usize {
    let mut ways = [Direction::Forward, Direction::Backward].map(|direction| {
        let range = ScanRange { direction, ..ScanRange::all() };
        let mut seen = Vec::new();
        let mut see = |entry: Entry<'_>| {
            let n = counter::parse(entry.record.value).unwrap() as usize;
            assert_eq!(entry.key, scattered(n));
            seen.push(entry.key.to_vec());
        };
        // Step by step at first, and the rest in one go.
        let mut scanner = Scanner::new(main, range, usize::MAX);
        for _ in 0..KEYS / 4 {
            let Some(entry) = scanner.next(snapshot).unwrap() else { break };
            see(entry);
        }
        scanner
            .visit(snapshot, |entry| {
                see(entry);
                ControlFlow::Continue(())
            })
            .unwrap();
        seen
    });
    ways[1].reverse();
    assert_eq!(ways[0], ways[1], "one way sees other keys than the other");
    let mut expected: Vec<_> = (0..ways[0].len()).map(|n| scattered(n).to_vec()).collect();
    expected.sort();
    assert!(ways[0] == expected, "{} keys, but not the first ones", expected.len());
    expected.len()
}

fn check_scans(engine: &impl Engine, group: usize) {
    let store = engine.store();
    let main = store.database("main").unwrap();
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut snapshot = store.snapshot().unwrap();
                let mut last = 0;
                while !is_done.load(Ordering::Relaxed) {
                    let seen = check_scan(&mut *snapshot, main);
                    assert!(seen >= last && seen.is_multiple_of(group), "{seen} after {last}");
                    last = seen;
                    snapshot.renew().unwrap();
                }
            });
        }
        scope.spawn(|| {
            let mut writer = store.writer().unwrap();
            for first in (0..KEYS).step_by(group) {
                transact(&mut *writer, |tx| {
                    (first..first + group).try_for_each(|n| {
                        tx.put(main, &scattered(n), NewRecord::of(n.to_string().as_bytes()))
                    })
                })
                .unwrap();
            }
            is_done.store(true, Ordering::Relaxed);
        });
    });
    assert_eq!(check_scan(&mut *store.snapshot().unwrap(), main), KEYS);
}

#[test]
fn scans_see_whole_commits_while_the_writer_goes_on() {
    check_scans(&TreeEngine::new(TestClock::new()), 20);
}

#[test]
fn scans_see_whole_commits_while_checkpoints_go_on() {
    check_scans(&TreeEngine::checkpointing(TestClock::new()), 100);
}

#[test]
fn scans_see_whole_commits_while_runs_are_merged() {
    check_scans(&TreeEngine::with_runs(TestClock::new()), 100);
}
