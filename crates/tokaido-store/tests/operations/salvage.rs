//! What can be read of a damaged store becomes a new one.

use std::fs;

use tokaido_store::{
    DatabaseId, NewRecord, Store, limits, transact,
    tree::{self, CheckError, UpkeepError},
};

use crate::support::{Filled, contents_of, damage, fast_directory, files, options};

#[test]
fn of_a_sound_store_everything_is_salvaged() {
    let filled = Filled::new();
    let expected = contents_of(&filled.path());
    let before = files(&filled.path());
    let saved = filled.beside("saved");
    let report = tree::salvage(&filled.path(), &saved).unwrap();
    assert_eq!((report.check.is_sound(), report.records), (true, expected.len() as u64));
    assert!(contents_of(&saved) == expected);
    assert!(files(&filled.path()) == before, "the store is as it was");
    assert!(tree::check(&saved).unwrap().is_sound());
}

#[test]
fn as_many_databases_are_salvaged_as_a_store_can_have() {
    let directory = fast_directory();
    let (path, saved) = (directory.path().join("store"), directory.path().join("saved"));
    let options = tree::Options { databases_max: limits::DATABASES_MAX, ..options() };
    let store = tree::open(&path, options).unwrap();
    transact(&mut *store.writer().unwrap(), |tx| {
        (0..limits::DATABASES_MAX).try_for_each(|n| {
            let database = tx.open_database(&n.to_string(), limits::DATABASES_MAX)?;
            tx.put(database, b"k", NewRecord::of(b"v"))
        })
    })
    .unwrap();
    drop(store);
    let report = tree::salvage(&path, &saved).unwrap();
    assert_eq!(report.records, limits::DATABASES_MAX as u64);
    assert!(tree::check(&saved).unwrap().is_sound());
}

#[test]
fn of_a_damaged_log_what_comes_before_the_damage_is_salvaged() {
    let filled = Filled::new();
    // The first of 21 frames: only the base is left.
    damage(&filled.segment(), 48 + 41);
    let saved = filled.beside("saved");
    let report = tree::salvage(&filled.path(), &saved).unwrap();
    assert!(!report.check.is_sound());
    assert_eq!(report.records, 211 + 200 + 200);
    let found = contents_of(&saved);
    assert_eq!(found[&("main".to_owned(), b"key:0000".to_vec())].0, b"value 0");
}

#[test]
fn of_a_damaged_base_what_stands_on_other_pages_is_salvaged() {
    let filled = Filled::new();
    let expected = contents_of(&filled.path());
    let data = filled.path().join("data.mdb");
    let whole = fs::read(&data).unwrap();
    let mut partly = 0;
    for page in 2..whole.len() / 4096 {
        fs::write(&data, &whole).unwrap();
        damage(&data, page * 4096 + 10);
        let saved = filled.beside(&format!("saved {page}"));
        let report = tree::salvage(&filled.path(), &saved).unwrap();
        assert!(report.records <= expected.len() as u64 + 40);
        let found = contents_of(&saved);
        partly += usize::from(found.len() > 200 && found.len() < expected.len());
    }
    assert!(partly > 3, "{partly} pages were lost alone");
}

#[test]
fn nothing_is_salvaged_over_something_or_from_nothing() {
    let filled = Filled::new();
    let over = tree::salvage(&filled.path(), &filled.path());
    assert!(matches!(over, Err(UpkeepError::Exists { .. })));
    let none = tree::salvage(&filled.beside("none"), &filled.beside("saved"));
    assert!(matches!(none, Err(UpkeepError::Check(CheckError::NoStore { .. }))));
    assert_eq!(filled.neighbours(), ["store"]);
}

#[test]
fn a_databases_own_elements_are_salvaged_unless_they_derive_from_its_records() {
    let directory = fast_directory();
    let (path, saved) = (directory.path().join("store"), directory.path().join("saved"));
    let lasting = [&DatabaseId::LASTING_ELEMENTS[..], b"says"].concat();
    let derived = [&DatabaseId::DERIVED_ELEMENTS[..], b"index"].concat();
    let store = tree::open(&path, options()).unwrap();
    let main = store.database("main").unwrap();
    transact(&mut *store.writer().unwrap(), |tx| {
        tx.put(main.elements(), &lasting, NewRecord::of(b"1"))?;
        tx.put(main.elements(), &derived, NewRecord::of(b"2"))?;
        tx.put(main, b"k", NewRecord::of(b"v"))
    })
    .unwrap();
    drop(store);
    assert!(tree::check(&path).unwrap().is_sound());
    let report = tree::salvage(&path, &saved).unwrap();
    assert_eq!(report.records, 1);
    assert!(tree::check(&saved).unwrap().is_sound());
    let store = tree::open(&saved, options()).unwrap();
    let main = store.find_database("main").unwrap();
    let mut snapshot = store.snapshot().unwrap();
    assert_eq!(snapshot.get(main.elements(), &lasting).unwrap().unwrap().value, b"1");
    assert_eq!(snapshot.get(main.elements(), &derived).unwrap(), None);
}
