//! Power failures: at every sync of the log, the disk holds what was synced and any part of what
//! was not. Opened again, the store has every acknowledged transaction, none by half, and no later
//! one without those before it.
//!
//! `TOKAIDO_POWER_LOSS_IMAGES=100000` makes it a long run; `TOKAIDO_SEED` repeats one.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use tokaido_store::{
    CommitError, DatabaseId, NewRecord, OpenError, Store, WriteError, WriteTransaction,
    parse_integer,
    tree::{self, SyncMode},
};

use crate::{
    disk::{Disk, FATES, Failure, Fate},
    support::fast_directory,
};

const ACCOUNTS: usize = 8;
const IMAGES: usize = 2400;

/// SplitMix64, so that a seed says all.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let n = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (n ^ (n >> 31)) as usize % limit
    }
}

fn env(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// The balances after each transaction; the first entry is before the first.
type Ledger = Vec<[i64; ACCOUNTS]>;

/// Moves an amount between two accounts, writes its own number, and some ballast.
fn transfer(
    tx: &mut dyn WriteTransaction,
    main: DatabaseId,
    ledger: &mut Ledger,
    random: &mut Random,
) -> Result<(), WriteError> {
    let mut balances = *ledger.last().expect("it has a beginning");
    let (from, to) = (random.below(ACCOUNTS), random.below(ACCOUNTS));
    let amount = random.below(100) as i64;
    balances[from] -= amount;
    balances[to] += amount;
    for account in [from, to] {
        let text = balances[account].to_string();
        tx.put(main, format!("account{account}").as_bytes(), NewRecord::of(text.as_bytes()))?;
    }
    let number = ledger.len().to_string();
    tx.put(main, b"number", NewRecord::of(number.as_bytes()))?;
    let ballast = vec![b'x'; random.below(3000)];
    tx.put(main, format!("ballast{}", random.below(5)).as_bytes(), NewRecord::of(&ballast))?;
    ledger.push(balances);
    Ok(())
}

fn options(disk: &Disk, sync: SyncMode) -> tree::Options {
    tree::Options {
        sync,
        size_max: 1 << 30,
        log: Some(Arc::new(disk.clone())),
        ..tree::Options::default()
    }
}

/// Runs groups of transfers.
fn run(store: &dyn Store, disk: &Disk, ledger: &mut Ledger, random: &mut Random, groups: usize) {
    let main = store.database("main").unwrap();
    let mut writer = store.writer().unwrap();
    for _ in 0..groups {
        for _ in 0..=random.below(4) {
            transfer(writer.begin().unwrap(), main, ledger, random).unwrap();
            writer.commit().unwrap();
        }
        writer.flush().unwrap();
        disk.acknowledged.store(ledger.len() as u64 - 1, Ordering::SeqCst);
    }
}

/// The number of the last transaction that a store holds, which must hold all of it.
fn check(store: &dyn Store, ledger: &Ledger) -> u64 {
    let main = store.database("main").unwrap();
    let mut snapshot = store.snapshot().unwrap();
    let mut number = |key: &str| {
        let record = snapshot.get(main, key.as_bytes()).unwrap();
        record.map_or(0, |record| parse_integer(record.value).unwrap())
    };
    let last = number("number") as usize;
    let balances: Vec<i64> = (0..ACCOUNTS).map(|a| number(&format!("account{a}"))).collect();
    assert_eq!(balances, ledger[last], "transaction {last} is there by half");
    last as u64
}

fn copy_base(from: &Path, to: &Path) {
    std::fs::copy(from.join("data.mdb"), to.join("data.mdb")).unwrap();
}

#[test]
fn a_power_failure_loses_nothing_that_was_acknowledged() {
    let seed = env("TOKAIDO_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    println!("TOKAIDO_SEED={seed}");
    let images = env("TOKAIDO_POWER_LOSS_IMAGES").map_or(IMAGES, |n| n as usize);
    let mut random = Random::new(seed);
    let mut checked = 0;
    while checked < images {
        checked += power_failures(&mut random, SyncMode::Always);
    }
    println!("{checked} images opened");
}

/// Without a sync for each group nothing is promised but whole transactions, in order.
#[test]
fn without_syncs_a_power_failure_leaves_a_whole_prefix() {
    let seed = env("TOKAIDO_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    println!("TOKAIDO_SEED={seed}");
    let mut random = Random::new(seed);
    for _ in 0..20 {
        let directory = fast_directory();
        let disk = Disk::default();
        let mut ledger = vec![[0; ACCOUNTS]];
        let store = tree::open(directory.path(), options(&disk, SyncMode::Os)).unwrap();
        run(&store, &disk, &mut ledger, &mut random, 12);
        drop(store);
        // Nothing of the run was synced, so the moment before this sync has all of it unsynced.
        tokaido_store::tree::LogStorage::open(&disk, 1).unwrap().sync().unwrap();
        let moment = disk.take_moments().pop().unwrap();
        for fate in FATES {
            let image = moment.image(fate, &mut |n| random.below(n));
            let after = fast_directory();
            copy_base(directory.path(), after.path());
            let opened = tree::open(after.path(), options(&Disk::of(image), SyncMode::Os));
            check(&opened.unwrap(), &ledger);
        }
    }
}

/// One run, and the images of all of its syncs. Gives their number.
fn power_failures(random: &mut Random, sync: SyncMode) -> usize {
    let directory = fast_directory();
    let disk = Disk::default();
    let mut ledger = vec![[0; ACCOUNTS]];
    let mut moments = Vec::new();
    // Opened three times, so that a log of several segments is recovered as well.
    for _ in 0..3 {
        let store = tree::open(directory.path(), options(&disk, sync)).unwrap();
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
                let store = tree::open(after.path(), options(&disk, sync)).unwrap();
                check(&store, &ledger)
            };
            assert!(found >= moment.acknowledged, "{found} of {} left", moment.acknowledged);
            // And it goes on from there.
            let mut shorter = ledger[..=found as usize].to_vec();
            let store = tree::open(after.path(), options(&disk, sync)).unwrap();
            run(&store, &disk, &mut shorter, random, 1);
            drop(store);
            let store = tree::open(after.path(), options(&disk, sync)).unwrap();
            assert_eq!(check(&store, &shorter), shorter.len() as u64 - 1);
        }
    }
    checked
}

/// A synced frame that is damaged is not an interrupted write.
#[test]
fn damage_in_the_middle_is_not_taken_for_a_torn_end() {
    let directory = fast_directory();
    let disk = Disk::default();
    let mut random = Random::new(1);
    let mut ledger = vec![[0; ACCOUNTS]];
    let store = tree::open(directory.path(), options(&disk, SyncMode::Always)).unwrap();
    run(&store, &disk, &mut ledger, &mut random, 10);
    drop(store);
    let moment = disk.take_moments().pop().unwrap();
    let mut image: BTreeMap<u64, Vec<u8>> = moment.image(Fate::Everything, &mut |_| 0);
    let segment = image.get_mut(&1).unwrap();
    segment[100] ^= 1;
    let opened = tree::open(directory.path(), options(&Disk::of(image), SyncMode::Always));
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
    let mut ledger = vec![[0; ACCOUNTS]];
    for _ in 0..2 {
        let store = tree::open(directory.path(), options(&disk, SyncMode::Always)).unwrap();
        run(&store, &disk, &mut ledger, &mut random, 3);
    }
    let moment = disk.take_moments().pop().unwrap();
    let mut image = moment.image(Fate::Everything, &mut |_| 0);
    let segment = image.get_mut(&1).unwrap();
    let last = segment.iter().rposition(|byte| *byte != 0).unwrap();
    segment[last] ^= 1;
    let damaged = Disk::of(image);
    for _ in 0..2 {
        let opened = tree::open(directory.path(), options(&damaged, SyncMode::Always));
        match opened.map(drop) {
            Err(OpenError::Damaged { what, .. }) => {
                assert!(what.contains("log segment 1"), "{what}");
            }
            other => panic!("{other:?}"),
        }
    }
}

/// Every call to the disk fails in turn, in each way: the answer is an error, reads go on, and
/// what was acknowledged stays.
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

/// Tells whether the failure was met.
fn fail_at(nth: usize, failure: Failure) -> bool {
    let directory = fast_directory();
    let disk = Disk::default();
    let mut random = Random::new(7);
    let mut ledger = vec![[0; ACCOUNTS]];
    let store = tree::open(directory.path(), options(&disk, SyncMode::Always)).unwrap();
    let main = store.database("main").unwrap();
    disk.fail(nth, failure);
    let mut acknowledged = 0;
    let mut is_refused = false;
    {
        let mut writer = store.writer().unwrap();
        for _ in 0..12 {
            let before = ledger.len();
            transfer(writer.begin().unwrap(), main, &mut ledger, &mut random).unwrap();
            writer.commit().unwrap();
            match writer.flush() {
                Ok(()) => acknowledged = before as u64,
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
    assert_eq!(check(&store, &ledger), acknowledged, "{failure:?} at call {nth}");
    let is_met = disk.mend();
    assert!(failure == Failure::Broken || !is_refused, "{failure:?} at call {nth} needs a restart");
    if !is_refused {
        // A full disk that has room again is written to again.
        run(&store, &disk, &mut ledger, &mut random, 1);
        acknowledged = check(&store, &ledger);
    }
    drop(store);
    let store = tree::open(directory.path(), options(&disk, SyncMode::Always)).unwrap();
    let found = check(&store, &ledger);
    assert!(found >= acknowledged, "{failure:?} at call {nth}: {found} of {acknowledged}");
    is_met
}

/// With an interval the keeper syncs what no commit waited for.
#[test]
fn an_interval_makes_writes_durable_in_the_background() {
    let directory = fast_directory();
    let disk = Disk::default();
    let mut random = Random::new(3);
    let mut ledger = vec![[0; ACCOUNTS]];
    let sync = SyncMode::Interval(Duration::from_millis(5));
    let store = tree::open(directory.path(), options(&disk, sync)).unwrap();
    run(&store, &disk, &mut ledger, &mut random, 3);
    let written = ledger.len() as u64 - 1;
    let is_durable = || {
        let moment = disk.now();
        let image = moment.image(Fate::Nothing, &mut |_| 0);
        let after = fast_directory();
        copy_base(directory.path(), after.path());
        let store = tree::open(after.path(), options(&Disk::of(image), sync)).unwrap();
        check(&store, &ledger) == written
    };
    let patience = Instant::now() + Duration::from_secs(30);
    while !is_durable() {
        assert!(Instant::now() < patience, "never synced");
    }
}
