//! Power failures of the whole disk: log and base together, including LMDB's own writes and the
//! entries of directories.
//!
//! A process with a library between itself and its disk opens a store, writes with a checkpoint
//! for almost every group, and is killed in the middle of some call, several times over. For
//! each moment at which something was about to become durable, images of the disk are built;
//! each is opened, compared with the ledger, written to and opened again.
//!
//! `TOKAIDO_POWER_LOSS_IMAGES=100000` makes it a long run; `TOKAIDO_SEED` repeats one.

use tokaido_store::tree::SyncMode;

use crate::{
    fate::FATES,
    journal::{self, Event, WholeDisk},
    ledger::{self, Ledger},
    preload::{Fault, Scene, Stage, reopen},
    random::{Random, images_wanted, seed},
    store::fast_directory,
};

const IMAGES: usize = 2400;

/// Processes in one run; each but the last is killed.
const LIVES: usize = 4;

/// A process ends at one of that many calls, or after that many groups.
const CALLS_MAX: usize = 60;
const GROUPS: usize = 5;

#[test]
fn a_power_failure_amid_checkpoints_loses_nothing_that_was_acknowledged() {
    let mut random = Random::new(seed());
    let images = images_wanted(IMAGES);
    let mut checked = 0;
    let mut scenes = [Scene::new, Scene::with_runs].into_iter().cycle();
    while checked < images {
        let scene = scenes.next().expect("it goes on for ever")();
        checked += power_failures(&scene, &mut random, SyncMode::Always);
    }
    println!("{checked} images opened");
}

/// Without a sync for each group, only whole transactions are promised, in order.
#[test]
fn without_syncs_a_power_failure_amid_checkpoints_leaves_a_whole_prefix() {
    power_failures(&Scene::new(), &mut Random::new(seed()), SyncMode::Os);
    power_failures(&Scene::with_runs(), &mut Random::new(seed()), SyncMode::Os);
}

/// One run, and the images of its moments. Returns their number.
fn power_failures(scene: &Scene, random: &mut Random, sync: SyncMode) -> usize {
    let seed = random.below(1 << 30) as u64;
    for life in 0..LIVES {
        let nth = random.below(CALLS_MAX) + 1;
        let fault = (life + 1 < LIVES).then_some(Fault { name: "kill", nth });
        let output =
            scene.run("whole_disk::a_process_that_writes", &format!("{seed} {sync}"), fault);
        let said = String::from_utf8_lossy(&output.stderr);
        let is_ended = output.status.success() || output.status.code().is_none();
        assert!(is_ended, "life {life} of {seed}, {fault:?}: {said}");
    }
    let mut disk = WholeDisk::default();
    let mut checked = 0;
    for event in scene.events() {
        let is_moment = event.is_sync();
        if is_moment {
            checked += images(&disk, &event, seed, sync, random);
        }
        if let Event::Faulted { call } = &event {
            println!("killed in: {call}");
        }
        disk.happen(&event);
    }
    checked + images(&disk, &Event::Opening, seed, sync, random)
}

/// Opens what the disk may hold if the power fails in the middle of `event`.
fn images(
    disk: &WholeDisk,
    event: &Event,
    seed: u64,
    sync: SyncMode,
    random: &mut Random,
) -> usize {
    for fate in FATES {
        let after = fast_directory();
        journal::make(&disk.image(fate, random, event), after.path());
        let mut ledger = Ledger::new(seed);
        let found = ledger.check(&reopen(after.path(), sync));
        if sync == SyncMode::Always {
            let acknowledged = disk.acknowledged;
            assert!(found >= acknowledged, "{found} of {acknowledged} left, {fate:?} at {event:?}");
        }
        // The store can be used from there.
        ledger = Ledger::up_to(seed, found);
        ledger::run(&reopen(after.path(), sync), &mut ledger, random, 1, |_| {});
        assert_eq!(ledger.check(&reopen(after.path(), sync)), ledger.last());
    }
    FATES.len()
}

/// The child: opens the store, reports what it found, and writes.
#[test]
fn a_process_that_writes() {
    let Some(stage) = Stage::of_this_process() else { return };
    let [seed, sync] = &stage.task[..] else { panic!("{:?}", stage.task) };
    let (seed, sync) = (seed.parse().unwrap(), sync.parse().unwrap());
    let store = stage.open(sync).unwrap();
    let found = Ledger::new(seed).check(&store);
    // Readers may have seen it from now on, so it must stay.
    stage.acknowledge(found);
    let mut ledger = Ledger::up_to(seed, found);
    let mut random = Random::new(seed ^ found);
    ledger::run(&store, &mut ledger, &mut random, GROUPS, |last| stage.acknowledge(last));
}
