//! Hashes, lists, sets, sorted sets and streams, compared with models: random operations in
//! committed and aborted transactions, packed and large forms, across checkpoints and reopening.

mod corners;
mod engine;
mod hashes;
mod lists;
mod sets;
mod sorted_sets;
mod streams;

use std::{collections::BTreeMap, fmt::Debug};

use engine::Engine;
use proptest::prelude::*;
use tokaido_collections::Packing;
use tokaido_store::{DatabaseId, ReadTransaction, Store, WriteTransaction};

/// A few elements make a collection large.
pub(crate) const PACKING: Packing = Packing { elements_max: 4, text_len_max: 6 };

/// Only a few keys, so that operations hit existing collections.
const KEYS: u8 = 3;

/// A kind of value: its operations, in the store and in a model.
pub(crate) trait Modelled {
    type Value: Clone + Debug + Default;
    type Operation: Clone + Debug;

    fn operation() -> impl Strategy<Value = Self::Operation>;

    /// Applies the same operation to both, and compares the results.
    fn apply(
        tx: &mut dyn WriteTransaction,
        database: DatabaseId,
        key: &[u8],
        model: &mut Self::Value,
        operation: &Self::Operation,
    );

    /// Compares all that can be read.
    fn check(tx: &mut dyn ReadTransaction, database: DatabaseId, key: &[u8], model: &Self::Value);

    /// Whether no record may exist.
    fn is_empty(model: &Self::Value) -> bool;
}

type Model<M> = BTreeMap<u8, <M as Modelled>::Value>;

/// Operations on any kind.
#[derive(Clone, Debug)]
enum Write<O> {
    Operate { key: u8, operation: O },
    Delete { key: u8 },
    Rename { from: u8, to: u8 },
}

#[derive(Clone, Debug)]
enum Action<O> {
    Transaction { writes: Vec<Write<O>>, is_kept: bool },
    Flush,
    Reclaim,
    Reopen,
}

fn write<M: Modelled>() -> impl Strategy<Value = Write<M::Operation>> {
    prop_oneof![
        20 => (0..KEYS, M::operation())
            .prop_map(|(key, operation)| Write::Operate { key, operation }),
        1 => (0..KEYS).prop_map(|key| Write::Delete { key }),
        1 => (0..KEYS, 0..KEYS).prop_map(|(from, to)| Write::Rename { from, to }),
    ]
}

fn actions<M: Modelled>() -> impl Strategy<Value = Vec<Action<M::Operation>>> {
    let action = prop_oneof![
        10 => (prop::collection::vec(write::<M>(), 0..12), prop::bool::weighted(0.8))
            .prop_map(|(writes, is_kept)| Action::Transaction { writes, is_kept }),
        4 => Just(Action::Flush),
        1 => Just(Action::Reclaim),
        1 => Just(Action::Reopen),
    ];
    prop::collection::vec(action, 1..30)
}

fn apply<M: Modelled>(
    tx: &mut dyn WriteTransaction,
    database: DatabaseId,
    model: &mut Model<M>,
    write: &Write<M::Operation>,
) {
    match write {
        Write::Operate { key, operation } => {
            let value = model.entry(*key).or_default();
            M::apply(tx, database, &[*key], value, operation);
        }
        Write::Delete { key } => {
            let value = model.remove(key).unwrap_or_default();
            assert_eq!(tx.delete(database, &[*key]).unwrap(), !M::is_empty(&value));
        }
        Write::Rename { from, to } => {
            let value = model.get(from).cloned().unwrap_or_default();
            let is_there = !M::is_empty(&value);
            assert_eq!(tx.rename(database, &[*from], &[*to]).unwrap(), is_there);
            if is_there {
                model.remove(from);
                model.insert(*to, value);
            }
        }
    }
}

fn check_all<M: Modelled>(tx: &mut dyn ReadTransaction, database: DatabaseId, model: &Model<M>) {
    for key in 0..KEYS {
        let value = model.get(&key).cloned().unwrap_or_default();
        M::check(tx, database, &[key], &value);
        let is_there = tx.get(database, &[key]).unwrap().is_some();
        assert_eq!(is_there, !M::is_empty(&value));
    }
}

/// Runs the actions between two openings of a store. At the end, `durable` is what was flushed.
fn live<M: Modelled>(store: &dyn Store, durable: &mut Model<M>, actions: &[Action<M::Operation>]) {
    let database = store.database("main").unwrap();
    check_all::<M>(&mut *store.snapshot().unwrap(), database, durable);
    let mut writer = store.writer().unwrap();
    let mut committed = durable.clone();
    for action in actions {
        match action {
            Action::Transaction { writes, is_kept } => {
                let mut model = committed.clone();
                let tx = writer.begin().unwrap();
                for write in writes {
                    apply::<M>(tx, database, &mut model, write);
                }
                check_all::<M>(tx, database, &model);
                if *is_kept {
                    writer.commit().unwrap();
                    committed = model;
                } else {
                    writer.rollback().unwrap();
                }
            }
            Action::Flush => {
                writer.flush().unwrap();
                *durable = committed.clone();
                check_all::<M>(&mut *store.snapshot().unwrap(), database, durable);
            }
            Action::Reclaim => {
                writer.reclaim(100).unwrap();
            }
            Action::Reopen => unreachable!("actions are split there"),
        }
    }
}

/// Deletes everything; no element may be left then.
fn end(store: &dyn Store) {
    let database = store.database("main").unwrap();
    let mut writer = store.writer().unwrap();
    let tx = writer.begin().unwrap();
    for key in 0..KEYS {
        tx.delete(database, &[key]).unwrap();
    }
    writer.commit().unwrap();
    // Entries with nothing to remove may use up a limit, but not often.
    for _ in 0..20 {
        writer.reclaim(1000).unwrap();
    }
    let tx = writer.begin().unwrap();
    assert_eq!(tx.statistics(database.elements()).unwrap().records, 0);
    writer.rollback().unwrap();
    writer.flush().unwrap();
}

fn run<M: Modelled>(mut engine: Engine, actions: &[Action<M::Operation>]) {
    let mut durable = Model::<M>::new();
    for life in actions.split(|action| matches!(action, Action::Reopen)) {
        live::<M>(&*engine.store(), &mut durable, life);
        engine.reopen();
    }
    end(&*engine.store());
}

/// The tests of one kind: with everything in the log and the memtable, and with a checkpoint for
/// every group.
macro_rules! model_tests {
    ($modelled:ty) => {
        proptest::proptest! {
            #![proptest_config(proptest::prelude::ProptestConfig { cases: 40, ..Default::default() })]

            #[test]
            fn does_what_the_model_does(actions in super::actions::<$modelled>()) {
                super::in_the_memtable::<$modelled>(&actions);
            }

            #[test]
            fn does_what_the_model_does_over_checkpoints(actions in super::actions::<$modelled>()) {
                super::over_checkpoints::<$modelled>(&actions);
            }
        }
    };
}
pub(crate) use model_tests;

fn in_the_memtable<M: Modelled>(actions: &[Action<M::Operation>]) {
    run::<M>(Engine::new(), actions);
}

fn over_checkpoints<M: Modelled>(actions: &[Action<M::Operation>]) {
    run::<M>(Engine::checkpointing(), actions);
}
