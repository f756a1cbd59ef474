//! Power failures of a store that every life seals which is closed: a seal that the disk still
//! holds, or holds in part, speaks the truth.
//!
//! A process opens the store, reads or writes, and closes it or is killed in the middle of some
//! call, several times over. Of each moment at which something was about to become durable, images
//! of the disk are built, among them such that hold an old seal, and not what has broken it.
//!
//! `TOKAIDO_POWER_LOSS_IMAGES=100000` makes it a long run; `TOKAIDO_SEED` repeats one.

use std::path::Path;

use tokaido_store::tree::{self, TreeStore};

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

/// Images of each kind where there is one moment only.
const DRAWS: usize = 4;

/// A life that is killed ends at one of that many calls.
const CALLS_MAX: usize = 30;

fn options() -> tree::Options {
    tree::Options { size_max: 1 << 30, log_left_bytes_max: 0, ..tree::Options::default() }
}

fn reopen(directory: &Path) -> TreeStore {
    open(directory, &options()).unwrap()
}

fn is_sealed(directory: &Path) -> bool {
    std::fs::read(directory.join("tokaido.lock")).is_ok_and(|lock| lock.starts_with(b"TOKAIDOS"))
}

#[test]
fn a_power_failure_leaves_no_seal_that_lies() {
    let mut random = Random::new(seed());
    let images = images_wanted(IMAGES);
    let (mut checked, mut sealed) = (0, 0);
    while checked < images {
        let (more, of_them_sealed) = power_failures(&mut random);
        checked += more;
        sealed += of_them_sealed;
    }
    println!("{checked} images opened, {sealed} of them with a seal");
    assert!(sealed > 0, "no image had a seal");
}

/// One run, and the images of its moments. Gives their number, and how many had a seal.
fn power_failures(random: &mut Random) -> (usize, usize) {
    let scene = Scene::new();
    let seed = random.below(1 << 30) as u64;
    for life in 0..LIVES {
        let nth = random.below(CALLS_MAX) + 1;
        let fault = (random.below(3) == 0).then_some(Fault { name: "kill", nth });
        let task = format!("{seed} {}", random.below(3));
        let output = scene.run("seals::a_process_that_seals", &task, fault);
        let said = String::from_utf8_lossy(&output.stderr);
        let is_ended = output.status.success() || output.status.code().is_none();
        assert!(is_ended, "life {life} of {seed}, {fault:?}: {said}");
    }
    let mut disk = WholeDisk::default();
    let (mut checked, mut sealed) = (0, 0);
    for event in scene.events() {
        let is_moment = event.is_sync() || matches!(event, Event::Opening);
        if is_moment {
            for fate in FATES {
                let after = fast_directory();
                journal::make(&disk.image(fate, random, &event), after.path());
                checked += 1;
                sealed += usize::from(is_sealed(after.path()));
                let found = Ledger::new(seed).check(&reopen(after.path()));
                let acknowledged = disk.acknowledged;
                assert!(
                    found >= acknowledged,
                    "{found} of {acknowledged} left, {fate:?} at {event:?}"
                );
                let report = check(after.path()).unwrap();
                assert!(report.is_sound(), "{:?}, {fate:?} at {event:?}", report.findings);
                // And it goes on from there.
                let mut ledger = Ledger::up_to(seed, found);
                ledger::run(&reopen(after.path()), &mut ledger, random, 1, |_| {});
                assert_eq!(ledger.check(&reopen(after.path())), ledger.last());
            }
        }
        disk.happen(&event);
    }
    (checked, sealed)
}

/// A life is killed at each call in turn: the first one, one that finds a sealed store, or one that
/// finds what another has left that was killed. What the next one acknowledges is on the disk, though
/// it writes on in files that those have left; also if one came between that only read, and sealed
/// what it found.
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
                let output = scene.run("seals::a_process_that_seals", task, fault);
                let is_ended = output.status.success() || output.status.code().is_none();
                assert!(is_ended, "{}", String::from_utf8_lossy(&output.stderr));
            }
            let place = format!("after {before:?}, killed at call {nth}, read: {is_read}");
            check_last_group(&scene, &mut random, &place);
        }
    }
}

/// A life is killed at each call in turn, and one comes after it that only reads, and seals what it
/// found. Whatever the power takes then, the next one may write.
#[test]
fn a_seal_vouches_for_nothing_that_is_not_on_the_disk() {
    let mut random = Random::new(seed());
    for nth in 1..CALLS_MAX {
        let scene = Scene::new();
        let killed = Fault { name: "kill", nth };
        for (fault, task) in [(Some(killed), "53 1"), (None, "53 0")] {
            let output = scene.run("seals::a_process_that_seals", task, fault);
            let is_ended = output.status.success() || output.status.code().is_none();
            assert!(is_ended, "{}", String::from_utf8_lossy(&output.stderr));
        }
        let mut disk = WholeDisk::default();
        scene.events().iter().for_each(|event| disk.happen(event));
        for fate in FATES.repeat(DRAWS) {
            let after = fast_directory();
            journal::make(&disk.image(fate, &mut random, &Event::Opening), after.path());
            // Of what nobody has written to there may be nothing.
            if after.path().join("data.mdb").exists() {
                let findings = check(after.path()).unwrap().findings;
                assert!(findings.is_empty(), "killed at call {nth}, {fate:?}: {findings:?}");
            }
            let found = Ledger::new(53).check(&reopen(after.path()));
            let mut ledger = Ledger::up_to(53, found);
            ledger::run(&reopen(after.path()), &mut ledger, &mut random, 1, |_| {});
            assert_eq!(ledger.check(&reopen(after.path())), ledger.last());
        }
    }
}

/// The group that the last life has acknowledged was on the disk at that moment.
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
        let found = Ledger::new(53).check(&reopen(after.path()));
        assert!(found >= acknowledged, "{place}: {found} of {acknowledged} left, {fate:?}");
    }
}

/// The child: opens the store, says what it found, and writes so many groups.
#[test]
fn a_process_that_seals() {
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
