//! Tables, compared with a model: rows in a map, and queries that look at each of them.

use std::collections::BTreeMap;

use proptest::{collection::vec, option, prelude::*, sample::select};
use tempfile::TempDir;
use tokaido_store::{
    Amendment, DatabaseId, Entry, Kind, Marks, NewRecord, ReadTransaction, Store, WriteTransaction,
    tree,
};

use crate::{
    Bounds, Condition, IndexSetting, OPERATORS, ORDERS, Order, Query, Row, TableError, TableStore,
    Wanted,
    declaration::Declaration,
    entries,
    search::{Ranked, search},
    set_index,
};

const PAST: Option<u64> = Some(1);
const FUTURE: Option<u64> = Some(u64::MAX);
const KINDS: [&str; 7] = ["LEXICAL", "DECIMAL", "TOKEN", "QGRAM", "OPTIMIZE", "VOID", "+TOKEN"];
const COLUMNS: [&str; 4] = ["", "name", "age", "text"];

const UNBOUNDED: Bounds = Bounds { bytes_max: usize::MAX, is_stopping: || false };

/// An operation on a table.
#[derive(Clone, Debug)]
enum Step {
    Put(Vec<u8>, Vec<u8>, Option<u64>),
    PutHash(Vec<u8>),
    Delete(Vec<u8>),
    Amend(Vec<u8>, Option<u64>),
    Rename(Vec<u8>, Vec<u8>),
    SetIndex(&'static str, &'static str),
    Clear,
    Drop,
    Reclaim(usize),
}

fn key() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        8 => "[ab1-9]{1,2}".prop_map(String::into_bytes),
        1 => select(vec![b"a\0b".to_vec(), b"\xff".to_vec(), b"nan".to_vec(), vec![b'k'; 3000]]),
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[ab ,]{0,6}",
        4 => "-?[0-9]{1,3}(\\.[0-9])?",
        2 => select(vec!["Tokyo Kyoto", "kyoto", "東海道 五十三次", "東海", "inf", "nan", "ab", "a"])
            .prop_map(str::to_owned),
        1 => (1022..1027_usize, "[ab]{0,3}").prop_map(|(len, end)| "x".repeat(len) + &end),
    ]
}

fn row() -> impl Strategy<Value = Vec<u8>> {
    let columns = vec((select(&COLUMNS[1..]), text()), 0..4);
    columns.prop_map(|columns| {
        let texts: Vec<_> = columns.iter().flat_map(|(name, text)| [*name, text]).collect();
        texts.join("\0").into_bytes()
    })
}

fn step() -> impl Strategy<Value = Step> {
    let expiry = || select(vec![None, None, FUTURE, PAST]);
    prop_oneof![
        12 => (key(), row(), expiry()).prop_map(|(key, row, expiry)| Step::Put(key, row, expiry)),
        1 => key().prop_map(Step::PutHash),
        3 => key().prop_map(Step::Delete),
        2 => (key(), expiry()).prop_map(|(key, expiry)| Step::Amend(key, expiry)),
        2 => (key(), key()).prop_map(|(from, to)| Step::Rename(from, to)),
        4 => (select(&COLUMNS[..]), select(&KINDS[..])).prop_map(|(c, k)| Step::SetIndex(c, k)),
        1 => Just(Step::Clear),
        1 => Just(Step::Drop),
        2 => (1..40_usize).prop_map(Step::Reclaim),
    ]
}

fn condition() -> impl Strategy<Value = Condition> {
    let operator = (select(&OPERATORS[..]), select(vec!["", "", "", "~", "+"]));
    let operand = prop_oneof![
        3 => text(),
        1 => (text(), text()).prop_map(|(a, b)| format!("{a} {b}")),
        1 => (text(), text()).prop_map(|(a, b)| format!("{a} || {b}")),
        1 => "[ab1]{1,2}",
    ];
    let made = (select(&COLUMNS[..]), operator, operand).prop_map(
        |(column, (operator, flag), operand)| {
            let operator = format!("{flag}{}", operator.1[0]);
            Condition::new(column.as_bytes(), operator.as_bytes(), operand.as_bytes())
        },
    );
    made.prop_filter_map("an expression that is none", Result::ok)
}

fn query() -> impl Strategy<Value = Query> {
    let order = option::of((select(&COLUMNS[..]), select(&ORDERS[..])));
    let order = order.prop_map(|order| {
        order.map(|(column, (by, _))| Order { column: column.as_bytes().to_vec(), by })
    });
    let max = prop_oneof![Just(usize::MAX), 0..5_usize];
    (vec(condition(), 0..3), order, max, 0..3_usize)
        .prop_map(|(conditions, order, max, skip)| Query { conditions, order, max, skip })
}

/// What is under a key: a row or something else, and its expiry.
type Model = BTreeMap<Vec<u8>, (Option<Vec<u8>>, Option<u64>)>;

/// A table in a directory, and its expected contents.
struct Bed {
    directory: TempDir,
    store: Option<TableStore>,
    table: DatabaseId,
    model: Model,
}

fn open(directory: &TempDir) -> TableStore {
    let inner = tree::open(directory.path(), tree::Options::default()).expect("a store");
    TableStore::new(Box::new(inner), ["people"]).expect("a store with tables")
}

impl Bed {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let store = open(&directory);
        let table = store.database("people").expect("a database");
        Self { directory, store: Some(store), table, model: Model::new() }
    }

    fn store(&self) -> &TableStore {
        self.store.as_ref().expect("it is open")
    }

    fn reopen(&mut self) {
        self.store = None;
        let store = open(&self.directory);
        self.table = store.database("people").expect("a database");
        self.store = Some(store);
    }

    /// Runs steps in one transaction, which is then committed or rolled back.
    fn run(&mut self, steps: &[Step], is_committed: bool) {
        let mut model = self.model.clone();
        let mut writer = self.store().writer().expect("a writer");
        let tx = writer.begin().expect("a transaction");
        for step in steps {
            take(tx, self.table, step, &mut model);
        }
        self.check(tx, &model);
        if !is_committed {
            writer.rollback().expect("a rollback");
            return;
        }
        writer.commit().expect("a commit");
        writer.flush().expect("a flush");
        self.model = model;
    }

    /// Checks that the indexes have the entries of the existing rows, and no others.
    fn check(&self, tx: &mut dyn ReadTransaction, model: &Model) {
        let declaration = Declaration::read(tx, self.table).expect("a read").unwrap_or_default();
        let mut expected = entries::Entries::new();
        for (key, (value, expiry)) in model {
            if *expiry != PAST {
                expected
                    .extend(entries::of_row(&declaration, key, value.as_deref()).expect("a row"));
            }
        }
        let unfinished = declaration.indexes.iter().filter(|index| !index.is_built());
        let unfinished: Vec<_> = unfinished.map(entries::prefix).collect();
        let is_certain =
            |entry: &&Vec<u8>| !unfinished.iter().any(|prefix| entry.starts_with(prefix));
        let mut found = entries::Entries::new();
        let prefix = [&DatabaseId::DERIVED_ELEMENTS[..], &[1]].concat();
        tx.scan(
            self.table.elements(),
            std::ops::Bound::Included(&prefix),
            std::ops::Bound::Unbounded,
            tokaido_store::Direction::Forward,
            &mut |Entry { key, .. }| {
                assert!(key.starts_with(&prefix), "nothing else is there");
                found.insert(key.to_vec());
                std::ops::ControlFlow::Continue(())
            },
        )
        .expect("a scan");
        let certain = |entries: &entries::Entries| -> Vec<_> {
            entries.iter().filter(is_certain).cloned().collect()
        };
        assert_eq!(certain(&found), certain(&expected));
    }

    fn ask(&self, query: &Query) {
        let mut tx = self.store().snapshot().expect("a snapshot");
        let live = self.model.iter().filter(|(_, (value, at))| value.is_some() && *at != PAST);
        let mut rows: Vec<_> = live
            .map(|(key, (value, _))| (key, Row::new(value.as_deref().unwrap_or_default())))
            .filter(|(key, row)| query.holds(key, *row))
            .collect();
        if let Some(order) = &query.order {
            rows.sort_by_cached_key(|(key, row)| Ranked::new(order, (*key).clone(), *row));
        }
        let all: Vec<_> = rows.iter().map(|(key, _)| (*key).clone()).collect();
        let expected: Vec<_> = all.iter().skip(query.skip).take(query.max).cloned().collect();
        let found = search(&mut *tx, self.table, query, Wanted::Keys, UNBOUNDED).expect("a search");
        let is_any_right = query.order.is_none();
        if is_any_right {
            let mut sorted = found.keys.clone();
            sorted.sort();
            sorted.dedup();
            assert_eq!(sorted.len(), expected.len(), "{query:?}: {}", found.hint);
            assert!(sorted.iter().all(|key| all.contains(key)), "{query:?}: {}", found.hint);
        } else {
            assert_eq!(found.keys, expected, "{query:?}: {}", found.hint);
        }
        assert_eq!(found.count, expected.len(), "{query:?}: {}", found.hint);
        let counted =
            search(&mut *tx, self.table, query, Wanted::Count, UNBOUNDED).expect("a count");
        assert_eq!((counted.count, counted.keys.len()), (expected.len(), 0), "{query:?}");
    }
}

fn take(tx: &mut dyn WriteTransaction, table: DatabaseId, step: &Step, model: &mut Model) {
    match step.clone() {
        Step::Put(key, value, expiry) => {
            tx.put(table, &key, NewRecord::of(&value).expiring(expiry)).expect("a put");
            model.insert(key, (Some(value), expiry));
        }
        Step::PutHash(key) => {
            let record = NewRecord { value: b"x", kind: Kind::Hash, ..NewRecord::default() };
            tx.put(table, &key, record).expect("a put");
            model.insert(key, (None, None));
        }
        Step::Delete(key) => {
            tx.delete(table, &key).expect("a deletion");
            model.remove(&key);
        }
        Step::Amend(key, expires_at_ms) => {
            let amendment = Amendment { expires_at_ms, marks: Marks::NONE };
            if tx.amend(table, &key, amendment).expect("an amendment").is_some() {
                model.entry(key).and_modify(|(_, expiry)| *expiry = expires_at_ms);
            }
        }
        Step::Rename(from, to) => {
            if tx.rename(table, &from, &to).expect("a rename") {
                let moved = model.remove(&from).expect("it was there");
                model.insert(to, moved);
            }
        }
        Step::SetIndex(column, kind) => {
            let setting = IndexSetting::from_name(kind.as_bytes()).expect("a setting");
            set_index(tx, table, column.as_bytes(), setting).expect("an index");
        }
        Step::Clear => {
            tx.clear(table).expect("a clearing");
            model.clear();
        }
        Step::Drop => {
            tx.drop_database(table).expect("a drop");
            model.clear();
        }
        Step::Reclaim(limit) => {
            tx.reclaim(limit).expect("a removal");
            model.retain(|_, (_, expiry)| *expiry != PAST || limit < 40);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn a_table_is_like_its_model(
        transactions in vec((vec(step(), 0..12), prop::bool::weighted(0.8)), 1..8),
        queries in vec(query(), 8..24),
        reopening in 0..8_usize,
    ) {
        let mut bed = Bed::new();
        for (place, (steps, is_committed)) in transactions.iter().enumerate() {
            bed.run(steps, *is_committed);
            if place == reopening {
                bed.reopen();
            }
            let mut snapshot = bed.store().snapshot().unwrap();
            bed.check(&mut *snapshot, &bed.model);
            drop(snapshot);
            for query in &queries {
                bed.ask(query);
            }
        }
    }

    #[test]
    fn an_index_changes_no_result(
        rows in vec((key(), row()), 30..60),
        kinds in [select(&KINDS[..4]), select(&KINDS[..4]), select(&KINDS[..4]), select(&KINDS[..4])],
        queries in vec(query(), 30..60),
    ) {
        let mut bed = Bed::new();
        let puts: Vec<_> = rows.into_iter().map(|(key, row)| Step::Put(key, row, None)).collect();
        let indexes = COLUMNS.into_iter().zip(kinds);
        let mut steps: Vec<_> = indexes.map(|(column, kind)| Step::SetIndex(column, kind)).collect();
        steps.push(Step::Reclaim(10_000));
        bed.run(&puts[..15], true);
        bed.run(&steps, true);
        bed.run(&puts[15..], true);
        let mut snapshot = bed.store().snapshot().unwrap();
        let all = crate::indexes(&mut *snapshot, bed.table).unwrap();
        prop_assert!(all.len() == COLUMNS.len() && all.iter().all(|index| index.is_built()));
        for query in &queries {
            bed.ask(query);
        }
    }
}

#[test]
fn a_table_with_indexes_is_swapped_with_tables_only() {
    let directory = tempfile::tempdir().unwrap();
    let inner = tree::open(directory.path(), tree::Options::default()).unwrap();
    let store = TableStore::new(Box::new(inner), ["one", "two"]).unwrap();
    let [one, two, plain] = ["one", "two", "plain"].map(|name| store.database(name).unwrap());
    let mut writer = store.writer().unwrap();
    let tx = writer.begin().unwrap();
    set_index(tx, one, b"name", IndexSetting::from_name(b"LEXICAL").unwrap()).unwrap();
    tx.put(one, b"k", NewRecord::of(b"name\0Ieyasu")).unwrap();
    tx.put(plain, b"p", NewRecord::of(b"name\0Ieyasu")).unwrap();
    assert!(tx.swap_databases(one, plain).is_err() && tx.swap_databases(plain, one).is_err());
    tx.swap_databases(two, plain).unwrap();
    tx.swap_databases(one, two).unwrap();
    tx.put(two, b"l", NewRecord::of(b"name\0Ieyasu")).unwrap();
    let mut query = Query::default();
    query.add(Condition::new(b"name", b"STREQ", b"Ieyasu").unwrap()).unwrap();
    let found = search(tx, two, &query, Wanted::Keys, UNBOUNDED).unwrap();
    assert_eq!(found.keys, [b"k", b"l"]);
    assert!(found.hint.starts_with("using an index"), "{}", found.hint);
    let found = search(tx, one, &query, Wanted::Keys, UNBOUNDED).unwrap();
    assert_eq!(found.keys, [b"p"]);
    assert!(found.hint.starts_with("scanning"), "{}", found.hint);
    // Whether or not a row satisfies the query.
    let stopping = Bounds { is_stopping: || true, ..UNBOUNDED };
    for query in [&query, &Query::default()] {
        for (table, wanted) in [(one, Wanted::Keys), (two, Wanted::Keys), (two, Wanted::Count)] {
            assert_eq!(search(tx, table, query, wanted, stopping), Err(TableError::Stopped));
        }
    }
}
