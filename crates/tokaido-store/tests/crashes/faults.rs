//! Every call of the store to its disk fails in turn, in the base and in the log: there is a clear
//! error, reads continue, and once the disk is mended, writes continue, or a restart is demanded
//! and works. A failed sync is not retried. What was acknowledged stays, even if the power fails
//! afterwards.
//!
//! A process with a library between itself and its disk is run again and again, and each time the
//! first call to fail is a later one.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokaido_store::{CommitError, OpenError, Store, WriteError, Writer, tree::SyncMode};

use crate::{
    fate::Fate,
    journal::{self, Event, WholeDisk},
    ledger::{self, Databases, Ledger},
    preload::{Fault, Scene, Stage, patiently, reopen},
    random::Random,
    store::fast_directory,
};

const SEED: u64 = 53;
const GROUPS: usize = 6;

/// Children that run at one time: they mostly wait for a checkpoint to be tried again.
const CHILDREN: usize = 12;

/// More calls than a child makes.
const CALLS_MAX: usize = 1000;

#[test]
fn every_call_may_find_the_disk_full() {
    every_call_fails("space");
}

#[test]
fn every_write_may_be_cut_short() {
    every_call_fails("short");
}

#[test]
fn every_call_may_find_the_disk_broken() {
    every_call_fails("broken");
}

#[test]
fn every_file_may_refuse_to_open() {
    every_call_fails("closed");
}

/// Calls that read fail; reads through LMDB's map do not, since that would end the process.
#[test]
fn every_file_may_refuse_to_be_read() {
    every_call_fails("unread");
}

/// One sync fails and forgets what it should have written; all later ones succeed.
#[test]
fn every_sync_may_fail() {
    every_call_fails("sync");
}

/// What a child finds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Start {
    /// Nothing.
    New,
    /// A store with something in its log.
    Written,
    /// A store that was shut down with an empty log.
    Emptied,
    /// A store that has runs.
    Runs,
}

/// Runs children from each start until there is no call left to fail.
fn every_call_fails(name: &'static str) {
    let calls = Mutex::new(BTreeMap::<String, usize>::new());
    for start in [Start::New, Start::Written, Start::Emptied, Start::Runs] {
        run_children(name, start, &calls);
    }
    let calls = calls.into_inner().unwrap();
    println!("{name}: {} calls failed: {calls:?}", calls.values().sum::<usize>());
    let expected: &[&str] = match name {
        "sync" => {
            &["sync log/", "sync data.mdb", "sync log", "sync base.new/data.mdb", "sync runs/"]
        }
        "closed" => &["open log", "open data.mdb"],
        "unread" => &["read log/", "list log", "read data.mdb"],
        "broken" => &["open log/", "write data.mdb", "write log/", "sync data.mdb", "remove log/"],
        _ => &["open log/", "write data.mdb", "write log/", "mkdir log"],
    };
    for what in expected {
        assert!(calls.keys().any(|call| call.starts_with(what)), "{what} never failed");
    }
}

fn run_children(name: &'static str, start: Start, calls: &Mutex<BTreeMap<String, usize>>) {
    let next = AtomicUsize::new(1);
    std::thread::scope(|scope| {
        for _ in 0..CHILDREN {
            scope.spawn(|| {
                loop {
                    let nth = next.fetch_add(1, Ordering::SeqCst);
                    assert!(nth < CALLS_MAX, "the calls never end");
                    let Some(call) = fails_at(Fault { name, nth }, start) else { break };
                    *calls.lock().unwrap().entry(call).or_default() += 1;
                }
            });
        }
    });
}

/// Returns the call that was the first to fail, without its numbers; `None` if there was none.
fn fails_at(fault: Fault, start: Start) -> Option<String> {
    let scene = if start == Start::Runs { Scene::with_runs() } else { Scene::new() };
    if start != Start::New {
        let task = if start == Start::Emptied { EMPTIES_LOG } else { "unharmed" };
        let output = scene.run("faults::a_process_that_meets_faults", task, None);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let output = scene.run("faults::a_process_that_meets_faults", "harmed", Some(fault));
    let said = String::from_utf8_lossy(&output.stderr);
    let call = scene.events().into_iter().find_map(|event| match event {
        Event::Faulted { call } => Some(call),
        _ => None,
    });
    assert!(output.status.success(), "{fault:?}, which is {call:?}: {said}");
    let mut disk = WholeDisk::default();
    let mut failed = Vec::new();
    for event in scene.events() {
        match &event {
            Event::SyncFailed { inode } => failed.push(*inode),
            // After opening, the store may rely on what it reads from disk.
            Event::Opening => failed.clear(),
            Event::Synced { inode } | Event::WrittenThrough { inode, .. } => {
                assert!(!failed.contains(inode), "{call:?} was asked again");
            }
            _ => {}
        }
        disk.happen(&event);
    }
    let ledger = Ledger::new(SEED);
    let found = ledger.check(&reopen(&scene.store(), SyncMode::Always));
    assert!(found >= disk.acknowledged, "{call:?}: {found} of {}", disk.acknowledged);
    // And if the power fails now.
    let after = fast_directory();
    let image = disk.image(Fate::Nothing, &mut Random::new(0), &Event::Opening);
    journal::make(&image, after.path());
    let found = ledger.check(&reopen(after.path(), SyncMode::Always));
    assert!(found >= disk.acknowledged, "{call:?}, power: {found} of {}", disk.acknowledged);
    call.map(|call| call.chars().filter(|c| !c.is_ascii_digit()).collect())
}

/// The task of a child that leaves the log empty.
const EMPTIES_LOG: &str = "empties-log";

/// The child: opens the store and writes, whatever happens; after a failure, the disk is mended and
/// it continues.
#[test]
fn a_process_that_meets_faults() {
    let Some(stage) = Stage::of_this_process() else { return };
    let store = match stage.open(SyncMode::Always) {
        Ok(store) => store,
        Err(error) => {
            assert!(matches!(error, OpenError::Io { .. }), "{error}");
            stage.mend();
            stage.open(SyncMode::Always).unwrap()
        }
    };
    let found = Ledger::new(SEED).check(&store);
    stage.acknowledge(found);
    let mut ledger = Ledger::up_to(SEED, found);
    let harm = write(&store, &mut ledger, &stage);
    // Both a held view and a new one.
    let last = ledger.last();
    let seen = ledger.check(&store);
    assert!(seen == last || harm == Some(Harm::Undetermined) && seen < last, "{harm:?}");
    stage.mend();
    // A checkpoint in progress may have met the failure, too.
    let is_refused =
        patiently(|| match store.writer().and_then(|mut writer| writer.begin().map(drop)) {
            Ok(()) => Ok(false),
            Err(WriteError::Poisoned { .. }) => Ok(true),
            Err(error) => Err(error),
        });
    assert!(is_refused || harm != Some(Harm::Undetermined), "nobody knows what is on disk");
    // A merge of runs may have met it, and be about to report it.
    let store = if is_refused || stage.has_runs() {
        drop(store);
        stage.open(SyncMode::Always).unwrap()
    } else {
        store
    };
    let found = ledger.check(&store);
    stage.acknowledge(found);
    ledger = Ledger::up_to(SEED, found);
    ledger::run(&store, &mut ledger, &mut Random::new(found), 2, |last| stage.acknowledge(last));
    if stage.task[0] == EMPTIES_LOG {
        store.checkpoint().unwrap();
    }
}

/// What a failure leaves behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Harm {
    /// Nothing, once the disk is mended.
    Passing,
    /// Only a restart will tell.
    Undetermined,
}

/// Writes groups until there is harm.
fn write(store: &dyn Store, ledger: &mut Ledger, stage: &Stage) -> Option<Harm> {
    let databases = Databases::of(store);
    let mut held = store.snapshot().unwrap();
    let mut writer = match store.writer() {
        Ok(writer) => writer,
        Err(error) => return Some(harm_of_write(&error)),
    };
    let mut random = Random::new(SEED);
    for _ in 0..GROUPS {
        let before = ledger.last();
        match write_group(&mut *writer, databases, ledger, random.below(3) + 1) {
            Ok(()) => stage.acknowledge(ledger.last()),
            Err(harm) => {
                if harm == Harm::Passing {
                    ledger.truncate(before);
                }
                held.renew().unwrap();
                return Some(harm);
            }
        }
        held.renew().unwrap();
    }
    None
}

fn write_group(
    writer: &mut dyn Writer,
    databases: Databases,
    ledger: &mut Ledger,
    transactions: usize,
) -> Result<(), Harm> {
    for _ in 0..transactions {
        let transaction = writer.begin().map_err(|error| harm_of_write(&error))?;
        ledger.write(transaction, databases).unwrap();
        writer.commit().unwrap();
    }
    writer.flush().map_err(|error| {
        let text = error.to_string();
        match error {
            CommitError::DiskFull => Harm::Passing,
            CommitError::Failed { .. } => {
                assert!(text.contains("error"), "{text}");
                Harm::Passing
            }
            CommitError::Undetermined { .. } => Harm::Undetermined,
            other => panic!("{other}"),
        }
    })
}

/// A transaction could not begin: the checkpoint that would make room for it has failed.
fn harm_of_write(error: &WriteError) -> Harm {
    let text = error.to_string();
    match error {
        WriteError::Poisoned { .. } => {
            assert!(text.contains("restart"), "{text}");
            Harm::Undetermined
        }
        WriteError::Engine { .. } => {
            let says_what_to_do =
                ["free some space", "see to the disk"].iter().any(|what| text.contains(what));
            assert!(says_what_to_do, "{text}");
            Harm::Passing
        }
        other => panic!("{other}"),
    }
}
