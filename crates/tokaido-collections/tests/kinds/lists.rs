//! Lists, compared with deques.

use std::{collections::VecDeque, ops::ControlFlow};

use super::{Modelled, PACKING};
use proptest::prelude::*;
use tokaido_collections::{End, List};
use tokaido_store::{DatabaseId, Direction, ReadTransaction, WriteTransaction};

struct Lists;

type Items = VecDeque<Vec<u8>>;

#[derive(Clone, Debug)]
enum Operation {
    Push(End, Vec<Vec<u8>>),
    Pop(End, u64),
    Set(u64, Vec<u8>),
    Insert(u64, Vec<u8>),
    /// All items that equal this one.
    Remove(Vec<u8>),
    Trim(u64, u64),
}

/// Some are too long to be packed.
fn item() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        8 => (0u8..5).prop_map(|n| vec![n]),
        1 => Just(Vec::new()),
        1 => (0u8..3).prop_map(|n| vec![n; 7]),
    ]
}

fn end() -> impl Strategy<Value = End> {
    prop_oneof![Just(End::Front), Just(End::Back)]
}

impl Modelled for Lists {
    type Value = Items;
    type Operation = Operation;

    fn operation() -> impl Strategy<Value = Operation> {
        prop_oneof![
            5 => (end(), prop::collection::vec(item(), 1..6))
                .prop_map(|(end, items)| Operation::Push(end, items)),
            2 => (end(), 0u64..5).prop_map(|(end, count)| Operation::Pop(end, count)),
            2 => (0u64..12, item()).prop_map(|(index, item)| Operation::Set(index, item)),
            3 => (0u64..12, item()).prop_map(|(index, item)| Operation::Insert(index, item)),
            2 => item().prop_map(Operation::Remove),
            1 => (0u64..4, 2u64..20).prop_map(|(start, end)| Operation::Trim(start, end)),
        ]
    }

    fn apply(
        tx: &mut dyn WriteTransaction,
        database: DatabaseId,
        key: &[u8],
        model: &mut Items,
        operation: &Operation,
    ) {
        let list = List::new(database, key);
        let len = model.len();
        match operation {
            Operation::Push(end, items) => {
                let borrowed = items.iter().map(Vec::as_slice);
                let new_len = list.push(tx, PACKING, *end, borrowed).unwrap();
                for item in items.iter().cloned() {
                    match end {
                        End::Front => model.push_front(item),
                        End::Back => model.push_back(item),
                    }
                }
                assert_eq!(new_len as usize, model.len());
            }
            Operation::Pop(end, count) => {
                let mut popped = Vec::new();
                let removed = list.pop(tx, *end, *count, |item| {
                    popped.push(item.to_vec());
                    ControlFlow::Continue(())
                });
                assert_eq!(removed.unwrap(), popped.len() as u64);
                let pop = |model: &mut Items| match end {
                    End::Front => model.pop_front(),
                    End::Back => model.pop_back(),
                };
                let expected: Vec<_> = (0..*count).map_while(|_| pop(model)).collect();
                assert_eq!(popped, expected);
            }
            Operation::Set(index, item) => {
                let is_there = list.set(tx, PACKING, *index, item).unwrap();
                assert_eq!(is_there, (*index as usize) < len);
                if is_there {
                    model[*index as usize] = item.clone();
                }
            }
            Operation::Insert(index, item) => {
                let new_len = list.insert(tx, PACKING, *index, item).unwrap();
                model.insert(len.min(*index as usize), item.clone());
                assert_eq!(new_len as usize, model.len());
            }
            Operation::Remove(item) => {
                let places = (0..len).filter(|&index| model[index] == *item);
                let indexes: Vec<u64> = places.map(|index| index as u64).collect();
                list.remove(tx, &indexes).unwrap();
                model.retain(|other| other != item);
            }
            Operation::Trim(start, end) => {
                list.trim(tx, *start..*end).unwrap();
                let (start, end) = (*start as usize, len.min(*end as usize));
                *model = if start < end {
                    model.range(start..end).cloned().collect()
                } else {
                    Items::new()
                };
            }
        }
    }

    fn check(tx: &mut dyn ReadTransaction, database: DatabaseId, key: &[u8], model: &Items) {
        let list = List::new(database, key);
        let len = list.len(tx).unwrap();
        assert_eq!(len as usize, model.len());
        for start in 0..=len.min(3) {
            for direction in [Direction::Forward, Direction::Backward] {
                let end = len.saturating_sub(start).max(start);
                let mut seen = Items::new();
                list.visit(tx, start..end, direction, |index, item| {
                    assert_eq!(model[index as usize], item);
                    match direction {
                        Direction::Forward => seen.push_back(item.to_vec()),
                        Direction::Backward => seen.push_front(item.to_vec()),
                    }
                    ControlFlow::Continue(())
                })
                .unwrap();
                let expected: Items = model.range(start as usize..end as usize).cloned().collect();
                assert_eq!(seen, expected);
            }
        }
    }

    fn is_empty(model: &Items) -> bool {
        model.is_empty()
    }
}

super::model_tests!(Lists);
