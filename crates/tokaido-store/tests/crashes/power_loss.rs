//! Power failures: at every sync of the log, the disk holds what was synced and any part of what
//! was not. Opened again, the store has every acknowledged transaction, none of them in part, and
//! no later one without those before it.
//!
//! `TOKAIDO_POWER_LOSS_IMAGES=100000` makes it a long run; `TOKAIDO_SEED` repeats one.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use tokaido_store::{
    CommitError, OpenError, Store, WriteError,
    tree::{self, SyncMode},
};

use crate::{
    disk::{Disk, Failure},
    fate::{FATES, Fate},
    ledger::{self, Databases, Ledger},
    random::{Random, images_wanted, seed},
    store::{fast_directory, open},
};

const IMAGES: usize = 2400;

pub(crate) fn options(disk: &Disk, sync: SyncMode) -> tree::Options {
    tree::Options {
        sync,
        size_max: 1 << 30,
        log: Some(Arc::new(disk.clone())),
        ..tree::Options::default()
    }
}

/// Runs groups of transactions on a store whose log is on `disk`.
fn run(store: &dyn Store, disk: &Disk, ledger: &mut Ledger, random: &mut Random, groups: usize) {
    ledger::run(store, ledger, random, groups, |last| {
        disk.acknowledged.store(last, Ordering::SeqCst);
    });
}

pub(crate) fn copy_base(from: &Path, to: &Path) {
    std::fs::copy(from.join("data.mdb"), to.join("data.mdb")).unwrap();
}

#[test]
fn a_power_failure_loses_nothing_that_was_acknowledged() {
    let seed = seed();
    let images = images_wanted(IMAGES);
    let mut random = Random::new(seed);
    let mut checked = 0;
    while checked < images {
        checked += power_failures(&mut random, SyncMode::Always);
    }
    println!("{checked} images opened");
}

/// Without a sync for each group, only whole transactions are promised, in order.
#[test]
fn without_syncs_a_power_failure_leaves_a_whole_prefix() {
    let seed = seed();
    let mut random = Random::new(seed);
    for _ in 0..20 {
        let directory = fast_directory();
        let disk = Disk::default();
        let mut ledger = Ledger::new(1);
        let store = open(directory.path(), &options(&disk, SyncMode::Os)).unwrap();
        run(&store, &disk, &mut ledger, &mut random, 12);
        drop(store);
        // Nothing of the run was synced, so the moment before this sync has all of it unsynced.
        tokaido_store::tree::LogStorage::open(&disk, 1).unwrap().sync().unwrap();
        let moment = disk.take_moments().pop().unwrap();
        for fate in FATES {
            let image = moment.image(fate, &mut |n| random.below(n));
            let after = fast_directory();
            copy_base(directory.path(), after.path());
            let opened = open(after.path(), &options(&Disk::of(image), SyncMode::Os));
            ledger.check(&opened.unwrap());
        }
    }
}

/// One run, and the images of all of its syncs. Returns their number.
fn power_failures(random: &mut Random, sync: SyncMode) -> usize {
    let directory = fast_directory();
    let disk = Disk::default();
    let mut ledger = Ledger::new(1);
    let mut moments = Vec::new();
    // Opened three times, so that a log of several segments is recovered, too.
    for _ in 0..3 {
        let store = open(directory.path(), &options(&disk, sync)).unwrap();
        run(&store, &disk, &mut ledger, random, 10);
        drop(store);
        moments.append(&mut disk.take_moments());
    }
    let mut checked = 0;
    for moment in &moments {
        for fate in FATES {
            let image = moment.image(fate, &mut |n| random.below(n));
            checked += 1;
            let after = fast_directory();
            copy_base(directory.path(), after.path());
            let disk = Disk::of(image);
            let found = {
                let store = open(after.path(), &options(&disk, sync)).unwrap();
                ledger.check(&store)
            };
            assert!(found >= moment.acknowledged, "{found} of {} left", moment.acknowledged);
            // The store can be used from there.
            let mut shorter = Ledger::up_to(1, found);
            let store = open(after.path(), &options(&disk, sync)).unwrap();
            run(&store, &disk, &mut shorter, random, 1);
            drop(store);
            let store = open(after.path(), &options(&disk, sync)).unwrap();
            assert_eq!(shorter.check(&store), shorter.last());
        }
    }
    checked
}

/// Damage to a synced frame is not an interrupted write.
#[test]
fn damage_in_the_middle_is_not_taken_for_a_torn_end() {
    let directory = fast_directory();
    let disk = Disk::default();
    let mut random = Random::new(1);
    let mut ledger = Ledger::new(1);
    let store = open(directory.path(), &options(&disk, SyncMode::Always)).unwrap();
    run(&store, &disk, &mut ledger, &mut random, 10);
    drop(store);
    let moment = disk.take_moments().pop().unwrap();
    let mut image: BTreeMap<u64, Vec<u8>> = moment.image(Fate::Everything, &mut |_| 0);
    let segment = image.get_mut(&1).unwrap();
    segment[100] ^= 1;
    let opened = open(directory.path(), &options(&Disk::of(image), SyncMode::Always));
    match opened.map(drop) {
        Err(OpenError::Damaged { what, .. }) => {
            assert!(what.contains("log segment 1, byte 48"), "{what}");
        }
        other => panic!("{other:?}"),
    }
}

/// A segment was synced before the next one was begun, so its end cannot be torn either.
#[test]
fn a_damaged_end_of_an_older_segment_is_not_cut_off() {
    let directory = fast_directory();
    let disk = Disk::default();
    let mut random = Random::new(2);
    let mut ledger = Ledger::new(1);
    let store = open(directory.path(), &options(&disk, SyncMode::Always)).unwrap();
    run(&store, &disk, &mut ledger, &mut random, 3);
    let before = fast_directory();
    copy_base(directory.path(), before.path());
    let mut image = disk.now().image(Fate::Everything, &mut |_| 0);
    store.checkpoint().unwrap();
    run(&store, &disk, &mut ledger, &mut random, 1);
    drop(store);
    // As if the checkpoint had not been finished: both segments are there.
    image.append(&mut disk.now().image(Fate::Everything, &mut |_| 0));
    assert_eq!(image.keys().copied().collect::<Vec<_>>(), [1, 2]);
    let segment = image.get_mut(&1).unwrap();
    let last = segment.iter().rposition(|byte| *byte != 0).unwrap();
    segment[last] ^= 1;
    let damaged = Disk::of(image);
    for _ in 0..2 {
        let opened = open(before.path(), &options(&damaged, SyncMode::Always));
        match opened.map(drop) {
            Err(OpenError::Damaged { what, .. }) => {
                assert!(what.contains("log segment 1"), "{what}");
            }
            other => panic!("{other:?}"),
        }
    }
}

/// Every call to the disk fails in turn, in each way: there is an error, reads continue, and what
/// was acknowledged stays.
#[test]
fn every_call_may_fail() {
    for failure in [Failure::NoSpace, Failure::ShortWrite, Failure::Broken] {
        for nth in 0..40 {
            if !fail_at(nth, failure) {
                break;
            }
        }
    }
}

/// Returns whether the failure was met.
fn fail_at(nth: usize, failure: Failure) -> bool {
    let directory = fast_directory();
    let disk = Disk::default();
    let mut random = Random::new(7);
    let mut ledger = Ledger::new(1);
    let store = open(directory.path(), &options(&disk, SyncMode::Always)).unwrap();
    let databases = Databases::of(&store);
    disk.fail(nth, failure);
    let mut acknowledged = 0;
    let mut is_refused = false;
    {
        let mut writer = store.writer().unwrap();
        for _ in 0..12 {
            let before = ledger.last();
            ledger.write(writer.begin().unwrap(), databases).unwrap();
            writer.commit().unwrap();
            match writer.flush() {
                Ok(()) => acknowledged = ledger.last(),
                // It may or may not be there after a restart, so the ledger keeps it.
                Err(CommitError::Undetermined { .. }) => {
                    assert!(matches!(writer.begin().map(drop), Err(WriteError::Poisoned { .. })));
                    is_refused = true;
                    break;
                }
                Err(_) => ledger.truncate(before),
            }
        }
    }
    assert_eq!(ledger.check(&store), acknowledged, "{failure:?} at call {nth}");
    let is_met = disk.mend();
    assert!(failure == Failure::Broken || !is_refused, "{failure:?} at call {nth} needs a restart");
    if !is_refused {
        // A full disk that has room again is written to again.
        run(&store, &disk, &mut ledger, &mut random, 1);
        acknowledged = ledger.check(&store);
    }
    drop(store);
    let store = open(directory.path(), &options(&disk, SyncMode::Always)).unwrap();
    let found = ledger.check(&store);
    assert!(found >= acknowledged, "{failure:?} at call {nth}: {found} of {acknowledged}");
    is_met
}

/// In interval mode, the keeper syncs what no commit waited for.
#[test]
fn an_interval_makes_writes_durable_in_the_background() {
    let directory = fast_directory();
    let disk = Disk::default();
    let mut random = Random::new(3);
    let mut ledger = Ledger::new(1);
    let sync = SyncMode::Interval(Duration::from_millis(5));
    let store = open(directory.path(), &options(&disk, sync)).unwrap();
    run(&store, &disk, &mut ledger, &mut random, 3);
    let written = ledger.last();
    let is_durable = || {
        let moment = disk.now();
        let image = moment.image(Fate::Nothing, &mut |_| 0);
        let after = fast_directory();
        copy_base(directory.path(), after.path());
        let store = open(after.path(), &options(&Disk::of(image), sync)).unwrap();
        ledger.check(&store) == written
    };
    let patience = Instant::now() + Duration::from_secs(30);
    while !is_durable() {
        assert!(Instant::now() < patience, "never synced");
    }
}
