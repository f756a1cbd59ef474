//! Hashes, compared with maps.

use std::{collections::BTreeMap, ops::ControlFlow};

use super::{Modelled, PACKING};
use proptest::prelude::*;
use tokaido_collections::Hash;
use tokaido_store::{DatabaseId, ReadTransaction, WriteTransaction};

struct Hashes;

type Fields = BTreeMap<Vec<u8>, Vec<u8>>;

#[derive(Clone, Debug)]
enum Operation {
    Set(Vec<(Vec<u8>, Vec<u8>)>),
    Remove(Vec<Vec<u8>>),
    Draw(u64),
}

/// Some are too long to be packed.
fn text() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        8 => (0u8..9).prop_map(|n| vec![n]),
        1 => Just(Vec::new()),
        1 => (0u8..3).prop_map(|n| vec![n; 7]),
    ]
}

impl Modelled for Hashes {
    type Value = Fields;
    type Operation = Operation;

    fn operation() -> impl Strategy<Value = Operation> {
        prop_oneof![
            4 => prop::collection::vec((text(), text()), 1..4).prop_map(Operation::Set),
            3 => prop::collection::vec(text(), 1..5).prop_map(Operation::Remove),
            1 => (0u64..9).prop_map(Operation::Draw),
        ]
    }

    fn apply(
        tx: &mut dyn WriteTransaction,
        database: DatabaseId,
        key: &[u8],
        model: &mut Fields,
        operation: &Operation,
    ) {
        let hash = Hash::new(database, key);
        let before = model.len();
        match operation {
            Operation::Set(fields) => {
                let borrowed = fields.iter().map(|(field, value)| (&field[..], &value[..]));
                let added = hash.set(tx, PACKING, borrowed).unwrap();
                model.extend(fields.iter().cloned());
                assert_eq!(added as usize, model.len() - before);
            }
            Operation::Remove(fields) => {
                let removed = hash.remove(tx, fields.iter().map(Vec::as_slice)).unwrap();
                fields.iter().for_each(|field| drop(model.remove(field)));
                assert_eq!(removed as usize, before - model.len());
            }
            Operation::Draw(count) => {
                let mut random = 0x9e37_79b9_7f4a_7c15u64;
                let mut random = || {
                    random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                    random
                };
                let mut sample = Fields::new();
                hash.sample(tx, *count, &mut random, |field, value| {
                    assert!(sample.insert(field.to_vec(), value.to_vec()).is_none());
                    ControlFlow::Continue(())
                })
                .unwrap();
                assert_eq!(sample.len(), before.min(*count as usize));
                assert!(sample.iter().all(|(field, value)| model.get(field) == Some(value)));
                let mut drawn = 0;
                hash.draw(tx, *count, &mut random, |field, value| {
                    drawn += 1;
                    assert_eq!(model.get(field).map(Vec::as_slice), Some(value));
                    ControlFlow::Continue(())
                })
                .unwrap();
                assert_eq!(drawn, if before == 0 { 0 } else { *count });
            }
        }
    }

    fn check(tx: &mut dyn ReadTransaction, database: DatabaseId, key: &[u8], model: &Fields) {
        let hash = Hash::new(database, key);
        assert_eq!(hash.len(tx).unwrap() as usize, model.len());
        let mut seen = Fields::new();
        hash.visit(tx, |field, value| {
            assert_eq!(seen.insert(field.to_vec(), value.to_vec()), None);
            ControlFlow::Continue(())
        })
        .unwrap();
        assert_eq!(seen, *model);
        let names = model.keys().map(Vec::as_slice).chain([&b"nothing"[..]]);
        let mut expected = model.values().map(Vec::as_slice).map(Some).chain([None]);
        hash.look_up(tx, names, |value| assert_eq!(Some(value), expected.next())).unwrap();
        let (mut paged, mut cursor) = (Fields::new(), 0);
        loop {
            cursor = hash
                .page(tx, cursor, 2, |field, value| {
                    paged.insert(field.to_vec(), value.to_vec());
                    ControlFlow::Continue(())
                })
                .unwrap();
            if cursor == 0 {
                break;
            }
        }
        assert_eq!(paged, *model);
    }

    fn is_empty(model: &Fields) -> bool {
        model.is_empty()
    }
}

super::model_tests!(Hashes);
