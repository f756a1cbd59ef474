//! Every call to the disk fails in turn during a compaction, a backup from inside or outside, a
//! restore and a salvage. Then the operation reports the system's error, the store is as whole as
//! before, and whatever has the target's name is a whole store. Once the disk is mended, the same
//! process repeats the operation over what the first attempt has left, and the store can be used.
//!
//! Images of what a power failure may leave are checked after the failure and at the end: one each,
//! or one of each kind if `TOKAIDO_POWER_LOSS_IMAGES` is set. `TOKAIDO_SEED` repeats a run. Calls
//! that may fail without an error are listed, and then images of all kinds must be whole.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::Duration,
};

use tempfile::TempDir;
use tokaido_store::{
    NewRecord, Store, transact,
    tree::{self, Options, SyncMode},
};

use crate::{
    fate::{Change, FATES, Fate},
    journal::{self, Event, WholeDisk},
    ledger::{self, Ledger},
    preload::{Fault, Scene, Stage, options},
    random::{Random, env, seed},
    store::{check, fast_directory, open},
};

/// The seed of the store's ledger.
const LEDGER_SEED: u64 = 71;
const GROUPS: usize = 2;

/// The names on the disk of a scene.
const STORE: &str = "store";
const TARGET: &str = "target";

/// The kinds of failure, by the names that preload.c knows.
const FAULTS: [&str; 7] = ["space", "short", "broken", "closed", "unread", "sync", "once"];

/// More calls than any operation makes.
const CALLS_MAX: usize = 10_000;

/// A compaction checks the store, which reads every page with its own call: of these, only one in
/// so many is made to fail.
const READS_STEP: usize = 97;

/// LMDB copies through two buffers of a megabyte each: this fills more than one.
const BULK_RECORDS: usize = 500;
const BULK_VALUE: [u8; 3000] = [b'b'; 3000];

/// How far a process has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Failed = 1,
    /// The target has its name although the operation failed.
    Remained,
    Done,
}

#[test]
fn every_call_of_a_compaction_may_fail() {
    let expected = [
        "rename store/data.mdb.compact",
        "sync store/data.mdb.compact",
        "sync store",
        "read store/data.mdb",
    ];
    every_call_fails("compact", BULK_RECORDS, &expected);
}

#[test]
fn every_call_of_a_backup_from_inside_may_fail() {
    let expected = ["rename target", "write target", "open target", "read target"];
    every_call_fails("inside", BULK_RECORDS, &expected);
}

#[test]
fn every_call_of_a_backup_from_outside_may_fail() {
    let expected = ["rename target", "sync target", "mkdir target", "read target"];
    every_call_fails("outside", BULK_RECORDS, &expected);
}

/// Each call copies only a few pages, so the store must be small.
#[test]
fn every_call_of_a_restore_may_fail() {
    let expected = ["rename target", "sync target", "write target", "open store", "read store"];
    every_call_fails("restore", 0, &expected);
}

#[test]
fn every_call_of_a_salvage_may_fail() {
    every_call_fails("salvage", 0, &["rename target", "sync target", "write target", "open store"]);
}

/// Runs processes until there is no call left to fail, for each kind of failure.
fn every_call_fails(operation: &str, bulk: usize, expected: &[&str]) {
    let original = Original::new(bulk);
    let seed = seed();
    // Unreadable data does not make a salvage fail: it is reported and left out.
    let faults = FAULTS.into_iter().filter(|name| operation != "salvage" || *name != "unread");
    let faults: Vec<&str> = faults.collect();
    let calls: Vec<BTreeMap<String, usize>> = std::thread::scope(|scope| {
        let runs: Vec<_> = faults
            .iter()
            .map(|name| scope.spawn(|| run_processes(operation, name, &original, seed)))
            .collect();
        runs.into_iter().map(|run| run.join().unwrap()).collect()
    });
    for (name, calls) in faults.iter().zip(&calls) {
        println!("{operation}, {name}: {} calls failed: {calls:?}", calls.values().sum::<usize>());
    }
    for what in expected {
        let is_there = calls.iter().flat_map(BTreeMap::keys).any(|call| call.starts_with(what));
        assert!(is_there, "{what} never failed");
    }
}

fn run_processes(
    operation: &str,
    name: &'static str,
    original: &Original,
    seed: u64,
) -> BTreeMap<String, usize> {
    let mut calls = BTreeMap::new();
    let step = if (operation, name) == ("compact", "unread") { READS_STEP } else { 1 };
    for nth in (1..CALLS_MAX).step_by(step) {
        let fault = Fault { name, nth };
        let random = &mut Random::new(seed ^ (nth as u64) << 32);
        let Some(call) = fails_at(operation, fault, original, random) else { return calls };
        let call: String = call.chars().filter(|c| !c.is_ascii_digit()).collect();
        *calls.entry(call).or_default() += 1;
    }
    panic!("the calls never end");
}

/// A store with a part of its ledger in the base and a part in the log.
struct Original {
    directory: TempDir,
    /// How many records it has besides those of the ledger.
    bulk: usize,
    /// Its last transaction.
    last: u64,
}

impl Original {
    fn new(bulk: usize) -> Self {
        let (made, directory) = (fast_directory(), fast_directory());
        let mut ledger = Ledger::new(LEDGER_SEED);
        let mut random = Random::new(LEDGER_SEED);
        let options = Options {
            memtable_bytes: 64 << 20,
            log_growth_bytes: 4096,
            ..options(SyncMode::Always)
        };
        let store = open(made.path(), &options).unwrap();
        let database = store.database("bulk").unwrap();
        transact(&mut *store.writer().unwrap(), |tx| {
            (0..bulk)
                .try_for_each(|n| tx.put(database, &n.to_le_bytes(), NewRecord::of(&BULK_VALUE)))
        })
        .unwrap();
        ledger::run(&store, &mut ledger, &mut random, GROUPS, |_| {});
        store.checkpoint().unwrap();
        drop(store);
        let options = Options { runs_from_bytes: 0, runs_bytes_min: u64::MAX, ..options };
        let store = open(made.path(), &options).unwrap();
        ledger::run(&store, &mut ledger, &mut random, GROUPS, |_| {});
        store.checkpoint().unwrap();
        ledger::run(&store, &mut ledger, &mut random, GROUPS, |_| {});
        // As a kill would leave it: closing the store would shorten its log.
        copy(made.path(), directory.path(), &mut |_, _| {});
        drop(store);
        Self { directory, bulk, last: ledger.last() }
    }

    /// Puts the store into `root`, and records that on the disk.
    fn put_below(&self, root: &Path, disk: &mut WholeDisk) {
        let mut found: Vec<(String, Option<PathBuf>)> = Vec::new();
        fs::create_dir(root.join(STORE)).unwrap();
        copy(self.directory.path(), &root.join(STORE), &mut |path, is_file| {
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            found.push((name, is_file.then(|| path.to_owned())));
        });
        disk.happen(&Event::MadeDirectory { path: STORE.to_owned() });
        for (path, file) in found {
            let Some(file) = file else {
                disk.happen(&Event::MadeDirectory { path });
                continue;
            };
            let inode = fs::metadata(&file).unwrap().ino();
            let change = Change::Write { offset: 0, bytes: fs::read(&file).unwrap() };
            disk.happen(&Event::Created { inode, path });
            disk.happen(&Event::Changed { inode, change });
            disk.happen(&Event::Synced { inode });
        }
        let runs = self.directory.path().join("runs").is_dir().then_some("store/runs");
        for path in ["", STORE, "store/log"].into_iter().chain(runs) {
            disk.happen(&Event::DirectorySynced { path: path.to_owned() });
        }
        disk.acknowledged = self.last;
    }

    /// Checks a store that was made from this one: it is sound and has all records, those of the
    /// ledger up to the transaction that is returned.
    fn check_copy(&self, directory: &Path, place: &str) -> u64 {
        let report = check(directory).unwrap_or_else(|error| panic!("{error}, {place}"));
        assert!(report.is_sound(), "{:?}, {place}", report.findings);
        let bulk = report.databases.iter().find(|database| database.name == "bulk");
        let records = bulk.map_or(0, |database| database.statistics.records);
        assert_eq!(records, self.bulk as u64, "{place}");
        let opened = open(directory, &options(SyncMode::Always));
        let store = opened.unwrap_or_else(|error| panic!("{error}, {place}"));
        Ledger::new(LEDGER_SEED).check(&store)
    }
}

/// Copies everything below a directory; reports each new path, and whether it is a file.
fn copy(from: &Path, to: &Path, tell: &mut dyn FnMut(&Path, bool)) {
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        // It is shared memory.
        if entry.file_name() == "lock.mdb" {
            continue;
        }
        let new = to.join(entry.file_name());
        let is_file = entry.file_type().unwrap().is_file();
        if is_file {
            fs::copy(entry.path(), &new).unwrap();
        } else {
            fs::create_dir(&new).unwrap();
        }
        tell(&new, is_file);
        if !is_file {
            copy(&entry.path(), &new, tell);
        }
    }
}

/// Returns the call that was the first to fail; `None` if there was none.
fn fails_at(
    operation: &str,
    fault: Fault,
    original: &Original,
    random: &mut Random,
) -> Option<String> {
    let scene = Scene::new();
    let mut disk = WholeDisk::default();
    original.put_below(&scene.store(), &mut disk);
    let child = "upkeep_faults::a_process_that_keeps_a_store_up_and_meets_faults";
    let output = scene.run(child, operation, Some(fault));
    let events = scene.events();
    let call = events.iter().find_map(|event| match event {
        Event::Faulted { call } => Some(call.clone()),
        _ => None,
    });
    let place = format!("{operation}, {fault:?}, which is {call:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{place}: {said}");
    let mut moments = Moments { disk, original, operation, is_done: false, place };
    let (mut has_failed, mut is_replaced, mut may_succeed) = (false, false, call.is_none());
    for event in events {
        moments.disk.happen(&event);
        match &event {
            Event::Renamed { from, .. } => is_replaced |= from.ends_with("data.mdb.compact"),
            Event::Faulted { call } => may_succeed = !is_replaced && may_fail(operation, call),
            Event::Step(step) if *step == Step::Failed as u64 => {
                has_failed = true;
                moments.check(&one_fate(random), random);
            }
            // On a disk that no longer does anything, it cannot be taken back either.
            Event::Step(step) if *step == Step::Remained as u64 => {
                assert_eq!(fault.name, "broken", "{}: the name is taken", moments.place);
            }
            Event::Step(_) => {
                moments.is_done = true;
                if call.is_some() && !has_failed {
                    moments.check(&FATES, random);
                }
            }
            _ => {}
        }
    }
    let place = &moments.place;
    assert!(has_failed || may_succeed, "{place}: nobody was told");
    assert!(!has_failed || call.is_some(), "{place}: {said}");
    moments.check(&one_fate(random), random);
    // And as it is without a power failure.
    moments.check_files(&scene.store(), &moments.place);
    call
}

/// Whether an operation may succeed without that call, if it is made before a compaction has
/// replaced the base: the end of the log is not marked or truncated when a store is opened or
/// closed; or segments and runs that are no longer needed are not removed.
fn may_fail(operation: &str, call: &str) -> bool {
    let (what, path) = call.split_once(' ').unwrap();
    let store = match operation {
        "compact" | "inside" => Some(STORE),
        // It opens the store that it makes.
        "salvage" => path.split('/').next().filter(|name| name.ends_with(".making")),
        _ => None,
    };
    let Some(rest) = store.and_then(|store| path.strip_prefix(store)) else { return false };
    match what {
        "write" | "truncate" => rest.starts_with("/log/"),
        "remove" => rest.starts_with("/log/") || rest.starts_with("/runs/"),
        "open" => ["", "/data.mdb", "/log"].contains(&rest),
        "read" | "list" => ["/data.mdb", "/log"].contains(&rest),
        "sync" => rest.is_empty(),
        _ => false,
    }
}

/// What may happen to unsynced data: one way, or all ways in a long run.
fn one_fate(random: &mut Random) -> Vec<Fate> {
    match env("TOKAIDO_POWER_LOSS_IMAGES") {
        Some(_) => FATES.to_vec(),
        None => vec![FATES[random.below(FATES.len())]],
    }
}

/// The contents of the disk during an operation.
struct Moments<'o> {
    disk: WholeDisk,
    original: &'o Original,
    operation: &'o str,
    is_done: bool,
    /// Which run this is, for messages.
    place: String,
}

impl Moments<'_> {
    /// Checks what the disk may hold if the power fails now.
    fn check(&self, fates: &[Fate], random: &mut Random) {
        for fate in fates {
            let after = fast_directory();
            journal::make(&self.disk.image(*fate, random, &Event::Opening), after.path());
            self.check_files(after.path(), &format!("{}, power fails, {fate:?}", self.place));
        }
    }

    /// The store has what was acknowledged; whatever has the target's name is whole.
    fn check_files(&self, root: &Path, place: &str) {
        let found = self.original.check_copy(&root.join(STORE), place);
        let acknowledged = self.disk.acknowledged;
        assert!(found >= acknowledged, "{found} of {acknowledged} left, {place}");
        assert!(!root.join(STORE).join("data.mdb.compact").exists(), "{place}");
        let target = root.join(TARGET);
        if target.exists() {
            assert_eq!(self.original.check_copy(&target, place), self.original.last, "{place}");
        } else {
            assert!(!self.is_done || self.operation == "compact", "it is gone, {place}");
        }
        for entry in fs::read_dir(root).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let is_known = [STORE, TARGET].contains(&&name[..]);
            assert!(is_known || name.ends_with(".making"), "{name} is there, {place}");
        }
    }
}

/// The child: does what it is told, whatever happens; after a failure, the disk is mended and it
/// tries again.
#[test]
fn a_process_that_keeps_a_store_up_and_meets_faults() {
    const PATIENCE: Duration = Duration::from_secs(60);
    let Some(stage) = Stage::of_this_process() else { return };
    std::thread::spawn(|| {
        std::thread::sleep(PATIENCE);
        eprintln!("it hangs");
        std::process::abort();
    });
    let operation = &stage.task[0];
    let [store, target] = [STORE, TARGET].map(|name| stage.store().join(name));
    let first = run(operation, &store, &target);
    stage.mend();
    if let Err(error) = first {
        println!("{error}");
        check_error(&error);
        stage.step(Step::Failed as u64);
        assert!(tree::check(&store).unwrap().is_sound());
        if target.exists() {
            stage.step(Step::Remained as u64);
            fs::remove_dir_all(&target).unwrap();
        }
        run(operation, &store, &target).unwrap();
    }
    stage.step(Step::Done as u64);
    let store = open(&store, &options(SyncMode::Always)).unwrap();
    let found = Ledger::new(LEDGER_SEED).check(&store);
    let mut ledger = Ledger::up_to(LEDGER_SEED, found);
    let mut random = Random::new(found);
    ledger::run(&store, &mut ledger, &mut random, 1, |last| stage.acknowledge(last));
}

/// Performs the operation once. The error is what a user would be told.
fn run(operation: &str, store: &Path, target: &Path) -> Result<(), String> {
    let options = Options { size_max: 1 << 30, ..Options::default() };
    let told = |error: &dyn std::fmt::Display| error.to_string();
    match operation {
        "compact" => tree::compact(store, options).map(drop).map_err(|error| told(&error)),
        "inside" => {
            let store = tree::open(store, options).map_err(|error| told(&error))?;
            store.backup(target).map(drop).map_err(|error| told(&error))
        }
        "outside" => tree::backup(store, target).map(drop).map_err(|error| told(&error)),
        "restore" => tree::restore(store, target).map(drop).map_err(|error| told(&error)),
        "salvage" => tree::salvage(store, target).map(drop).map_err(|error| told(&error)),
        other => panic!("{other}"),
    }
}

/// It reports the system's error, or what to do about it, and suspects nothing else.
fn check_error(error: &str) {
    let is_clear = ["os error", "Input/output error", "No space", "free some space"];
    assert!(is_clear.iter().any(|text| error.contains(text)), "{error}");
    assert!(!error.contains("damaged") && !error.contains("bug"), "{error}");
}
