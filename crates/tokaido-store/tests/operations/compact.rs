//! A compaction frees the room of free pages, and does nothing else.

use std::fs;

use tokaido_store::{
    NewRecord, OpenError, Store, WriteError, transact,
    tree::{self, CheckError, UpkeepError},
};

use crate::support::{Filled, contents_of, damage, open, options};

#[test]
fn a_file_that_was_filled_and_emptied_becomes_small() {
    let filled = Filled::new();
    let expected = contents_of(&filled.path());
    {
        let store = open(&filled.path());
        let id = store.database("passing").unwrap();
        let mut writer = store.writer().unwrap();
        let keys = (0..2000).map(|n| format!("{n:08}"));
        transact(&mut *writer, |tx| {
            let mut keys = keys.clone();
            keys.try_for_each(|key| tx.put(id, key.as_bytes(), NewRecord::of(&[b'x'; 2000])))
        })
        .unwrap();
        drop(writer);
        store.checkpoint().unwrap();
        let mut writer = store.writer().unwrap();
        transact(&mut *writer, |tx| {
            let mut keys = keys.clone();
            keys.try_for_each(|key| tx.delete(id, key.as_bytes()).map(drop))?;
            Ok::<_, WriteError>(())
        })
        .unwrap();
    }
    let report = tree::compact(&filled.path(), options()).unwrap();
    assert!(report.bytes_before > 4_000_000, "{report:?}");
    assert!(report.bytes_after < 500_000, "{report:?}");
    let data = filled.path().join("data.mdb");
    assert_eq!(report.bytes_after, fs::metadata(data).unwrap().len());
    let checked = tree::check(&filled.path()).unwrap();
    assert!(checked.is_sound(), "{:?}", checked.findings);
    assert_eq!((checked.base.pages_free, checked.log.transactions), (0, 0));
    assert!(contents_of(&filled.path()) == expected);
}

#[test]
fn a_compacted_store_is_written_to_as_before() {
    let filled = Filled::new();
    for round in 0..3 {
        tree::compact(&filled.path(), options()).unwrap();
        let store = open(&filled.path());
        let main = store.database("main").unwrap();
        crate::support::put(&store, main, format!("round {round}").as_bytes(), NewRecord::of(b""));
        store.checkpoint().unwrap();
    }
    let found = contents_of(&filled.path());
    assert_eq!(found.keys().filter(|(_, key)| key.starts_with(b"round")).count(), 3);
    assert!(tree::check(&filled.path()).unwrap().is_sound());
}

#[test]
fn what_cannot_be_compacted_stays_as_it_is() {
    let filled = Filled::new();
    let nothing = tree::compact(&filled.beside("nothing"), options());
    assert!(matches!(nothing, Err(UpkeepError::Check(CheckError::NoStore { .. }))));
    let store = open(&filled.path());
    let held = tree::compact(&filled.path(), options());
    assert!(matches!(held, Err(UpkeepError::Open(OpenError::Locked { .. }))));
    drop(store);
    let backup = fs::File::open(filled.path()).unwrap();
    backup.try_lock_shared().unwrap();
    let in_use = tree::compact(&filled.path(), options());
    assert!(matches!(in_use, Err(UpkeepError::BackingUp { .. })));
    drop(backup);
    open(&filled.path()).checkpoint().unwrap();
    let data = filled.path().join("data.mdb");
    // Somewhere in the leaves: a page gets another number.
    let whole = fs::read(&data).unwrap();
    let refused = (2..whole.len() / 4096).any(|page| {
        fs::write(&data, &whole).unwrap();
        damage(&data, page * 4096);
        // Opening trusts the pages of the directory; the check does not need to.
        let report = tree::check(&filled.path()).unwrap();
        let is_damaged = !report.is_sound();
        let is_directory = report.findings.iter().any(|finding| {
            let text = finding.to_string();
            text.contains("directory")
                || text.contains("names")
                || text.contains("free")
                || text.contains("catalog")
        });
        is_damaged
            && !is_directory
            && matches!(tree::compact(&filled.path(), options()), Err(UpkeepError::Damaged { .. }))
    });
    assert!(refused);
}
