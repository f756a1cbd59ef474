//! Names of databases: what takes one, what frees it, and what happens to ids.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
};

use proptest::prelude::*;
use tokaido_store::{
    CollectionId, DatabaseError, DatabaseId, Direction, Kind, NewRecord, Snapshot, Store,
    WriteError, WriteTransaction, Writer, transact, tree,
};

use crate::support::{Engine, TestClock, TreeEngine};

const ALL: usize = usize::MAX;

fn names(store: &dyn Store) -> BTreeSet<String> {
    store.databases().into_iter().map(|(_, name)| name).collect()
}

fn put(writer: &mut dyn Writer, name: &str, value: &str) -> DatabaseId {
    transact(writer, |tx| {
        let id = tx.open_database(name, ALL)?;
        tx.put(id, b"k", NewRecord::of(value.as_bytes()))?;
        Ok::<_, WriteError>(id)
    })
    .unwrap()
}

fn drop_by_name(tx: &mut dyn WriteTransaction, name: &str) -> Result<bool, WriteError> {
    let id = tx.open_database(name, ALL)?;
    tx.drop_database(id)
}

#[test]
fn a_name_is_taken_by_the_first_write_and_by_nothing_else() {
    let engine = TreeEngine::new(TestClock::new());
    let store = engine.store();
    let mut writer = store.writer().unwrap();
    let mut snapshot = store.snapshot().unwrap();
    for n in 0..20_000 {
        let name = format!("n{n}");
        assert_eq!(store.find_database(&name), None);
        let id = writer.begin().unwrap().open_database(&name, 1).unwrap();
        let tx = writer.transaction();
        // A transaction that writes nothing, and one that is rolled back.
        match n % 4 {
            0 => assert!(!tx.delete(id, b"k").unwrap()),
            1 => tx.clear(id).unwrap(),
            2 => assert!(!tx.drop_database(id).unwrap()),
            _ => tx.put(id, b"k", NewRecord::of(b"v")).unwrap(),
        }
        match n % 4 {
            3 => writer.rollback().unwrap(),
            _ => writer.commit().map(drop).unwrap(),
        }
        assert!(snapshot.get(id, b"k").unwrap().is_none());
    }
    writer.flush().unwrap();
    assert!(store.databases().is_empty());
    assert_eq!(store.databases_dropped(), 0);
    let id = put(&mut *writer, "taken", "v");
    assert_eq!(store.find_database("taken"), Some(id));
}

#[test]
fn a_name_that_is_dropped_is_free_and_its_ids_are_nobody_elses() {
    let mut engine = TreeEngine::new(TestClock::new());
    {
        let store = engine.store();
        let mut writer = store.writer().unwrap();
        let mut snapshot = store.snapshot().unwrap();
        let old = put(&mut *writer, "a", "1");
        snapshot.renew().unwrap();
        transact(&mut *writer, |tx| {
            assert!(drop_by_name(tx, "a")?);
            assert!(tx.get(old, b"k")?.is_none());
            assert!(!drop_by_name(tx, "a")?);
            Ok::<_, WriteError>(())
        })
        .unwrap();
        assert_eq!((store.find_database("a"), store.databases_dropped()), (None, 1));
        assert_eq!(snapshot.get(old, b"k").unwrap().unwrap().value, b"1", "it is older");
        let new = put(&mut *writer, "b", "2");
        assert_ne!(new, old);
        snapshot.renew().unwrap();
        assert!(snapshot.get(old, b"k").unwrap().is_none());
        let stale = transact(&mut *writer, |tx| tx.put(old, b"k", NewRecord::of(b"3")));
        assert!(stale.unwrap_err().to_string().contains("was dropped meanwhile"));
        assert_eq!(snapshot.statistics(old).unwrap().records, 0);
        let again = put(&mut *writer, "a", "4");
        assert_ne!(again, old);
        assert_eq!(store.find_database("a"), Some(again));
    }
    engine.reopen();
    assert_eq!(names(&*engine.store()), ["a", "b"].map(str::to_owned).into());
}

#[test]
fn a_name_that_is_held_keeps_its_id_when_its_database_is_dropped() {
    let engine = TreeEngine::new(TestClock::new());
    let store = engine.store();
    let held = store.database("a").unwrap();
    let mut writer = store.writer().unwrap();
    for value in ["1", "2"] {
        assert_eq!(put(&mut *writer, "a", value), held);
        assert!(transact(&mut *writer, |tx| tx.drop_database(held)).unwrap());
        assert_eq!(store.find_database("a"), Some(held));
        assert!(store.snapshot().unwrap().get(held, b"k").unwrap().is_none());
    }
}

#[test]
fn the_numbers_come_round_and_each_role_has_its_limit() {
    let directory = crate::support::fast_directory();
    let options = tree::Options {
        databases_max: 3,
        sync: tree::SyncMode::Os,
        size_max: 1 << 30,
        ..tree::Options::default()
    };
    let store = tree::open(directory.path(), options).unwrap();
    let mut writer = store.writer().unwrap();
    put(&mut *writer, "one", "1");
    put(&mut *writer, "two", "2");
    let open = |writer: &mut dyn Writer, name: &str, max| {
        let opened = transact(writer, |tx| tx.open_database(name, max).map(drop));
        opened.map_err(|error| error.to_string())
    };
    // With a lower limit, existing databases are found, and no more are made.
    assert!(open(&mut *writer, "one", 2).is_ok());
    let error = open(&mut *writer, "three", 2).unwrap_err();
    assert_eq!(error, DatabaseError::TooMany { max: 2 }.to_string());
    assert!(open(&mut *writer, "three", 3).is_ok());
    // More than there are numbers.
    for n in 0..20_000 {
        put(&mut *writer, "three", "3");
        if n % 1000 == 0 {
            assert!(open(&mut *writer, "four", 9).is_err(), "the store has its own limit");
        }
        assert!(transact(&mut *writer, |tx| drop_by_name(tx, "three")).unwrap());
    }
    // Also within one group, where a name is free only at its end.
    for n in 0..100 {
        let tx = writer.begin().unwrap();
        let id = tx.open_database(&format!("n{n}"), ALL).unwrap();
        tx.put(id, b"k", NewRecord::of(b"v")).unwrap();
        writer.commit().unwrap();
        assert!(drop_by_name(writer.begin().unwrap(), &format!("n{n}")).unwrap());
        writer.commit().unwrap();
    }
    writer.flush().unwrap();
    drop(writer);
    assert_eq!(names(&store), ["one", "two"].map(str::to_owned).into());
    drop(store);
    let report = tree::check(directory.path()).unwrap();
    assert!(report.is_sound(), "{:?}", report.findings);
}

#[test]
fn what_a_lost_group_has_dropped_or_made_is_as_before() {
    let engine = TreeEngine::new(TestClock::new());
    let store = engine.store();
    let mut writer = store.writer().unwrap();
    let old = put(&mut *writer, "a", "1");
    // One transaction of the group drops it, one makes it again and others fail to.
    assert!(drop_by_name(writer.begin().unwrap(), "a").unwrap());
    writer.commit().unwrap();
    for keep in [false, true, false] {
        let tx = writer.begin().unwrap();
        let id = tx.open_database("a", ALL).unwrap();
        tx.put(id, b"k", NewRecord::of(b"2")).unwrap();
        let id = tx.open_database("b", ALL).unwrap();
        tx.put(id, b"k", NewRecord::of(b"2")).unwrap();
        assert!(drop_by_name(tx, "a").unwrap());
        match keep {
            true => writer.commit().map(drop).unwrap(),
            false => writer.rollback().unwrap(),
        }
    }
    assert_eq!(names(&*store), ["a".to_owned()].into());
    drop(writer);
    assert_eq!(store.find_database("a"), Some(old));
    assert_eq!(store.find_database("b"), None);
    let found = store.snapshot().unwrap().get(old, b"k").unwrap().map(|r| r.value.to_vec());
    assert_eq!(found.as_deref(), Some(&b"1"[..]));
    let mut writer = store.writer().unwrap();
    put(&mut *writer, "b", "3");
    assert_eq!(names(&*store), ["a", "b"].map(str::to_owned).into());
}

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

/// The contents of each existing database.
type Model = BTreeMap<usize, BTreeMap<u8, u8>>;

#[derive(Clone, Debug)]
enum Change {
    Put(usize, u8, u8),
    Collection(usize, u8),
    Delete(usize, u8),
    Clear(usize),
    Drop(usize),
}

#[derive(Clone, Debug)]
enum Step {
    Transaction(Vec<Change>, bool),
    Flush,
    Sweep,
    NewWriter,
    Reopen,
}

fn change() -> impl Strategy<Value = Change> {
    let (name, key) = (0..NAMES.len(), 0u8..4);
    prop_oneof![
        4 => (name.clone(), key.clone(), any::<u8>()).prop_map(|(n, k, v)| Change::Put(n, k, v)),
        2 => (name.clone(), key.clone()).prop_map(|(n, k)| Change::Collection(n, k)),
        2 => (name.clone(), key).prop_map(|(n, k)| Change::Delete(n, k)),
        1 => name.clone().prop_map(Change::Clear),
        2 => name.prop_map(Change::Drop),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (prop::collection::vec(change(), 0..6), prop::bool::weighted(0.7))
            .prop_map(|(changes, keep)| Step::Transaction(changes, keep)),
        4 => Just(Step::Flush),
        1 => Just(Step::Sweep),
        1 => Just(Step::NewWriter),
        1 => Just(Step::Reopen),
    ]
}

fn apply(tx: &mut dyn WriteTransaction, model: &mut Model, change: &Change) {
    let mut open = |name: usize| tx.open_database(NAMES[name], ALL).unwrap();
    match *change {
        Change::Put(name, key, value) => {
            let id = open(name);
            tx.put(id, &[key], NewRecord::of(&[value])).unwrap();
            model.entry(name).or_default().insert(key, value);
        }
        Change::Collection(name, key) => {
            let id = open(name);
            let collection: CollectionId = tx.new_collection().unwrap();
            let record =
                NewRecord { kind: Kind::Hash, collection: Some(collection), ..NewRecord::of(&[0]) };
            tx.put(id, &[key], record).unwrap();
            let element = [&collection.prefix()[..], b"e"].concat();
            tx.put(id.elements(), &element, NewRecord::of(b"v")).unwrap();
            model.entry(name).or_default().insert(key, 0);
        }
        Change::Delete(name, key) => {
            let id = open(name);
            let was_there = model.get_mut(&name).is_some_and(|db| db.remove(&key).is_some());
            assert_eq!(tx.delete(id, &[key]).unwrap(), was_there);
        }
        Change::Clear(name) => {
            let id = open(name);
            tx.clear(id).unwrap();
            model.entry(name).and_modify(BTreeMap::clear);
        }
        Change::Drop(name) => {
            assert_eq!(drop_by_name(tx, NAMES[name]).unwrap(), model.remove(&name).is_some());
        }
    }
}

fn check(store: &dyn Store, snapshot: &mut dyn Snapshot, model: &Model) {
    snapshot.renew().unwrap();
    let expected: BTreeSet<_> = model.keys().map(|name| NAMES[*name].to_owned()).collect();
    assert_eq!(names(store), expected);
    for (name, records) in model {
        let id = store.find_database(NAMES[*name]).unwrap();
        let mut found = BTreeMap::new();
        let mut from = Bound::Unbounded;
        while let Some(entry) =
            snapshot.seek(id, from.as_ref().map(Vec::as_slice), Direction::Forward).unwrap()
        {
            found.insert(entry.key[0], entry.record.value[0]);
            from = Bound::Excluded(entry.key.to_vec());
        }
        assert_eq!(&found, records, "{}", NAMES[*name]);
        assert_eq!(snapshot.statistics(id).unwrap().records, records.len() as u64);
    }
}

fn run(mut engine: TreeEngine, steps: &[Step]) {
    let (mut durable, mut kept) = (Model::new(), Model::new());
    for session in steps.split_inclusive(|step| matches!(step, Step::Reopen)) {
        {
            let store = engine.store();
            let mut snapshot = store.snapshot().unwrap();
            check(&*store, &mut *snapshot, &durable);
            let mut writer = store.writer().unwrap();
            for step in session {
                match step {
                    Step::Transaction(changes, keep) => {
                        let mut model = kept.clone();
                        let tx = writer.begin().unwrap();
                        changes.iter().for_each(|change| apply(tx, &mut model, change));
                        if *keep {
                            writer.commit().unwrap();
                            kept = model;
                        } else {
                            writer.rollback().unwrap();
                        }
                    }
                    Step::Flush => {
                        writer.flush().unwrap();
                        durable.clone_from(&kept);
                    }
                    Step::Sweep => drop(writer.reclaim(100).unwrap()),
                    Step::NewWriter => {
                        drop(writer);
                        kept.clone_from(&durable);
                        writer = store.writer().unwrap();
                    }
                    Step::Reopen => {}
                }
                check(&*store, &mut *snapshot, &durable);
            }
        }
        kept.clone_from(&durable);
        engine.reopen();
    }
    let store = engine.store();
    check(&*store, &mut *store.snapshot().unwrap(), &durable);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn names_follow_what_is_committed(steps in prop::collection::vec(step(), 1..40)) {
        run(TreeEngine::new(TestClock::new()), &steps);
        run(TreeEngine::checkpointing(TestClock::new()), &steps);
        run(TreeEngine::with_runs(TestClock::new()), &steps);
        run(TreeEngine::emptying_log(TestClock::new()), &steps);
    }
}
