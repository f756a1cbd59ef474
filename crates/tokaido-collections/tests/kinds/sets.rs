//! Sets, compared with sets of the standard library, one by one and combined.

use std::{collections::BTreeSet, ops::ControlFlow};

use super::{Modelled, PACKING};
use proptest::prelude::*;
use tokaido_collections::{Set, intersect, subtract, unite};
use tokaido_store::{DatabaseId, ReadTransaction, WriteTransaction};

struct Sets;

type Members = BTreeSet<Vec<u8>>;

#[derive(Clone, Debug)]
enum Operation {
    Add(Vec<Vec<u8>>),
    Remove(Vec<Vec<u8>>),
    Pop(u64),
    Replace(Vec<Vec<u8>>),
    /// With another set.
    Combine(Vec<Vec<u8>>),
}

/// Some are too long to be packed.
fn members() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let member = prop_oneof![
        8 => (0u8..9).prop_map(|n| vec![n]),
        1 => Just(Vec::new()),
        1 => (0u8..3).prop_map(|n| vec![n; 7]),
    ];
    prop::collection::vec(member, 0..6)
}

fn slices(members: &[Vec<u8>]) -> impl Iterator<Item = &[u8]> {
    members.iter().map(Vec::as_slice)
}

impl Modelled for Sets {
    type Value = Members;
    type Operation = Operation;

    fn operation() -> impl Strategy<Value = Operation> {
        prop_oneof![
            5 => members().prop_map(Operation::Add),
            3 => members().prop_map(Operation::Remove),
            2 => (0u64..5).prop_map(Operation::Pop),
            1 => members().prop_map(Operation::Replace),
            2 => members().prop_map(Operation::Combine),
        ]
    }

    fn apply(
        tx: &mut dyn WriteTransaction,
        database: DatabaseId,
        key: &[u8],
        model: &mut Members,
        operation: &Operation,
    ) {
        let set = Set::new(database, key);
        let before = model.len();
        match operation {
            Operation::Add(members) => {
                let added = set.add(tx, PACKING, slices(members)).unwrap();
                model.extend(members.iter().cloned());
                assert_eq!(added as usize, model.len() - before);
            }
            Operation::Remove(members) => {
                let removed = set.remove(tx, slices(members)).unwrap();
                members.iter().for_each(|member| drop(model.take(member)));
                assert_eq!(removed as usize, before - model.len());
            }
            Operation::Pop(count) => {
                let mut random = 7u64;
                let mut random = || {
                    random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                    random
                };
                let popped = set.pop(tx, *count, &mut random, |member| {
                    assert!(model.remove(member));
                    ControlFlow::Continue(())
                });
                assert_eq!(popped.unwrap(), *count.min(&(before as u64)));
                assert_eq!(model.len() as u64, before as u64 - count.min(&(before as u64)));
            }
            Operation::Replace(members) => {
                *model = members.iter().cloned().collect();
                let count = set.replace(tx, PACKING, slices(members)).unwrap();
                assert_eq!(count as usize, model.len());
            }
            Operation::Combine(members) => {
                let (other, theirs) = (Set::new(database, b"other"), members.iter().cloned());
                let theirs: Members = theirs.collect();
                other.replace(tx, PACKING, slices(members)).unwrap();
                let mut common = Members::new();
                intersect(tx, &[set, other], |member| {
                    common.insert(member.to_vec());
                    ControlFlow::Continue(())
                })
                .unwrap();
                assert_eq!(common, model.intersection(&theirs).cloned().collect());
                let mut rest = Members::new();
                subtract(tx, &[set, other], |member| {
                    rest.insert(member.to_vec());
                    ControlFlow::Continue(())
                })
                .unwrap();
                assert_eq!(rest, model.difference(&theirs).cloned().collect());
                let mut all = Members::new();
                unite(tx, &[set, other], |member| {
                    assert!(all.insert(member.to_vec()));
                    ControlFlow::Continue(())
                })
                .unwrap();
                assert_eq!(all, model.union(&theirs).cloned().collect());
                tx.delete(database, b"other").unwrap();
            }
        }
    }

    fn check(tx: &mut dyn ReadTransaction, database: DatabaseId, key: &[u8], model: &Members) {
        let set = Set::new(database, key);
        assert_eq!(set.len(tx).unwrap() as usize, model.len());
        let mut seen = Members::new();
        set.visit(tx, |member| {
            assert!(seen.insert(member.to_vec()));
            ControlFlow::Continue(())
        })
        .unwrap();
        assert_eq!(seen, *model);
        let names = model.iter().map(Vec::as_slice).chain([&b"nothing"[..]]);
        let mut found = Vec::new();
        set.look_up(tx, names, |is_there| found.push(is_there)).unwrap();
        assert_eq!(found.iter().filter(|is_there| **is_there).count(), model.len());
    }

    fn is_empty(model: &Members) -> bool {
        model.is_empty()
    }
}

super::model_tests!(Sets);
