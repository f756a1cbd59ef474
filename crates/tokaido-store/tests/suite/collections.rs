//! Collections compared with a model: whatever happens to their records, exactly the elements of
//! those that are left remain, and no scan of keys ever shows an element.

use std::{
    collections::BTreeMap,
    ops::{Bound, ControlFlow},
};

use crate::support::{Engine, TestClock, TreeEngine, fast_directory};
use proptest::prelude::*;
use tokaido_store::{
    CollectionId, DatabaseId, Direction, Kind, NewRecord, ReadError, ReadTransaction, ScanRange,
    Scanner, Store, WriteError, WriteTransaction, Writer, cache,
    composite::{CompositeStore, Mount, MountEngine},
    limits, transact, tree,
};

pub(crate) const DATABASES: [&str; 2] = ["main", "other"];

type Elements = BTreeMap<Vec<u8>, Vec<u8>>;

#[derive(Clone, Debug)]
pub(crate) struct ModelRecord {
    expires_at_ms: Option<u64>,
    /// `None` for bytes.
    elements: Option<Elements>,
}

/// Every record, including expired ones, until something removes it.
pub(crate) type Model = BTreeMap<(usize, u8), ModelRecord>;

#[derive(Clone, Debug)]
pub(crate) enum Write {
    Bytes {
        key: u8,
        ttl_ms: Option<u64>,
    },
    Collection {
        key: u8,
        ttl_ms: Option<u64>,
        elements: u8,
    },
    PutElement {
        key: u8,
        element: u8,
    },
    DeleteElement {
        key: u8,
        element: u8,
    },
    Expire {
        key: u8,
        ttl_ms: Option<u64>,
    },
    Delete {
        key: u8,
    },
    Rename {
        from: u8,
        to: u8,
    },
    Clear,
    /// The two databases swap their records.
    Swap,
}

#[derive(Clone, Debug)]
enum Action {
    Transaction { writes: Vec<(usize, Write)>, is_committed: bool },
    Flush,
    Reclaim,
    PassTime { ms: u64 },
    Reopen,
}

pub(crate) fn write() -> impl Strategy<Value = Write> {
    let key = || 0u8..4;
    let ttl = || prop::option::weighted(0.3, 0u64..50);
    prop_oneof![
        2 => (key(), ttl()).prop_map(|(key, ttl_ms)| Write::Bytes { key, ttl_ms }),
        5 => (key(), ttl(), 0u8..20)
            .prop_map(|(key, ttl_ms, elements)| Write::Collection { key, ttl_ms, elements }),
        3 => (key(), 0u8..30).prop_map(|(key, element)| Write::PutElement { key, element }),
        2 => (key(), 0u8..30).prop_map(|(key, element)| Write::DeleteElement { key, element }),
        1 => (key(), ttl()).prop_map(|(key, ttl_ms)| Write::Expire { key, ttl_ms }),
        3 => key().prop_map(|key| Write::Delete { key }),
        2 => (key(), key()).prop_map(|(from, to)| Write::Rename { from, to }),
        1 => Just(Write::Clear),
        1 => Just(Write::Swap),
    ]
}

fn action() -> impl Strategy<Value = Action> {
    let writes = prop::collection::vec((0..DATABASES.len(), write()), 0..8);
    prop_oneof![
        10 => (writes, prop::bool::weighted(0.7))
            .prop_map(|(writes, is_committed)| Action::Transaction { writes, is_committed }),
        4 => Just(Action::Flush),
        3 => Just(Action::Reclaim),
        3 => (1u64..40).prop_map(|ms| Action::PassTime { ms }),
        1 => Just(Action::Reopen),
    ]
}

fn element_key(collection: CollectionId, own: &[u8]) -> Vec<u8> {
    [&collection.prefix(), own].concat()
}

fn is_live(record: &ModelRecord, now_ms: u64) -> bool {
    record.expires_at_ms.is_none_or(|at_ms| now_ms < at_ms)
}

/// Applies one write to the store and to the model, and compares the results.
pub(crate) fn apply(
    tx: &mut dyn WriteTransaction,
    model: &mut Model,
    db: usize,
    id: DatabaseId,
    w: &Write,
) {
    let now_ms = tx.now_ms();
    let at_ms = |ttl_ms: &Option<u64>| ttl_ms.map(|ttl_ms| now_ms + ttl_ms);
    let live = |model: &Model, key: u8| {
        model.get(&(db, key)).filter(|record| is_live(record, now_ms)).cloned()
    };
    match w {
        Write::Bytes { key, ttl_ms } => {
            tx.put(id, &[*key], NewRecord::of(b"v").expiring(at_ms(ttl_ms))).unwrap();
            let record = ModelRecord { expires_at_ms: at_ms(ttl_ms), elements: None };
            model.insert((db, *key), record);
        }
        Write::Collection { key, ttl_ms, elements } => {
            let collection = Some(tx.new_collection().unwrap());
            let new = NewRecord { kind: Kind::Set, collection, ..NewRecord::of(b"") };
            tx.put(id, &[*key], new.expiring(at_ms(ttl_ms))).unwrap();
            let record =
                ModelRecord { expires_at_ms: at_ms(ttl_ms), elements: Some(Elements::new()) };
            model.insert((db, *key), record);
            for element in 0..*elements {
                apply(tx, model, db, id, &Write::PutElement { key: *key, element });
            }
        }
        Write::PutElement { key, element } | Write::DeleteElement { key, element } => {
            let Some(ModelRecord { elements: Some(_), .. }) = live(model, *key) else { return };
            let elements = model.get_mut(&(db, *key)).unwrap().elements.as_mut().unwrap();
            let collection = tx.get(id, &[*key]).unwrap().unwrap().collection.unwrap();
            let place = element_key(collection, &[*element]);
            if let Write::PutElement { .. } = w {
                tx.put(id.elements(), &place, NewRecord::of(&[*element])).unwrap();
                elements.insert(vec![*element], vec![*element]);
            } else {
                let was_there = elements.remove(&vec![*element]).is_some();
                match was_there && element % 2 == 0 {
                    true => tx.delete_existing(id.elements(), &place).unwrap(),
                    false => assert_eq!(tx.delete(id.elements(), &place).unwrap(), was_there),
                }
            }
        }
        Write::Expire { key, ttl_ms } => {
            let Some(record) = tx.get(id, &[*key]).unwrap() else { return };
            let value = record.value.to_vec();
            let new = record.with_same_value(&value).expiring(at_ms(ttl_ms));
            tx.put(id, &[*key], new).unwrap();
            model.get_mut(&(db, *key)).unwrap().expires_at_ms = at_ms(ttl_ms);
        }
        Write::Delete { key } => {
            let was_live = live(model, *key).is_some();
            assert_eq!(tx.delete(id, &[*key]).unwrap(), was_live);
            model.remove(&(db, *key));
        }
        Write::Rename { from, to } => {
            let found = live(model, *from);
            assert_eq!(tx.rename(id, &[*from], &[*to]).unwrap(), found.is_some());
            let Some(found) = found else { return };
            model.remove(&(db, *from));
            model.insert((db, *to), found);
        }
        Write::Clear => {
            tx.clear(id).unwrap();
            model.retain(|(d, _), _| *d != db);
        }
        Write::Swap => {
            let other = tx.open_database(DATABASES[1 - db], usize::MAX).unwrap();
            tx.swap_databases(id, other).unwrap();
            let swapped = std::mem::take(model).into_iter();
            model.extend(swapped.map(|((db, key), record)| ((1 - db, key), record)));
        }
    }
}

fn elements_of(
    tx: &mut (impl ReadTransaction + ?Sized),
    id: DatabaseId,
    prefix: &[u8],
) -> Elements {
    let mut scanner = Scanner::new(id.elements(), ScanRange::prefix(prefix), usize::MAX);
    let mut found = Elements::new();
    scanner
        .visit(tx, |entry| {
            found.insert(entry.key[prefix.len()..].to_vec(), entry.record.value.to_vec());
            ControlFlow::Continue(())
        })
        .unwrap();
    found
}

/// Compares the keys, and the elements of each collection.
fn check(
    tx: &mut (impl ReadTransaction + ?Sized),
    model: &Model,
    ids: &[DatabaseId],
) -> Result<(), TestCaseError> {
    let now_ms = tx.now_ms();
    for (db, id) in ids.iter().copied().enumerate() {
        let live = model.iter().filter(|((d, _), record)| *d == db && is_live(record, now_ms));
        let expected: Vec<_> = live.map(|((_, key), record)| (*key, record.clone())).collect();
        let mut keys = Vec::new();
        tx.scan(id, Bound::Unbounded, Bound::Unbounded, Direction::Forward, &mut |entry| {
            keys.push((entry.key.to_vec(), entry.record.collection));
            ControlFlow::Continue(())
        })
        .unwrap();
        prop_assert_eq!(keys.len(), expected.len());
        for ((key, collection), (expected_key, record)) in keys.into_iter().zip(expected) {
            prop_assert_eq!(key, [expected_key]);
            let found = collection.map(|collection| elements_of(tx, id, &collection.prefix()));
            prop_assert_eq!(found, record.elements);
        }
    }
    Ok(())
}

/// Reclaims everything that can be reclaimed; then only the elements of the model are left.
fn reclaim(
    writer: &mut dyn Writer,
    model: &mut Model,
    ids: &[DatabaseId],
) -> Result<(), TestCaseError> {
    // Entries that have nothing to remove may use up a limit, but not often.
    let mut idle = 0;
    while idle < 20 {
        idle = if writer.reclaim(7).unwrap() == 0 { idle + 1 } else { 0 };
    }
    let tx = writer.begin().unwrap();
    let now_ms = tx.now_ms();
    model.retain(|_, record| is_live(record, now_ms));
    for (db, id) in ids.iter().copied().enumerate() {
        let of_db = model.iter().filter(|((d, _), _)| *d == db);
        let count: usize = of_db.filter_map(|(_, r)| Some(r.elements.as_ref()?.len())).sum();
        prop_assert_eq!(elements_of(tx, id, &[]).len(), count);
        prop_assert_eq!(tx.statistics(id.elements()).unwrap().records, count as u64);
    }
    writer.rollback().unwrap();
    Ok(())
}

fn run(
    mut engine: impl Engine,
    clock: &TestClock,
    actions: &[Action],
) -> Result<(), TestCaseError> {
    let mut durable = Model::new();
    for life in actions.split(|action| matches!(action, Action::Reopen)) {
        let store = engine.store();
        let ids = DATABASES.map(|name| store.database(name).unwrap());
        check(&mut *store.snapshot().unwrap(), &durable, &ids)?;
        let mut writer = store.writer().unwrap();
        let mut committed = durable.clone();
        for action in life {
            match action {
                Action::Transaction { writes, is_committed } => {
                    let mut model = committed.clone();
                    let tx = writer.begin().unwrap();
                    for (db, write) in writes {
                        apply(tx, &mut model, *db, ids[*db], write);
                    }
                    check(tx, &model, &ids)?;
                    if *is_committed {
                        writer.commit().unwrap();
                        committed = model;
                    } else {
                        writer.rollback().unwrap();
                    }
                }
                Action::Flush => {
                    writer.flush().unwrap();
                    durable = committed.clone();
                    check(&mut *store.snapshot().unwrap(), &durable, &ids)?;
                }
                Action::Reclaim => reclaim(&mut *writer, &mut committed, &ids)?,
                Action::PassTime { ms } => clock.pass(*ms),
                Action::Reopen => unreachable!("actions are split there"),
            }
        }
        prop_assert_eq!(store.databases().len(), DATABASES.len());
        drop((writer, store));
        engine.reopen();
    }
    let store = engine.store();
    let ids = DATABASES.map(|name| store.database(name).unwrap());
    reclaim(&mut *store.writer().unwrap(), &mut durable, &ids)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn no_element_outlives_its_collection(actions in prop::collection::vec(action(), 1..40)) {
        let clock = TestClock::new();
        run(TreeEngine::new(clock.clone()), &clock, &actions)?;
    }

    #[test]
    fn no_element_outlives_its_collection_in_the_base(
        actions in prop::collection::vec(action(), 1..40),
    ) {
        let clock = TestClock::new();
        run(TreeEngine::checkpointing(clock.clone()), &clock, &actions)?;
    }

    #[test]
    fn no_element_outlives_its_collection_in_runs(
        actions in prop::collection::vec(action(), 1..40),
    ) {
        let clock = TestClock::new();
        run(TreeEngine::with_runs(clock.clone()), &clock, &actions)?;
    }
}

fn collection(tx: &mut dyn WriteTransaction) -> NewRecord<'static> {
    let collection = Some(tx.new_collection().unwrap());
    NewRecord { kind: Kind::Hash, collection, ..NewRecord::of(b"") }
}

#[test]
fn a_collection_that_expires_is_reclaimed_beside_one_that_was_dropped_just_then() {
    let clock = TestClock::new();
    let engine = TreeEngine::new(clock.clone());
    let store = engine.store();
    let ids = DATABASES.map(|name| store.database(name).unwrap());
    let mut writer = store.writer().unwrap();
    transact(&mut *writer, |tx| {
        ids.into_iter().try_for_each(|id| {
            let new = collection(tx).expiring(Some(tx.now_ms() + 1));
            let place = element_key(new.collection.unwrap(), b"e");
            tx.put(id, b"k", new)?;
            tx.put(id.elements(), &place, NewRecord::of(b""))
        })
    })
    .unwrap();
    clock.pass(2);
    transact(&mut *writer, |tx| tx.delete(ids[1], b"k")).unwrap();
    while writer.reclaim(10).unwrap() > 0 {}
    let tx = writer.begin().unwrap();
    assert!(ids.into_iter().all(|id| elements_of(tx, id, &[]).is_empty()));
}

#[test]
fn collections_are_reclaimed_however_little_a_transaction_may_write() {
    const COLLECTIONS: u8 = 10;
    let (clock, directory) = (TestClock::new(), fast_directory());
    let options = tree::Options {
        clock: clock.clone(),
        size_max: 1 << 30,
        transaction_writes_max: 2,
        ..tree::Options::default()
    };
    let store = tree::open(directory.path(), options).unwrap();
    let main = store.database("main").unwrap();
    let mut writer = store.writer().unwrap();
    for n in 0..COLLECTIONS {
        transact(&mut *writer, |tx| {
            let new = collection(tx).expiring(Some(tx.now_ms() + 1));
            let place = element_key(new.collection.unwrap(), b"e");
            tx.put(main, &[n], new)?;
            tx.put(main.elements(), &place, NewRecord::of(b""))
        })
        .unwrap();
    }
    clock.pass(2);
    let mut removed = 0;
    while removed < 2 * usize::from(COLLECTIONS) {
        let some = writer.reclaim(100).unwrap();
        assert!(some > 0, "it stops after {removed}");
        removed += some;
    }
    let tx = writer.begin().unwrap();
    assert!(elements_of(tx, main, &[]).is_empty());
}

#[test]
fn an_element_may_be_as_long_as_a_key_with_its_place_before_it() {
    let engine = TreeEngine::checkpointing(TestClock::new());
    let store = engine.store();
    let main = store.database("main").unwrap();
    let mut writer = store.writer().unwrap();
    let tx = writer.begin().unwrap();
    let new = collection(tx);
    let prefix = new.collection.unwrap().prefix();
    let longest = [&prefix[..], &[b'x'; 24 + limits::KEY_LEN_MAX]].concat();
    tx.put(main, &[b'k'; limits::KEY_LEN_MAX], new).unwrap();
    tx.put(main.elements(), &longest, NewRecord::of(b"v")).unwrap();
    for refused in [&prefix[..], &[&longest[..], b"x"].concat()] {
        let error = tx.put(main.elements(), refused, NewRecord::of(b"v")).unwrap_err();
        assert!(matches!(error, WriteError::Read(ReadError::KeyLength { .. })), "{error}");
    }
    writer.commit().unwrap();
    writer.flush().unwrap();
    writer.begin().unwrap();
    writer.rollback().unwrap();
    let mut snapshot = store.snapshot().unwrap();
    assert!(snapshot.get(main.elements(), &longest).unwrap().is_some());
    let bound = Bound::Included(&longest[..]);
    assert!(snapshot.seek(main.elements(), bound, Direction::Backward).unwrap().is_some());
}

#[test]
fn a_collection_belongs_to_one_key() {
    let engine = TreeEngine::new(TestClock::new());
    let store = engine.store();
    let main = store.database("main").unwrap();
    let mut writer = store.writer().unwrap();
    let new = transact(&mut *writer, |tx| {
        let new = collection(tx);
        tx.put(main, b"a", new).map(|()| new)
    })
    .unwrap();
    let tx = writer.begin().unwrap();
    assert!(matches!(tx.put(main, b"b", new), Err(WriteError::ForeignCollection)));
    assert!(tx.put(main, b"a", new.expiring(Some(u64::MAX))).is_ok());
    let nested = collection(tx);
    let place = element_key(new.collection.unwrap(), b"nested");
    assert!(matches!(tx.put(main.elements(), &place, nested), Err(WriteError::BytesOnly)));
}

#[test]
fn a_transaction_makes_as_many_collections_as_it_may() {
    let engine = TreeEngine::new(TestClock::new());
    let store = engine.store();
    let mut writer = store.writer().unwrap();
    let tx = writer.begin().unwrap();
    let first = tx.new_collection().unwrap();
    for _ in 1..limits::TRANSACTION_COLLECTIONS_MAX {
        assert!(tx.new_collection().unwrap() > first);
    }
    assert!(matches!(tx.new_collection(), Err(WriteError::TooManyCollections)));
    writer.rollback().unwrap();
    assert_eq!(writer.begin().unwrap().new_collection().unwrap(), first, "it was rolled back");
}

#[test]
fn a_cache_holds_bytes_only() {
    let (tree, _directory) = TreeEngine::new(TestClock::new()).into_parts();
    let options = cache::Options { bytes_max: 1 << 20, ..cache::Options::default() };
    let mount = Mount { name: "cache".to_owned(), engine: MountEngine::Cache(options) };
    let store = CompositeStore::new(Box::new(tree), vec![mount]).unwrap();
    let (main, cache) = (store.database("main").unwrap(), store.database("cache").unwrap());
    let mut writer = store.writer().unwrap();
    let tx = writer.begin().unwrap();
    let new = collection(tx);
    assert!(matches!(tx.put(cache, b"k", new), Err(WriteError::BytesOnly)));
    let place = element_key(new.collection.unwrap(), b"e");
    let refused = tx.put(cache.elements(), &place, NewRecord::of(b""));
    assert!(matches!(refused, Err(WriteError::BytesOnly)));
    tx.put(main, b"k", new).unwrap();
    tx.put(main.elements(), &place, NewRecord::of(b"")).unwrap();
    assert!(tx.rename(main, b"k", b"l").unwrap());
    assert!(tx.get(main.elements(), &place).unwrap().is_some());
    tx.put(cache, b"k", NewRecord::of(b"v")).unwrap();
    assert!(tx.rename(cache, b"k", b"l").unwrap());
    assert_eq!(tx.get(cache, b"l").unwrap().unwrap().value, b"v");
}
