//! Stores that are opened and closed, or killed, many times over: what opening costs, how long the
//! log gets, and that whatever one process leaves to the next survives a power failure.

use std::{fs, path::Path, sync::atomic::Ordering};

use tokaido_store::{
    NewRecord, Store, WriteError, transact,
    tree::{self, SyncMode},
};

use crate::{
    disk::Disk,
    fate::FATES,
    journal::Event,
    ledger::{self, Ledger},
    power_loss::{copy_base, options},
    preload::{Scene, Stage},
    random::{Random, seed},
    store::{fast_directory, open},
};

/// A process that only reads finds nothing to mend or to make room for after one that was closed,
/// and so leaves every file as it is; the first time as well as the second.
#[test]
fn a_life_that_only_reads_writes_and_syncs_nothing() {
    for sync in [SyncMode::Always, SyncMode::Os] {
        for groups in [1, 4] {
            let scene = Scene::new();
            let task = |groups| format!("{sync} {groups}");
            for task in [task(groups), task(0), task(0)] {
                let output = scene.run("lives::a_process_that_lives", &task, None);
                assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            }
            let events = scene.events();
            let openings: Vec<usize> =
                (0..events.len()).filter(|at| matches!(events[*at], Event::Opening)).collect();
            assert_eq!(openings.len(), 3);
            assert!(openings[1] > 3, "the journal tells of the first life");
            let done: Vec<_> = events[openings[1]..]
                .iter()
                .filter(|event| !matches!(event, Event::Opening | Event::Acknowledged(_)))
                .collect();
            assert!(done.is_empty(), "{sync}, {groups} groups: {done:?}");
        }
    }
}

/// The child.
#[test]
fn a_process_that_lives() {
    let Some(stage) = Stage::of_this_process() else { return };
    let [sync, groups] = &stage.task[..] else { panic!("{:?}", stage.task) };
    let store = stage.open(sync.parse().unwrap()).unwrap();
    let mut ledger = Ledger::up_to(1, Ledger::new(1).check(&store));
    match groups.parse().unwrap() {
        0 => assert!(ledger.last() > 0, "it finds what was written"),
        groups => ledger::run(&store, &mut ledger, &mut Random::new(1), groups, |_| {}),
    }
}

fn log_bytes(directory: &Path) -> u64 {
    let segments = fs::read_dir(directory.join("log")).unwrap();
    segments.map(|segment| segment.unwrap().metadata().unwrap().len()).sum()
}

/// Processes that each write little do not leave an ever longer log, which each would have to read.
#[test]
fn many_short_lives_keep_the_log_short() {
    const LIVES: usize = 60;
    const VALUE_LEN: usize = 50_000;
    const LEFT_MAX: u64 = 1 << 20;
    let directory = fast_directory();
    let options =
        tree::Options { sync: SyncMode::Os, size_max: 1 << 30, ..tree::Options::default() };
    let mut longest = 0;
    for life in 0..LIVES {
        let store = open(directory.path(), &options).unwrap();
        let main = store.database("main").unwrap();
        let records = store.snapshot().unwrap().statistics(main).unwrap().records;
        assert_eq!(records, life as u64);
        transact(&mut *store.writer().unwrap(), |transaction| {
            let value = NewRecord::of(&[b'v'; VALUE_LEN]);
            transaction.put(main, life.to_string().as_bytes(), value)
        })
        .map_err(|error: tokaido_store::TransactError<WriteError>| error)
        .unwrap();
        drop(store);
        longest = longest.max(log_bytes(directory.path()));
    }
    assert!(longest <= LEFT_MAX + 1000, "{longest} bytes");
    assert!(longest > LEFT_MAX / 2, "not every life pays for a checkpoint");
}

/// Processes with each sync mode follow each other, and are closed or killed. Whatever was made
/// durable, or found by a process that promises durability, survives a power failure; of the rest,
/// whole transactions survive, in order.
#[test]
fn a_power_failure_in_any_life_leaves_what_was_promised() {
    const RUNS: usize = 20;
    const LIVES: usize = 4;
    let mut random = Random::new(seed());
    for _ in 0..RUNS {
        let mut disk = Disk::default();
        let mut directory = fast_directory();
        let mut moments = Vec::new();
        for _ in 0..LIVES {
            let sync = [SyncMode::Always, SyncMode::Os][random.below(2)];
            let store = open(directory.path(), &options(&disk, sync)).unwrap();
            let found = Ledger::new(1).check(&store);
            let promise = |last| {
                if sync == SyncMode::Always {
                    disk.acknowledged.store(last, Ordering::SeqCst);
                }
            };
            promise(found);
            let mut ledger = Ledger::up_to(1, found);
            let groups = random.below(4);
            if groups > 0 {
                ledger::run(&store, &mut ledger, &mut random, groups, promise);
            }
            moments.append(&mut disk.take_moments());
            moments.push(disk.now());
            if random.below(2) == 0 {
                let killed = disk.after_a_kill();
                let next = fast_directory();
                copy_base(directory.path(), next.path());
                drop(store);
                (disk, directory) = (killed, next);
            } else {
                drop(store);
                moments.push(disk.now());
            }
        }
        for moment in &moments {
            for fate in FATES {
                let image = moment.image(fate, &mut |n| random.below(n));
                let after = fast_directory();
                copy_base(directory.path(), after.path());
                let disk = Disk::of(image);
                for _ in 0..2 {
                    let store = open(after.path(), &options(&disk, SyncMode::Always)).unwrap();
                    let found = Ledger::new(1).check(&store);
                    let acknowledged = moment.acknowledged;
                    assert!(found >= acknowledged, "{found} of {acknowledged}, {fate:?}");
                    ledger::run(&store, &mut Ledger::up_to(1, found), &mut random, 1, |_| {});
                }
            }
        }
    }
}
