//! Power failures and kills of a store whose log every process empties when it shuts down cleanly:
//! a reader of the files finds what opening the store finds, or refuses.
//!
//! A process opens the store, reads or writes, and closes it or is killed in the middle of some
//! call, several times over. For each moment at which something was about to become durable, images
//! of the disk are built.
//!
//! `TOKAIDO_POWER_LOSS_IMAGES=100000` makes it a long run; `TOKAIDO_SEED` repeats one.

use std::path::Path;

use tokaido_store::{
    OpenError,
    tree::{self, Reader, ReaderError, TreeStore},
};

use crate::{
    fate::FATES,
    journal::{self, Event, WholeDisk},
    ledger::{self, Ledger},
    preload::{Fault, Scene, Stage},
    random::{Random, images_wanted, seed},
    store::{check, fast_directory, open},
};

const IMAGES: usize = 1200;
const LIVES: usize = 5;

/// Images of each kind if there is only one moment.
const DRAWS: usize = 4;

/// A process that is killed ends at one of its first `CALLS_MAX` calls.
const CALLS_MAX: usize = 30;

fn options() -> tree::Options {
    tree::Options { size_max: 1 << 30, log_left_bytes_max: 0, ..tree::Options::default() }
}

fn reopen(directory: &Path) -> TreeStore {
    open(directory, &options()).unwrap()
}

/// What a reader finds in the files of a store, then what opening it finds, which must be the same.
/// Returns whether the reader did not refuse, and the last transaction.
fn read_and_reopen(directory: &Path, seed: u64) -> (bool, u64) {
    let read = match Reader::open(directory) {
        Ok(reader) => Some(Ledger::new(seed).check_reader(&reader)),
        Err(ReaderError::LogNotEmpty { .. }) => None,
        // A store that was just being created may have no files yet.
        Err(ReaderError::Open(OpenError::Io { .. })) => None,
        Err(error) => panic!("{error}"),
    };
    let found = Ledger::new(seed).check(&reopen(directory));
    assert!(read.is_none_or(|read| read == found), "{read:?} was read, {found} is there");
    (read.is_some(), found)
}

#[test]
fn a_reader_finds_what_a_power_failure_leaves_or_refuses() {
    let mut random = Random::new(seed());
    let images = images_wanted(IMAGES);
    let (mut checked, mut read) = (0, 0);
    while checked < images {
        let (more, more_read) = power_failures(&mut random);
        checked += more;
        read += more_read;
    }
    println!("{checked} images opened, {read} of them read without");
    assert!(read > 0 && read < checked, "{read} of {checked} were read");
}

/// One run, and the images of its moments. Returns their number, and how many a reader accepted.
fn power_failures(random: &mut Random) -> (usize, usize) {
    let scene = Scene::new();
    let seed = random.below(1 << 30) as u64;
    for life in 0..LIVES {
        let nth = random.below(CALLS_MAX) + 1;
        let fault = (random.below(3) == 0).then_some(Fault { name: "kill", nth });
        let task = format!("{seed} {}", random.below(3));
        let output = scene.run("clean::a_process_that_empties_the_log", &task, fault);
        let said = String::from_utf8_lossy(&output.stderr);
        let is_ended = output.status.success() || output.status.code().is_none();
        assert!(is_ended, "life {life} of {seed}, {fault:?}: {said}");
    }
    let mut disk = WholeDisk::default();
    let (mut checked, mut read) = (0, 0);
    for event in scene.events() {
        let is_moment = event.is_sync() || matches!(event, Event::Opening);
        if is_moment {
            for fate in FATES {
                let after = fast_directory();
                journal::make(&disk.image(fate, random, &event), after.path());
                checked += 1;
                let (is_read, found) = read_and_reopen(after.path(), seed);
                read += usize::from(is_read);
                let acknowledged = disk.acknowledged;
                assert!(
                    found >= acknowledged,
                    "{found} of {acknowledged} left, {fate:?} at {event:?}"
                );
                let report = check(after.path()).unwrap();
                assert!(report.is_sound(), "{:?}, {fate:?} at {event:?}", report.findings);
                // The store can be used from there.
                let mut ledger = Ledger::up_to(seed, found);
                ledger::run(&reopen(after.path()), &mut ledger, random, 1, |_| {});
                assert_eq!(ledger.check(&reopen(after.path())), ledger.last());
            }
        }
        disk.happen(&event);
    }
    (checked, read)
}

/// Kills a process at each call in turn: the first one, one that finds an empty log, or one that
/// follows another killed one. What the next process acknowledges is on disk, although it continues
/// in files that those have left; also if a process that only read came in between.
#[test]
fn what_a_killed_life_has_left_unsynced_costs_the_next_one_nothing() {
    let mut random = Random::new(seed());
    let kill = |nth| Some(Fault { name: "kill", nth });
    let befores = [vec![], vec![None], vec![kill(CALLS_MAX / 2)], vec![None, kill(CALLS_MAX / 2)]];
    for before in befores {
        for (nth, is_read) in (1..CALLS_MAX).flat_map(|nth| [(nth, false), (nth, true)]) {
            let scene = Scene::new();
            let lives = before.iter().copied().chain([kill(nth)]).map(|fault| (fault, "53 1"));
            let reader = is_read.then_some((None, "53 0"));
            for (fault, task) in lives.chain(reader).chain([(None, "53 1")]) {
                let output = scene.run("clean::a_process_that_empties_the_log", task, fault);
                let is_ended = output.status.success() || output.status.code().is_none();
                assert!(is_ended, "{}", String::from_utf8_lossy(&output.stderr));
                check_files(&scene.store());
            }
            let place = format!("after {before:?}, killed at call {nth}, read: {is_read}");
            check_last_group(&scene, &mut random, &place);
        }
    }
}

/// Kills a process at each call in turn, and runs one after it that only reads. Whatever a power
/// failure takes then, the store is sound and the next process may write.
#[test]
fn a_life_that_only_reads_leaves_a_sound_store() {
    let mut random = Random::new(seed());
    for nth in 1..CALLS_MAX {
        let scene = Scene::new();
        let killed = Fault { name: "kill", nth };
        for (fault, task) in [(Some(killed), "53 1"), (None, "53 0")] {
            let output = scene.run("clean::a_process_that_empties_the_log", task, fault);
            let is_ended = output.status.success() || output.status.code().is_none();
            assert!(is_ended, "{}", String::from_utf8_lossy(&output.stderr));
        }
        let mut disk = WholeDisk::default();
        scene.events().iter().for_each(|event| disk.happen(event));
        for fate in FATES.repeat(DRAWS) {
            let after = fast_directory();
            journal::make(&disk.image(fate, &mut random, &Event::Opening), after.path());
            // If nobody has written to the store, there may be no files.
            if after.path().join("data.mdb").exists() {
                let findings = check(after.path()).unwrap().findings;
                assert!(findings.is_empty(), "killed at call {nth}, {fate:?}: {findings:?}");
            }
            let (_, found) = read_and_reopen(after.path(), 53);
            let mut ledger = Ledger::up_to(53, found);
            ledger::run(&reopen(after.path()), &mut ledger, &mut random, 1, |_| {});
            assert_eq!(ledger.check(&reopen(after.path())), ledger.last());
        }
    }
}

/// Whatever a process has left, killed or not: a reader finds what opening a copy finds.
fn check_files(store: &Path) {
    let copy = fast_directory();
    for directory in ["log", "runs"] {
        std::fs::create_dir(copy.path().join(directory)).unwrap();
    }
    for directory in ["", "log", "runs"] {
        let Ok(entries) = std::fs::read_dir(store.join(directory)) else { continue };
        for path in entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_file()) {
            let name = path.strip_prefix(store).unwrap();
            std::fs::copy(&path, copy.path().join(name)).unwrap();
        }
    }
    read_and_reopen(copy.path(), 53);
}

/// The group that the last process acknowledged was on disk at that moment.
fn check_last_group(scene: &Scene, random: &mut Random, place: &str) {
    let events = scene.events();
    let opened = events.iter().rposition(|event| matches!(event, Event::Opening)).unwrap();
    let last = events.iter().rposition(|event| matches!(event, Event::Acknowledged(_))).unwrap();
    assert!(last > opened, "{place}: nothing was written");
    let mut disk = WholeDisk::default();
    events[..last].iter().for_each(|event| disk.happen(event));
    let Event::Acknowledged(acknowledged) = events[last] else { unreachable!() };
    for fate in FATES.repeat(DRAWS) {
        let after = fast_directory();
        journal::make(&disk.image(fate, random, &Event::Opening), after.path());
        let (_, found) = read_and_reopen(after.path(), 53);
        assert!(found >= acknowledged, "{place}: {found} of {acknowledged} left, {fate:?}");
    }
}

/// The child: opens the store, reports what it found, and writes that many groups.
#[test]
fn a_process_that_empties_the_log() {
    let Some(stage) = Stage::of_this_process() else { return };
    let [seed, groups] = &stage.task[..] else { panic!("{:?}", stage.task) };
    let (seed, groups) = (seed.parse().unwrap(), groups.parse().unwrap());
    let store = stage.open_with(&options()).unwrap();
    let found = Ledger::new(seed).check(&store);
    stage.acknowledge(found);
    if groups > 0 {
        let mut ledger = Ledger::up_to(seed, found);
        let mut random = Random::new(seed ^ found);
        ledger::run(&store, &mut ledger, &mut random, groups, |last| stage.acknowledge(last));
    }
}
