//! All operations on the files of a store, for one that has runs.

use std::fs;

use tokaido_store::{
    Store,
    tree::{self, Finding, Reader},
};

use crate::support::{Filled, contents_of, open, options};

#[test]
fn a_check_knows_the_runs() {
    let filled = Filled::with_runs();
    let report = tree::check(&filled.path()).unwrap();
    assert!(report.is_sound(), "{:?}", report.findings);
    assert_eq!(report.runs.runs, 2);
    assert!(report.runs.entries > 50 && report.runs.bytes > 1000, "{:?}", report.runs);
    let found = contents_of(&filled.path());
    for database in report.databases {
        let records = found.keys().filter(|(name, _)| *name == database.name).count() as u64;
        // Expired records are counted, too.
        assert!(database.statistics.records >= records, "{}", database.name);
        let store = open(&filled.path());
        let id = store.find_database(&database.name).unwrap();
        let counted = store.snapshot().unwrap().statistics(id).unwrap();
        assert_eq!(counted, database.statistics, "{}", database.name);
    }
}

#[test]
fn a_backup_has_the_runs_and_can_be_restored() {
    let filled = Filled::with_runs();
    let expected = contents_of(&filled.path());
    let (outside, inside) = (filled.beside("outside"), filled.beside("inside"));
    tree::backup(&filled.path(), &outside).unwrap();
    let store = open(&filled.path());
    store.backup(&inside).unwrap();
    drop(store);
    for backup in [outside, inside] {
        assert_eq!(fs::read_dir(backup.join("runs")).unwrap().count(), 2);
        let restored = filled.beside("restored");
        tree::restore(&backup, &restored).unwrap();
        assert_eq!(contents_of(&restored), expected);
        fs::remove_dir_all(restored).unwrap();
    }
}

#[test]
fn a_compaction_merges_the_runs() {
    let filled = Filled::with_runs();
    let expected = contents_of(&filled.path());
    tree::compact(&filled.path(), options()).unwrap();
    assert_eq!(filled.runs().len(), 0);
    let report = tree::check(&filled.path()).unwrap();
    assert!(report.is_sound() && report.runs.runs == 0, "{:?}", report.findings);
    assert_eq!(report.log.transactions, 0);
    assert_eq!(contents_of(&filled.path()), expected);
}

#[test]
fn a_damaged_run_is_found_and_the_rest_is_saved() {
    let sound = Filled::with_runs();
    let expected = contents_of(&sound.path());
    let run = sound.runs()[0].clone();
    let bytes = fs::read(&run).unwrap();
    // In the middle of the records, which come before everything else.
    for at in [100, bytes.len() / 3] {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        fs::write(&run, damaged).unwrap();
        let report = tree::check(&sound.path()).unwrap();
        let is_of_run = |finding: &Finding| matches!(finding, Finding::Run { .. });
        assert!(report.findings.iter().any(is_of_run), "byte {at}: {:?}", report.findings);
        let saved = sound.beside("saved");
        let salvaged = tree::salvage(&sound.path(), &saved).unwrap();
        assert!(!salvaged.check.is_sound());
        let found = contents_of(&saved);
        let same = expected.iter().filter(|(key, value)| found.get(*key) == Some(*value)).count();
        assert!(same * 10 >= expected.len() * 7, "byte {at}: {same} of {}", expected.len());
        fs::remove_dir_all(saved).unwrap();
    }
    fs::remove_file(&run).unwrap();
    let error = tree::open(&sound.path(), options()).err().unwrap().to_string();
    assert!(error.contains("run 1 is damaged: its file is not there"), "{error}");
    assert!(
        tree::check(&sound.path())
            .unwrap()
            .findings
            .iter()
            .any(|finding| { finding.to_string().contains("run 1 is damaged") })
    );
}

#[test]
fn a_reader_finds_what_runs_have() {
    let filled = Filled::with_runs();
    let store = open(&filled.path());
    store.checkpoint().unwrap();
    drop(store);
    let expected = contents_of(&filled.path());
    let reader = Reader::open(&filled.path()).unwrap();
    let keys = expected.keys().map(|(_, key)| key.clone());
    for name in ["main", "people", "cleared"] {
        let mut database = reader.database(name).unwrap().unwrap();
        for key in keys.clone().chain([b"key:0065".to_vec(), b"nothing".to_vec()]) {
            // A reader uses the system's clock, so what expires has expired.
            let entry = expected.get(&(name.to_owned(), key.clone()));
            let value =
                entry.filter(|(_, _, expires)| expires.is_none()).map(|(value, ..)| &value[..]);
            let found = database.get(&key).unwrap();
            assert_eq!(found.map(|record| record.value), value, "{name} {}", key.escape_ascii());
        }
    }
    assert!(reader.database("other").unwrap().is_none());
}

#[test]
fn what_a_killed_process_has_left_of_runs_goes() {
    let filled = Filled::with_runs();
    let expected = contents_of(&filled.path());
    let stray = filled.path().join("runs/00000000000000000099");
    fs::write(&stray, b"not finished").unwrap();
    let other = filled.path().join("runs/README");
    fs::write(&other, b"not ours").unwrap();
    assert_eq!(contents_of(&filled.path()), expected);
    assert!(!stray.exists() && other.exists());
}

#[test]
fn a_small_store_has_no_runs_and_stays_readable_for_older_programs() {
    let filled = Filled::new();
    let store = open(&filled.path());
    store.checkpoint().unwrap();
    drop(store);
    assert_eq!(filled.runs().len(), 0);
    assert!(!filled.path().join("runs").exists());
    let data = fs::read(filled.path().join("data.mdb")).unwrap();
    let has = |version: &[u8]| data.windows(version.len()).any(|window| window == version);
    assert!(has(b"format\x01\0\0\0") && !has(b"format\x03\0\0\0"));
}
