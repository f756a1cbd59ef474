//! Stores whose trees are sound individually but contradict each other, or whose log is whole but
//! says what no store would. They are made by bypassing everything that keeps them consistent.

use std::{fs, io::Write, path::Path, sync::Arc};

use tempfile::TempDir;

use crate::{
    DatabaseId, Kind, NewRecord, OpenError, Store, limits,
    record::Header,
    transact,
    tree::{
        self, CheckReport, Finding, Options,
        base::{Base, BaseOptions, Layer},
        catalog::{CATALOG_TREE, EXPIRY_TREE, FIRST_TREE, catalog_key, catalog_value},
        expiry,
        lock::StoreLock,
        log::{FrameBuilder, LOG_DIRECTORY, Operation},
    },
};

/// A store with two records that expire, in one database, all of it in the base.
fn store() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let store = tree::open(directory.path(), Options::default()).unwrap();
    let main = store.database("main").unwrap();
    transact(&mut *store.writer().unwrap(), |tx| {
        tx.put(main, b"a", NewRecord::of(b"1").expiring(Some(1 << 50)))?;
        tx.put(main, &[b'z'; 600], NewRecord::of(b"2").expiring(Some(1 << 51)))
    })
    .unwrap();
    store.checkpoint().unwrap();
    directory
}

/// Tree, key, and the stored record, or that there must be none.
type Change<'c> = (u32, &'c [u8], Option<&'c [u8]>);

/// Changes the base, as a checkpoint would.
fn change(directory: &Path, changes: &[Change<'_>]) {
    let Ok(lock) = StoreLock::take(directory) else { panic!("nobody has it") };
    let options = BaseOptions { size_max: 1 << 30, views_max: 10, databases_max: 16 };
    let Ok((base, contents)) = Base::open(directory, &lock, options, || 0) else {
        panic!("it opens")
    };
    let mut layer = Layer::begin(&Arc::new(base)).unwrap();
    for (tree, key, stored) in changes {
        layer.apply(*tree, key, *stored).unwrap();
    }
    layer.commit(contents.sequence, 1).unwrap();
}

fn stored(value: &[u8], version: u64) -> Vec<u8> {
    [Header::new(&NewRecord::of(value), version).as_bytes(), value].concat()
}

/// Appends a transaction to the log, with correct checksums.
fn append(directory: &Path, (tree, key, record): Change<'_>) {
    let mut frame = FrameBuilder::default();
    frame.push(2, std::iter::once(Operation { tree, key, record }));
    let segments = fs::read_dir(directory.join(LOG_DIRECTORY)).unwrap();
    let last = segments.map(|segment| segment.unwrap().path()).max().unwrap();
    fs::File::options().append(true).open(last).unwrap().write_all(frame.finish(1)).unwrap();
}

/// The findings after these changes to the base, as text.
fn findings(changes: &[Change<'_>]) -> Vec<String> {
    let directory = store();
    change(directory.path(), changes);
    let report: CheckReport = tree::check(directory.path()).unwrap();
    report.findings.iter().map(Finding::to_string).collect()
}

#[test]
fn a_store_that_was_not_changed_is_sound() {
    assert_eq!(findings(&[]), [""; 0]);
}

#[test]
fn a_record_without_its_entry_in_the_expiry_index_is_found() {
    let main = DatabaseId::from_index(0);
    let short = expiry::key(1 << 50, main, b"a");
    let long = expiry::key(1 << 51, main, &[b'z'; 600]);
    let found = findings(&[(EXPIRY_TREE, &short, None), (EXPIRY_TREE, &long, None)]);
    assert_eq!(
        found[0],
        "database main, key \"a\": it expires at 1125899906842624, but is not in the expiry index"
    );
    assert_eq!(found.len(), 2, "{found:?}");
}

#[test]
fn an_entry_without_a_record_is_stale_and_no_damage() {
    let directory = store();
    let entry = expiry::key(7, DatabaseId::from_index(0), b"gone");
    change(directory.path(), &[(EXPIRY_TREE, &entry, Some(&stored(b"", 1)))]);
    let report = tree::check(directory.path()).unwrap();
    assert!(report.is_sound(), "{:?}", report.findings);
    assert_eq!(report.expiry_entries_stale, 1);
    assert_eq!(report.databases[0].expiring, 2);
}

#[test]
fn what_is_no_entry_of_an_expiry_index_is_found() {
    let found = findings(&[(EXPIRY_TREE, b"short", Some(&stored(b"", 1)))]);
    assert_eq!(found, ["the expiry index, key \"short\": it is no entry of an expiry index"]);
}

#[test]
fn a_tree_that_no_database_has_is_found() {
    let found = findings(&[(99, b"k", Some(&stored(b"v", 1)))]);
    assert_eq!(found, ["data.mdb: tree 99 belongs to no database"]);
}

#[test]
fn elements_without_a_record_and_records_with_one_collection_are_found() {
    let elements = DatabaseId::from_index(0).elements();
    let collection = crate::CollectionId::from_number(7).unwrap();
    let of = |collection| {
        let new = NewRecord { kind: Kind::Hash, collection, ..NewRecord::of(b"") };
        Header::new(&new, 1).as_bytes().to_vec()
    };
    let (catalog, tree) = (stored(&catalog_value(77, ""), 1), 77);
    let element = [&collection.prefix()[..], b"e"].concat();
    let changes = |record: &[u8], dropped: Option<&[u8]>| {
        findings(&[
            (CATALOG_TREE, &catalog_key(elements), Some(&catalog)),
            (tree, &element, Some(&stored(b"", 1))),
            (FIRST_TREE, b"c", Some(record)),
            (EXPIRY_TREE, &expiry::key(7, elements, &collection.prefix()), dropped),
        ])
    };
    assert_eq!(changes(&of(Some(collection)), None), [""; 0]);
    assert_eq!(changes(&of(None), Some(&stored(b"", 1))), [""; 0]);
    let stray = "data.mdb: 1 elements of database main belong to no record";
    assert_eq!(changes(&of(None), None), [stray]);
    let twice = "database main, key \"c\": its collection is another's, or dropped";
    assert_eq!(changes(&of(Some(collection)), Some(&stored(b"", 1))), [twice]);
}

#[test]
fn a_catalog_that_contradicts_itself_is_found() {
    let entry = |tree, name| stored(&catalog_value(tree, name), 1);
    let (twice, bad) = (entry(FIRST_TREE, "main"), entry(EXPIRY_TREE, "a b"));
    let beyond = entry(u32::MAX, "beyond");
    let [third, fourth, fifth] = [3, 4, 5].map(|index| catalog_key(DatabaseId::from_index(index)));
    let mut found = findings(&[
        (CATALOG_TREE, &third, Some(&twice)),
        (CATALOG_TREE, &fourth, Some(&bad)),
        (CATALOG_TREE, &fifth, Some(&beyond)),
        (CATALOG_TREE, b"long key", Some(&bad)),
    ]);
    found.retain(|finding| !finding.starts_with("database"));
    assert_eq!(
        found[..6],
        [
            "the catalog, key \"long key\": it is no entry of a catalog",
            "data.mdb: databases 0 and 3 are both called main",
            "data.mdb: databases main and main have the same tree",
            "data.mdb: database 4 has the impossible name \"a b\"",
            "data.mdb: database a b has tree 1, which none can have",
            "data.mdb: database beyond has tree 4294967295, which none can have",
        ]
    );
}

#[test]
fn a_record_from_the_future_or_of_an_unknown_kind_is_found() {
    let found = findings(&[(FIRST_TREE, b"late", Some(&stored(b"v", 900)))]);
    assert_eq!(
        found,
        ["database main, key \"late\": transaction 900 wrote it, but the last one is 1"]
    );
}

#[test]
fn a_key_of_the_base_that_none_can_have_is_found() {
    let found = findings(&[(FIRST_TREE, &[b'k'; limits::KEY_LEN_MAX + 1], Some(&stored(b"", 1)))]);
    assert!(found[0].ends_with("a key has 1 to 4096 bytes, this one has 4097"), "{found:?}");
}

/// A check finds everything that opening refuses.
#[test]
fn what_cannot_be_opened_is_found() {
    let record = stored(b"v", 2);
    const LEN_MAX: usize = limits::KEY_LEN_MAX + limits::ELEMENT_HEAD_LEN_MAX;
    let long = [b'k'; LEN_MAX + 1];
    let changes: [Change<'_>; 7] = [
        (FIRST_TREE, b"", None),
        (FIRST_TREE, &long, Some(&record)),
        (EXPIRY_TREE, &[b'k'; LEN_MAX + 11], Some(&record)),
        (FIRST_TREE, b"k", Some(b"\xff")),
        (u32::MAX, b"k", None),
        (CATALOG_TREE, &catalog_key(DatabaseId::from_index(1)), Some(&record)),
        (CATALOG_TREE, b"long key", Some(&stored(&catalog_value(FIRST_TREE, "a"), 2))),
    ];
    for change in changes {
        let directory = store();
        append(directory.path(), change);
        let report = tree::check(directory.path()).unwrap();
        let opened = tree::open(directory.path(), Options::default()).map(drop);
        let Err(OpenError::Damaged { what, .. }) = opened else { panic!("{change:?} is opened") };
        let found = report.findings.iter().map(Finding::to_string).collect::<Vec<_>>();
        assert_eq!(found, [what], "{change:?}");
    }
}

#[test]
fn a_tree_of_a_number_that_none_can_have_is_found() {
    let directory = store();
    change(directory.path(), &[(u32::MAX, b"k", Some(&stored(b"v", 1)))]);
    assert!(!tree::check(directory.path()).unwrap().is_sound());
    let opened = tree::open(directory.path(), Options::default()).map(drop);
    assert!(matches!(opened, Err(OpenError::Damaged { .. })), "{opened:?}");
}
