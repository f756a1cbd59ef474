//! A backup, a compaction and a salvage keep collections together with their elements.

use std::{collections::BTreeMap, path::Path};

use tokaido_store::{
    Kind, NewRecord, ScanRange, Scanner, Store, WriteError, WriteTransaction, transact, tree,
};

use crate::support::{damage, fast_directory, open, options};

/// Database and key → elements; `None` if the record is of bytes.
type Collections = BTreeMap<(String, Vec<u8>), Option<Vec<(Vec<u8>, Vec<u8>)>>>;

fn put(
    tx: &mut dyn WriteTransaction,
    database: tokaido_store::DatabaseId,
    key: &[u8],
    elements: u32,
) -> Result<(), WriteError> {
    let collection = tx.new_collection()?;
    let new = NewRecord { kind: Kind::List, ..NewRecord::of(b"") };
    tx.put(database, key, NewRecord { collection: Some(collection), ..new })?;
    for n in 0..elements {
        let element = [&collection.prefix()[..], &n.to_be_bytes(), &[b'e'; 600]].concat();
        tx.put(database.elements(), &element, NewRecord::of(key))?;
    }
    Ok(())
}

/// Collections in the base and in the log, and one that was dropped and not reclaimed.
fn fill(directory: &Path) {
    let store = open(directory);
    let [main, other] = ["main", "other"].map(|name| store.database(name).unwrap());
    let mut writer = store.writer().unwrap();
    transact(&mut *writer, |tx| {
        tx.put(main, b"plain", NewRecord::of(b"v"))?;
        put(tx, main, b"base", 50)?;
        put(tx, other, b"base", 3)?;
        put(tx, other, b"dropped", 40)
    })
    .unwrap();
    drop(writer);
    store.checkpoint().unwrap();
    let mut writer = store.writer().unwrap();
    transact(&mut *writer, |tx| {
        put(tx, main, b"log", 4)?;
        tx.rename(main, b"base", b"moved")?;
        tx.delete(other, b"dropped")
    })
    .unwrap();
}

fn collections_of(directory: &Path) -> Collections {
    let store = open(directory);
    let mut snapshot = store.snapshot().unwrap();
    let mut found = Collections::new();
    for (id, name) in store.databases() {
        let mut records = Scanner::new(id, ScanRange::all(), usize::MAX);
        while let Some(entry) = records.next(&mut *snapshot).unwrap() {
            let (key, collection) = (entry.key.to_vec(), entry.record.collection);
            let elements = collection.map(|collection| {
                let range = ScanRange::prefix(&collection.prefix());
                let mut scanner = Scanner::new(id.elements(), range, usize::MAX);
                let mut elements = Vec::new();
                while let Some(entry) = scanner.next(&mut *snapshot).unwrap() {
                    elements.push((entry.key[8..].to_vec(), entry.record.value.to_vec()));
                }
                elements
            });
            found.insert((name.clone(), key), elements);
        }
    }
    found
}

#[test]
fn elements_go_where_their_collections_go() {
    let directory = fast_directory();
    let at = |name: &str| directory.path().join(name);
    fill(&at("store"));
    let report = tree::check(&at("store")).unwrap();
    assert!(report.is_sound(), "{:?}", report.findings);
    let elements: Vec<_> = report.databases.iter().map(|d| d.elements.records).collect();
    assert_eq!((elements, report.expiry_entries_stale), (vec![54, 43], 0));
    tree::backup(&at("store"), &at("backup")).unwrap();
    let salvaged = tree::salvage(&at("store"), &at("saved")).unwrap();
    assert_eq!(salvaged.records, 4);
    let expected = collections_of(&at("store"));
    let lens: Vec<_> = expected.values().map(|elements| elements.as_ref().map(Vec::len)).collect();
    assert_eq!(lens, [Some(4), Some(50), None, Some(3)]);
    tree::compact(&at("store"), options()).unwrap();
    for copy in ["store", "backup", "saved"] {
        assert!(tree::check(&at(copy)).unwrap().is_sound(), "{copy}");
        assert!(collections_of(&at(copy)) == expected, "{copy}");
    }
}

#[test]
fn what_is_salvaged_of_a_damaged_store_is_a_sound_one() {
    let directory = fast_directory();
    let at = |name: &str| directory.path().join(name);
    fill(&at("store"));
    let data = at("store").join("data.mdb");
    let whole = std::fs::read(&data).unwrap();
    for page in 2..whole.len() / 4096 {
        std::fs::write(&data, &whole).unwrap();
        damage(&data, page * 4096 + 10);
        let saved = at(&format!("saved {page}"));
        tree::salvage(&at("store"), &saved).unwrap();
        let report = tree::check(&saved).unwrap();
        assert!(report.is_sound(), "page {page}: {:?}", report.findings);
    }
}
