//! The engines compared with a model: random operations, transactions that are kept and rolled
//! back, snapshots, groups and reopenings must do what a `BTreeMap` does.

use std::{
    collections::BTreeMap,
    ops::{Bound, ControlFlow},
};

use crate::support::{Engine, TestClock, TreeEngine};
use proptest::prelude::*;
use tokaido_store::{
    Condition, DatabaseId, DatabaseStatistics, Direction, NewRecord, ReadTransaction, Record,
    Snapshot, WriteOperations, WriteTransaction, Writer,
};

const DATABASES: [&str; 3] = ["main", "other", "third"];

#[derive(Clone, Debug, PartialEq)]
struct ModelRecord {
    value: Vec<u8>,
    flags: u32,
    expires_at_ms: Option<u64>,
}

/// Every record of every database, including expired ones, until something removes it.
type Model = BTreeMap<(usize, Vec<u8>), ModelRecord>;

#[derive(Clone, Debug)]
enum Write {
    Put {
        key: Vec<u8>,
        value: Vec<u8>,
        flags: u32,
        ttl_ms: Option<u64>,
    },
    /// The record may be known to exist, if it does.
    Delete {
        key: Vec<u8>,
        is_known: bool,
    },
    Add {
        key: Vec<u8>,
        value: Vec<u8>,
    },
    Replace {
        key: Vec<u8>,
        value: Vec<u8>,
    },
    Increment {
        key: Vec<u8>,
        by: i64,
    },
    Append {
        key: Vec<u8>,
        suffix: Vec<u8>,
    },
    Clear,
    Drop,
    Seek {
        key: Vec<u8>,
        included: bool,
        forward: bool,
    },
}

#[derive(Clone, Debug)]
enum Action {
    Transaction { writes: Vec<(usize, Write)>, keep: bool },
    Flush,
    TakeSnapshot,
    CheckSnapshot,
    Sweep,
    PassTime { ms: u64 },
    Reopen,
}

/// Few keys, so that they meet: short ones, neighbours, and long ones that share a bucket.
fn key() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => prop::collection::vec(prop_oneof![Just(0u8), Just(b'a'), Just(b'b'), Just(255)], 1..4),
        1 => (495usize..505, prop_oneof![Just(b'x'), Just(b'y')], 0u8..3).prop_map(|(len, head, tail)| {
            let mut key = vec![head; len];
            key.push(tail);
            key
        }),
        1 => (Just(4096usize), 0u8..3).prop_map(|(len, tail)| {
            let mut key = vec![b'x'; len - 1];
            key.push(tail);
            key
        }),
    ]
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => prop::collection::vec(any::<u8>(), 0..20),
        2 => any::<i64>().prop_map(|n| n.to_string().into_bytes()),
        1 => (4000usize..9000).prop_map(|len| vec![b'v'; len]),
    ]
}

fn write() -> impl Strategy<Value = Write> {
    prop_oneof![
        6 => (key(), value(), prop_oneof![Just(0u32), any::<u32>()], prop::option::of(0u64..50))
            .prop_map(|(key, value, flags, ttl_ms)| Write::Put { key, value, flags, ttl_ms }),
        3 => (key(), any::<bool>()).prop_map(|(key, is_known)| Write::Delete { key, is_known }),
        1 => (key(), value()).prop_map(|(key, value)| Write::Add { key, value }),
        1 => (key(), value()).prop_map(|(key, value)| Write::Replace { key, value }),
        2 => (key(), -5i64..5).prop_map(|(key, by)| Write::Increment { key, by }),
        1 => (key(), value()).prop_map(|(key, suffix)| Write::Append { key, suffix }),
        1 => Just(Write::Clear),
        1 => Just(Write::Drop),
        2 => (key(), any::<bool>(), any::<bool>())
            .prop_map(|(key, included, forward)| Write::Seek { key, included, forward }),
    ]
}

fn action() -> impl Strategy<Value = Action> {
    let writes = prop::collection::vec((0..DATABASES.len(), write()), 0..12);
    prop_oneof![
        10 => (writes, prop::bool::weighted(0.7))
            .prop_map(|(writes, keep)| Action::Transaction { writes, keep }),
        4 => Just(Action::Flush),
        2 => Just(Action::TakeSnapshot),
        3 => Just(Action::CheckSnapshot),
        2 => Just(Action::Sweep),
        3 => (1u64..40).prop_map(|ms| Action::PassTime { ms }),
        1 => Just(Action::Reopen),
    ]
}

impl ModelRecord {
    fn of(record: &Record<'_>) -> Self {
        Self {
            value: record.value.to_vec(),
            flags: record.flags,
            expires_at_ms: record.expires_at_ms,
        }
    }
}

fn is_live(record: &ModelRecord, now_ms: u64) -> bool {
    record.expires_at_ms.is_none_or(|at| now_ms < at)
}

fn live<'m>(model: &'m Model, db: usize, key: &[u8], now_ms: u64) -> Option<&'m ModelRecord> {
    model.get(&(db, key.to_vec())).filter(|record| is_live(record, now_ms))
}

fn model_seek(
    model: &Model,
    db: usize,
    key: &[u8],
    included: bool,
    forward: bool,
    now_ms: u64,
) -> Option<Vec<u8>> {
    let mut keys = model
        .iter()
        .filter(|((d, _), record)| *d == db && is_live(record, now_ms))
        .map(|((_, k), _)| k);
    match (forward, included) {
        (true, true) => keys.find(|k| k[..] >= *key),
        (true, false) => keys.find(|k| k[..] > *key),
        (false, true) => keys.rfind(|k| k[..] <= *key),
        (false, false) => keys.rfind(|k| k[..] < *key),
    }
    .cloned()
}

/// Applies one write to the store and to the model, and compares the results.
fn apply(
    tx: &mut dyn WriteTransaction,
    model: &mut Model,
    ids: &[DatabaseId],
    db: usize,
    write: &Write,
) -> Result<(), TestCaseError> {
    let (id, now_ms) = (ids[db], tx.now_ms());
    let plain = |value: &[u8]| ModelRecord { value: value.to_vec(), flags: 0, expires_at_ms: None };
    match write {
        Write::Put { key, value, flags, ttl_ms } => {
            let expires_at_ms = ttl_ms.map(|ttl| now_ms + ttl);
            let new = NewRecord { flags: *flags, expires_at_ms, ..NewRecord::of(value) };
            tx.put(id, key, new).unwrap();
            let record = ModelRecord { value: value.clone(), flags: *flags, expires_at_ms };
            model.insert((db, key.clone()), record);
        }
        Write::Delete { key, is_known } => {
            let expected = live(model, db, key, now_ms).is_some();
            model.remove(&(db, key.clone()));
            match *is_known && expected {
                true => tx.delete_existing(id, key).unwrap(),
                false => prop_assert_eq!(tx.delete(id, key).unwrap(), expected),
            }
        }
        Write::Add { key, value } => {
            let expected = live(model, db, key, now_ms).is_none();
            if expected {
                model.insert((db, key.clone()), plain(value));
            }
            let done = tx.put_if(id, key, Condition::Absent, NewRecord::of(value)).unwrap();
            prop_assert_eq!(done, expected);
        }
        Write::Replace { key, value } => {
            let expected = live(model, db, key, now_ms).is_some();
            if expected {
                model.insert((db, key.clone()), plain(value));
            }
            let done = tx.put_if(id, key, Condition::Present, NewRecord::of(value)).unwrap();
            prop_assert_eq!(done, expected);
        }
        Write::Increment { key, by } => {
            let old = live(model, db, key, now_ms).cloned().unwrap_or_else(|| plain(b"0"));
            let number = tokaido_store::counter::parse(&old.value).and_then(|n| n.checked_add(*by));
            prop_assert_eq!(tx.increment(id, key, *by).ok(), number);
            if let Some(number) = number {
                let value = number.to_string().into_bytes();
                model.insert((db, key.clone()), ModelRecord { value, ..old });
            }
        }
        Write::Append { key, suffix } => {
            let old = live(model, db, key, now_ms).cloned().unwrap_or_else(|| plain(b""));
            let value = [&old.value[..], suffix].concat();
            prop_assert_eq!(tx.append(id, key, suffix).unwrap(), value.len());
            model.insert((db, key.clone()), ModelRecord { value, ..old });
        }
        Write::Clear => {
            tx.clear(id).unwrap();
            model.retain(|(d, _), _| *d != db);
        }
        Write::Drop => {
            let had_any = model.keys().any(|(d, _)| *d == db);
            prop_assert!(tx.drop_database(id).unwrap() || !had_any);
            model.retain(|(d, _), _| *d != db);
        }
        Write::Seek { key, included, forward } => {
            let bound =
                if *included { Bound::Included(&key[..]) } else { Bound::Excluded(&key[..]) };
            let direction = if *forward { Direction::Forward } else { Direction::Backward };
            let found = tx.seek(id, bound, direction).unwrap().map(|entry| entry.key.to_vec());
            let mut expected = model_seek(model, db, key, *included, *forward, now_ms);
            prop_assert_eq!(&found, &expected);
            let mut scanned = Vec::new();
            tx.scan(id, bound, Bound::Unbounded, direction, &mut |entry| {
                scanned.push(entry.key.to_vec());
                if scanned.len() < 4 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })
            .unwrap();
            for key in &scanned {
                prop_assert_eq!(Some(key), expected.as_ref());
                expected = model_seek(model, db, key, false, *forward, now_ms);
            }
            prop_assert!(expected.is_none() || scanned.len() == 4, "the scan ended too early");
            let mut scanned = Vec::new();
            tx.scan(id, Bound::Unbounded, bound, direction, &mut |entry| {
                scanned.push(entry.key.to_vec());
                ControlFlow::Continue(())
            })
            .unwrap();
            let of_db = model.iter().filter(|((d, _), record)| *d == db && is_live(record, now_ms));
            let reached = of_db.map(|((_, found), _)| found).filter(|found| {
                let is_before = if *forward { *found < key } else { *found > key };
                is_before || (*included && *found == key)
            });
            let mut reached: Vec<_> = reached.cloned().collect();
            if !forward {
                reached.reverse();
            }
            prop_assert_eq!(scanned, reached, "what a scan up to a key has come by");
        }
    }
    Ok(())
}

/// Compares everything that a transaction can see with the model, in both directions. Statistics
/// are as of the last commit, so an older snapshot has none to compare.
fn check(
    tx: &mut (impl ReadTransaction + ?Sized),
    model: &Model,
    ids: &[DatabaseId],
    is_latest: bool,
) -> Result<(), TestCaseError> {
    let now_ms = tx.now_ms();
    for (db, id) in ids.iter().copied().enumerate() {
        let of_db = || model.iter().filter(move |((d, _), _)| *d == db);
        let expected: Vec<_> = of_db()
            .filter(|(_, r)| is_live(r, now_ms))
            .map(|((_, k), r)| (k.clone(), r.clone()))
            .collect();
        for direction in [Direction::Forward, Direction::Backward] {
            let mut seen = Vec::new();
            let mut from: Bound<Vec<u8>> = Bound::Unbounded;
            while let Some(entry) =
                tx.seek(id, from.as_ref().map(Vec::as_slice), direction).unwrap()
            {
                seen.push((entry.key.to_vec(), ModelRecord::of(&entry.record)));
                from = Bound::Excluded(entry.key.to_vec());
            }
            let mut scanned = Vec::new();
            tx.scan(id, Bound::Unbounded, Bound::Unbounded, direction, &mut |entry| {
                scanned.push((entry.key.to_vec(), ModelRecord::of(&entry.record)));
                ControlFlow::Continue(())
            })
            .unwrap();
            prop_assert_eq!(&scanned, &seen);
            if direction == Direction::Backward {
                seen.reverse();
            }
            prop_assert_eq!(&seen, &expected);
        }
        let statistics =
            of_db().fold(DatabaseStatistics::default(), |mut s, ((_, key), record)| {
                s.records += 1;
                s.key_bytes += key.len() as u64;
                s.value_bytes += record.value.len() as u64;
                s
            });
        if is_latest {
            prop_assert_eq!(tx.statistics(id).unwrap(), statistics);
        }
    }
    check_gets(tx, model, ids)
}

/// Like [`check`], but only with gets.
fn check_gets(
    tx: &mut (impl ReadTransaction + ?Sized),
    model: &Model,
    ids: &[DatabaseId],
) -> Result<(), TestCaseError> {
    let now_ms = tx.now_ms();
    for ((db, key), record) in model {
        let found = tx.get(ids[*db], key).unwrap().map(|r| r.value.to_vec());
        let value = is_live(record, now_ms).then(|| record.value.clone());
        prop_assert_eq!(found, value);
    }
    Ok(())
}

struct Run<E: Engine> {
    engine: E,
    clock: std::sync::Arc<TestClock>,
    /// What is committed and flushed, and what the group has kept on top of it.
    durable: Model,
    kept: Model,
}

impl<E: Engine> Run<E> {
    fn new(clock: std::sync::Arc<TestClock>, engine: E) -> Self {
        Self { engine, clock, durable: Model::new(), kept: Model::new() }
    }

    fn run(&mut self, actions: &[Action]) -> Result<(), TestCaseError> {
        let mut rest = actions;
        loop {
            let until_reopen = rest.iter().position(|a| matches!(a, Action::Reopen));
            let (now, later) = rest.split_at(until_reopen.unwrap_or(rest.len()));
            self.session(now)?;
            // What was not flushed when the writer was dropped did not happen.
            self.kept = self.durable.clone();
            self.engine.reopen();
            match later.split_first() {
                None => return self.session(&[]),
                Some((_, later)) => rest = later,
            }
        }
    }

    fn session(&mut self, actions: &[Action]) -> Result<(), TestCaseError> {
        let store = self.engine.store();
        let ids: Vec<_> = DATABASES.iter().map(|name| store.database(name).unwrap()).collect();
        let mut snapshot: (Box<dyn Snapshot>, Model) =
            (store.snapshot().unwrap(), self.durable.clone());
        let mut writer = store.writer().unwrap();
        check(&mut *snapshot.0, &snapshot.1, &ids, true)?;
        for action in actions {
            match action {
                Action::Transaction { writes, keep } => {
                    let mut model = self.kept.clone();
                    let tx = writer.begin().unwrap();
                    for (db, write) in writes {
                        apply(tx, &mut model, &ids, *db, write)?;
                    }
                    check(tx, &model, &ids, true)?;
                    if *keep {
                        writer.commit().unwrap();
                        self.kept = model;
                    } else {
                        writer.rollback().unwrap();
                    }
                }
                Action::Flush => {
                    writer.flush().unwrap();
                    self.durable = self.kept.clone();
                }
                Action::TakeSnapshot => {
                    snapshot.0.renew().unwrap();
                    snapshot.1 = self.durable.clone();
                }
                Action::CheckSnapshot => {
                    let is_latest = snapshot.1 == self.durable;
                    check(&mut *snapshot.0, &snapshot.1, &ids, is_latest)?;
                }
                Action::Sweep => self.sweep(&mut *writer)?,
                Action::PassTime { ms } => self.clock.pass(*ms),
                Action::Reopen => unreachable!("actions are split there"),
            }
        }
        let is_latest = snapshot.1 == self.durable;
        check(&mut *snapshot.0, &snapshot.1, &ids, is_latest)
    }

    fn sweep(&mut self, writer: &mut dyn Writer) -> Result<(), TestCaseError> {
        let now_ms = self.clock.now();
        let expected = self.kept.values().filter(|r| !is_live(r, now_ms)).count();
        let mut removed = 0;
        // Stale entries of an index may use up a limit without a record to remove.
        for _ in 0..1000 {
            removed += writer.reclaim(7).unwrap();
            if removed == expected {
                break;
            }
        }
        prop_assert_eq!(removed, expected);
        self.kept.retain(|_, record| is_live(record, now_ms));
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn tree_does_what_the_model_does(actions in prop::collection::vec(action(), 1..40)) {
        let clock = TestClock::new();
        let engine = TreeEngine::new(clock.clone());
        Run::new(clock, engine).run(&actions)?;
    }

    #[test]
    fn tree_with_runs_does_what_the_model_does(
        actions in prop::collection::vec(action(), 1..60),
    ) {
        let clock = TestClock::new();
        let engine = TreeEngine::with_runs(clock.clone());
        Run::new(clock, engine).run(&actions)?;
    }

    #[test]
    fn tree_with_many_checkpoints_does_what_the_model_does(
        actions in prop::collection::vec(action(), 1..40),
    ) {
        let clock = TestClock::new();
        let engine = TreeEngine::checkpointing(clock.clone());
        Run::new(clock, engine).run(&actions)?;
    }

    #[test]
    fn tree_that_closes_with_an_empty_log_does_what_the_model_does(
        actions in prop::collection::vec(action(), 1..40),
    ) {
        let clock = TestClock::new();
        let engine = TreeEngine::emptying_log(clock.clone());
        Run::new(clock, engine).run(&actions)?;
    }
}
