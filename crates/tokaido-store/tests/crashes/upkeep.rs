//! Power failures while a store is compacted, backed up and restored.
//!
//! Processes with a library between themselves and their disk do this one after the other, and some
//! are killed in the middle of a call. For each moment at which something was about to become
//! durable or to get another name, images of the disk are built. In each, the store holds what was
//! acknowledged and can be used, and whatever has the name of a backup is a complete one.
//!
//! `TOKAIDO_POWER_LOSS_IMAGES=100000` makes it a long run; `TOKAIDO_SEED` repeats one.

use std::{fs, path::Path};

use tokaido_store::{
    Store,
    tree::{self, SyncMode},
};

use crate::{
    fate::FATES,
    journal::{self, Event, WholeDisk},
    ledger::{self, Ledger},
    preload::{Fault, Scene, Stage, options, reopen},
    random::{Random, images_wanted, seed},
    store::{check, fast_directory, open},
};

const IMAGES: usize = 400;

/// The names on the disk of a scene.
const STORE: &str = "store";
const COPY: &str = "copy";
const RESTORED: &str = "restored";

/// The processes of a run, and whether they are killed.
const LIVES: [(&str, bool); 9] = [
    ("write", false),
    ("compact", true),
    // On what the compaction has left.
    ("write", true),
    ("compact", false),
    ("backup", true),
    ("write", true),
    ("backup", false),
    ("restore", true),
    ("restore", false),
];

/// A process is killed at one of that many calls, or of that many directory syncs, after which
/// names are durable: about as many as it makes, so that now and then one is not killed.
const CALLS_MAX: usize = 30;
const NAMINGS_MAX: usize = 4;

/// Groups that one process writes.
const GROUPS: usize = 3;

#[test]
fn a_power_failure_amid_upkeep_harms_neither_the_store_nor_a_backup() {
    let mut random = Random::new(seed());
    let images = images_wanted(IMAGES);
    let mut checked = 0;
    while checked < images {
        checked += power_failures(&mut random);
    }
    println!("{checked} images opened");
}

/// How far a process has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Everything acknowledged so far goes into the backup that is made from here on.
    BackupBegun = 1,
    BackupMade,
    Restored,
}

/// One run, and the images of its moments. Returns their number.
fn power_failures(random: &mut Random) -> usize {
    let scene = Scene::new();
    let seed = random.below(1 << 30) as u64;
    for (n, (life, is_killed)) in LIVES.into_iter().enumerate() {
        let (name, calls) = [("kill", CALLS_MAX), ("names", NAMINGS_MAX)][random.below(2)];
        let nth = random.below(calls) + 1;
        let fault = is_killed.then_some(Fault { name, nth });
        // A backup is made from outside or by the process that has the store open.
        let how = ["outside", "inside"][random.below(2)];
        let task = format!("{seed} {life} {how}");
        let output = scene.run("upkeep::a_process_that_keeps_a_store_up", &task, fault);
        let said = String::from_utf8_lossy(&output.stderr);
        let is_ended = output.status.success() || output.status.code().is_none();
        assert!(is_ended, "life {n}, {task}, {fault:?}: {said}");
    }
    let mut moments =
        Moments { disk: WholeDisk::default(), seed, backed_up: None, steps: Vec::new() };
    let mut checked = 0;
    for event in scene.events() {
        let is_moment = event.is_sync() || matches!(event, Event::Renamed { .. });
        if is_moment {
            checked += moments.check(&event, random);
        }
        if let Event::Faulted { call } = &event {
            println!("killed in: {call}");
        }
        moments.happen(&event);
    }
    assert!(scene.store().join(RESTORED).exists(), "the last life was not killed");
    checked + moments.check(&Event::Opening, random)
}

struct Moments {
    disk: WholeDisk,
    seed: u64,
    /// The last transaction that was acknowledged before the backup began.
    backed_up: Option<u64>,
    steps: Vec<u64>,
}

impl Moments {
    fn happen(&mut self, event: &Event) {
        self.disk.happen(event);
        if let Event::Step(step) = event {
            self.steps.push(*step);
            if *step == Step::BackupBegun as u64 {
                self.backed_up = Some(self.disk.acknowledged);
            }
        }
    }

    fn has(&self, step: Step) -> bool {
        self.steps.contains(&(step as u64))
    }

    /// Checks what the disk may hold if the power fails in the middle of `event`.
    fn check(&self, event: &Event, random: &mut Random) -> usize {
        for fate in FATES {
            let after = fast_directory();
            journal::make(&self.disk.image(fate, random, event), after.path());
            let place = format!("{fate:?} at {event:?}, seed {}", self.seed);
            self.check_store(&after.path().join(STORE), random, &place);
            for (name, made) in [(COPY, Step::BackupMade), (RESTORED, Step::Restored)] {
                self.check_copy(&after.path().join(name), made, &place);
            }
            for entry in fs::read_dir(after.path()).unwrap() {
                let name = entry.unwrap().file_name().into_string().unwrap();
                let is_known = [STORE, COPY, RESTORED].contains(&&name[..]);
                assert!(is_known || name.ends_with(".making"), "{name} is there, {place}");
            }
        }
        FATES.len()
    }

    /// The store has what was acknowledged, and can be used from there.
    fn check_store(&self, store: &Path, random: &mut Random, place: &str) {
        let found = Ledger::new(self.seed).check(&reopen(store, SyncMode::Always));
        let acknowledged = self.disk.acknowledged;
        assert!(found >= acknowledged, "{found} of {acknowledged} left, {place}");
        let mut ledger = Ledger::up_to(self.seed, found);
        ledger::run(&reopen(store, SyncMode::Always), &mut ledger, random, 1, |_| {});
        let report = check(store).unwrap();
        assert!(report.is_sound(), "{:?}, {place}", report.findings);
        assert!(!store.join("data.mdb.compact").exists(), "{place}");
    }

    /// Whatever has the name of a copy is a complete one.
    fn check_copy(&self, copy: &Path, made: Step, place: &str) {
        if !copy.exists() {
            assert!(!self.has(made), "{} is gone, {place}", copy.display());
            return;
        }
        let report = check(copy).unwrap();
        assert!(report.is_sound(), "{:?}, {place}", report.findings);
        let found = Ledger::new(self.seed).check(&reopen(copy, SyncMode::Always));
        let expected = self.backed_up.expect("nothing has the name before it is begun");
        assert!(found >= expected, "{found} of {expected} in {}, {place}", copy.display());
    }
}

/// The child: does what it is told.
#[test]
fn a_process_that_keeps_a_store_up() {
    let Some(stage) = Stage::of_this_process() else { return };
    let [seed, life, how] = &stage.task[..] else { panic!("{:?}", stage.task) };
    let seed = seed.parse().unwrap();
    let [store, copy, restored] = [STORE, COPY, RESTORED].map(|name| stage.store().join(name));
    let options = options(SyncMode::Always);
    match &life[..] {
        "write" => write(&stage, &open(&store, &options).unwrap(), seed),
        "compact" => drop(tree::compact(&store, options).unwrap()),
        // A process that was killed has made it and could not report it.
        "backup" if copy.exists() => {}
        "backup" if how == "outside" => {
            stage.step(Step::BackupBegun as u64);
            tree::backup(&store, &copy).unwrap();
            stage.step(Step::BackupMade as u64);
        }
        "backup" => {
            let store = open(&store, &options).unwrap();
            write(&stage, &store, seed);
            stage.step(Step::BackupBegun as u64);
            store.backup(&copy).unwrap();
            stage.step(Step::BackupMade as u64);
            write(&stage, &store, seed);
        }
        "restore" if restored.exists() => {}
        "restore" => {
            tree::restore(&copy, &restored).unwrap();
            stage.step(Step::Restored as u64);
        }
        life => panic!("{life}"),
    }
}

fn write(stage: &Stage, store: &dyn Store, seed: u64) {
    let found = Ledger::new(seed).check(store);
    stage.acknowledge(found);
    let mut ledger = Ledger::up_to(seed, found);
    let mut random = Random::new(seed ^ found);
    ledger::run(store, &mut ledger, &mut random, GROUPS, |last| stage.acknowledge(last));
}
