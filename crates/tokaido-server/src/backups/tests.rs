//! Backups by paths that clients might give, good and bad.

use std::{fs, os::unix::fs::symlink, sync::mpsc::channel};

use tempfile::TempDir;
use tokaido_store::{NewRecord, Store, transact, tree};

use super::*;

/// A store with one record, and a backup directory.
fn scene() -> (TempDir, tree::TreeStore, Backups) {
    let directory = tempfile::tempdir().unwrap();
    let store = tree::open(&directory.path().join("store"), tree::Options::default()).unwrap();
    let id = store.database("main").unwrap();
    let put =
        |tx: &mut dyn tokaido_store::WriteTransaction| tx.put(id, b"key", NewRecord::of(b"value"));
    transact(&mut *store.writer().unwrap(), put).unwrap();
    let root = directory.path().join("backups");
    fs::create_dir(&root).unwrap();
    let backups = Backups::new(Some(root), Some(Arc::new(store.copier())));
    (directory, store, backups)
}

fn make(backups: &Backups, path: &[u8]) -> Outcome {
    let (sender, outcome) = channel();
    backups.begin(path, move |outcome| sender.send(outcome).unwrap())?;
    outcome.recv().unwrap()
}

#[test]
fn a_backup_goes_below_its_directory_and_to_no_name_that_is_taken() {
    let (directory, _store, backups) = scene();
    let root = directory.path().join("backups");
    fs::create_dir(root.join("days")).unwrap();
    for path in ["monday", "./tuesday", "days/wednesday", "days//thursday/"] {
        make(&backups, path.as_bytes()).unwrap();
        assert!(tree::check(&root.join(path)).unwrap().is_sound(), "{path}");
        let error = make(&backups, path.as_bytes()).unwrap_err();
        assert!(matches!(error, BackupError::Upkeep(UpkeepError::Exists { .. })), "{error}");
        assert!(error.is_invalid());
    }
}

#[test]
fn a_path_that_leads_elsewhere_is_refused() {
    let (directory, _store, backups) = scene();
    let root = directory.path().join("backups");
    symlink(directory.path(), root.join("out")).unwrap();
    symlink(directory.path().join("nothing"), root.join("dangling")).unwrap();
    let long = [b'x'; 5000];
    make(&backups, b"monday").unwrap();
    let paths: [&[u8]; 16] = [
        b"monday/x",
        b"monday/log/7",
        b"",
        b".",
        b"/",
        b"..",
        b"../x",
        b"/tmp/x",
        b"a/../../x",
        b"a/..",
        b"out/x",
        b"@touch x",
        b"a\0b",
        b"nowhere/x",
        b"dangling",
        &long,
    ];
    for path in paths {
        let error = make(&backups, path).unwrap_err();
        assert!(!matches!(error, BackupError::Busy), "{error}");
    }
    let mut names: Vec<_> =
        fs::read_dir(directory.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["backups", "store"]);
    assert_eq!(fs::read_dir(&root).unwrap().count(), 3);
    let message = make(&backups, b"@touch x").unwrap_err().to_string();
    assert_eq!(message, "\"@touch x\" is no path of a backup: commands are not run for clients");
}

#[test]
fn without_a_directory_the_option_is_named() {
    let (_directory, store, _) = scene();
    for backups in [Backups::new(None, Some(Arc::new(store.copier()))), Backups::new(None, None)] {
        let error = make(&backups, b"monday").unwrap_err();
        assert!(error.to_string().contains("set backups in tokaido.toml"), "{error}");
    }
}

#[test]
fn there_is_one_at_a_time_and_none_after_the_end() {
    let (directory, _store, backups) = scene();
    let (sender, outcomes) = channel();
    let state = Arc::clone(&backups.making);
    lock(&state).is_under_way = true;
    assert!(matches!(make(&backups, b"first"), Err(BackupError::Busy)));
    lock(&state).is_under_way = false;
    backups.begin(b"second", move |outcome| sender.send(outcome).unwrap()).unwrap();
    outcomes.recv().unwrap().unwrap();
    // Whoever is told need not wait for the thread.
    make(&backups, b"third").unwrap();
    backups.stop();
    assert!(matches!(make(&backups, b"fourth"), Err(BackupError::Stopping)));
    assert_eq!(fs::read_dir(directory.path().join("backups")).unwrap().count(), 2);
}
