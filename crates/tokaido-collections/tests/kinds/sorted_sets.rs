//! Sorted sets, compared with sorted lists of scores and members.

use std::ops::{Bound, ControlFlow};

use super::{Modelled, PACKING};
use proptest::prelude::*;
use tokaido_collections::{SortedSet, Span, count_requested};
use tokaido_store::{DatabaseId, Direction, ReadTransaction, WriteTransaction};

struct SortedSets;

/// In the order of scores and members.
type Members = Vec<(i8, Vec<u8>)>;

#[derive(Clone, Debug)]
enum Operation {
    Update(Vec<(Vec<u8>, i8)>),
    /// This many members, with scores derived from their numbers: enough to have rank counts.
    UpdateMany(u16),
    Remove(Vec<Vec<u8>>),
    RemoveRanks(u64, u64),
    /// Removes some of the first or the last members.
    Pop(bool, u64),
    Replace(Vec<(Vec<u8>, i8)>),
    /// Counts up to this many members, of any set.
    Count(usize),
}

/// Some are too long to be packed.
fn member() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        8 => (0u8..9).prop_map(|n| vec![n]),
        1 => Just(Vec::new()),
        1 => (0u8..3).prop_map(|n| vec![n; 7]),
        2 => (0u16..500).prop_map(|n| n.to_string().into_bytes()),
    ]
}

fn members() -> impl Strategy<Value = Vec<(Vec<u8>, i8)>> {
    prop::collection::vec((member(), -3i8..4), 0..6)
}

fn set_in(model: &mut Members, member: &[u8], score: i8) {
    model.retain(|(_, other)| other != member);
    let key = (score, member.to_vec());
    let at = model.partition_point(|other| *other < key);
    model.insert(at, key);
}

fn offered(members: &[(Vec<u8>, i8)]) -> impl Iterator<Item = (&[u8], f64)> {
    members.iter().map(|(member, score)| (&member[..], f64::from(*score)))
}

impl Modelled for SortedSets {
    type Value = Members;
    type Operation = Operation;

    fn operation() -> impl Strategy<Value = Operation> {
        prop_oneof![
            6 => members().prop_map(Operation::Update),
            1 => (100u16..500).prop_map(Operation::UpdateMany),
            3 => prop::collection::vec(member(), 0..5).prop_map(Operation::Remove),
            2 => (0u64..5, 0u64..9).prop_map(|(from, to)| Operation::RemoveRanks(from, to)),
            2 => (any::<bool>(), 1u64..9).prop_map(|(is_last, count)| Operation::Pop(is_last, count)),
            1 => members().prop_map(Operation::Replace),
            2 => (1usize..400).prop_map(Operation::Count),
        ]
    }

    fn apply(
        tx: &mut dyn WriteTransaction,
        database: DatabaseId,
        key: &[u8],
        model: &mut Members,
        operation: &Operation,
    ) {
        let set = SortedSet::new(database, key);
        match operation {
            Operation::Update(members) => {
                // Scores only grow.
                set.update(tx, PACKING, offered(members), |old, score| {
                    old.is_none_or(|old| old < score).then_some(score)
                })
                .unwrap();
                for (member, score) in members {
                    let old = model.iter().find(|(_, other)| other == member);
                    if old.is_none_or(|(old, _)| old < score) {
                        set_in(model, member, *score);
                    }
                }
            }
            Operation::UpdateMany(count) => {
                let members = (0..*count).map(|n| (n.to_string().into_bytes(), (n % 7) as i8 - 3));
                let members: Vec<_> = members.collect();
                set.update(tx, PACKING, offered(&members), |_, score| Some(score)).unwrap();
                members.iter().for_each(|(member, score)| set_in(model, member, *score));
            }
            Operation::Remove(members) => {
                let before = model.len();
                let removed = set.remove(tx, members.iter().map(Vec::as_slice)).unwrap();
                model.retain(|(_, member)| !members.contains(member));
                assert_eq!(removed as usize, before - model.len());
            }
            Operation::RemoveRanks(from, to) => {
                let mut removed = Vec::new();
                set.remove_ranks(tx, *from..*to, Direction::Forward, |member, score| {
                    removed.push((member.to_vec(), score));
                    ControlFlow::Continue(())
                })
                .unwrap();
                let (from, to) = (model.len().min(*from as usize), model.len().min(*to as usize));
                let expected: Vec<_> = model.drain(from.min(to)..to).collect();
                assert_eq!(removed.len(), expected.len());
                assert!(removed.iter().zip(&expected).all(|(removed, expected)| {
                    removed.0 == expected.1 && removed.1 == f64::from(expected.0)
                }));
            }
            Operation::Pop(is_last, count) => {
                let direction = if *is_last { Direction::Backward } else { Direction::Forward };
                let mut popped = Members::new();
                set.pop(tx, direction, *count, |member, score| {
                    popped.push((score as i8, member.to_vec()));
                    ControlFlow::Continue(())
                })
                .unwrap();
                let count = model.len().min(*count as usize);
                let mut expected: Members = match direction {
                    Direction::Forward => model.drain(..count).collect(),
                    Direction::Backward => model.split_off(model.len() - count),
                };
                if *is_last {
                    expected.reverse();
                }
                assert_eq!(popped, expected);
            }
            Operation::Count(limit) => {
                tx.request_upkeep(database, key);
                assert!(count_requested(tx, *limit).unwrap() <= *limit);
                while tx.take_upkeep_request().is_some() {}
            }
            Operation::Replace(members) => {
                model.clear();
                members.iter().for_each(|(member, score)| set_in(model, member, *score));
                let count = set.replace(tx, PACKING, offered(members)).unwrap();
                assert_eq!(count as usize, model.len());
            }
        }
    }

    fn check(tx: &mut dyn ReadTransaction, database: DatabaseId, key: &[u8], model: &Members) {
        let set = SortedSet::new(database, key);
        let len = model.len() as u64;
        assert_eq!(set.len(tx).unwrap(), len);
        for direction in [Direction::Forward, Direction::Backward] {
            let mut seen = Members::new();
            set.visit(tx, &Span::all(), direction, |member, score| {
                seen.push((score as i8, member.to_vec()));
                ControlFlow::Continue(())
            })
            .unwrap();
            if direction == Direction::Backward {
                seen.reverse();
            }
            assert_eq!(seen, *model);
        }
        for score in -3..4 {
            let (low, high) =
                (Bound::Included(f64::from(score)), Bound::Excluded(f64::from(score + 2)));
            let ranks = set.ranks(tx, &Span::of_scores(low, high)).unwrap();
            let before = |score| model.partition_point(|(other, _)| *other < score) as u64;
            assert_eq!(ranks, before(score)..before(score + 2));
            let count = set.count(tx, &Span::of_scores(low, high)).unwrap();
            assert_eq!(count, ranks.end - ranks.start);
        }
        for rank in (0..len).step_by(1 + len as usize / 7) {
            let (score, member) = &model[rank as usize];
            assert_eq!(set.rank(tx, member).unwrap(), Some((rank, f64::from(*score))));
            let mut found = Vec::new();
            set.visit_ranks(tx, rank..rank + 1, Direction::Backward, |member, _| {
                found = member.to_vec();
                ControlFlow::Continue(())
            })
            .unwrap();
            assert_eq!(found, *member);
        }
        assert_eq!(set.rank(tx, b"nobody").unwrap(), None);
    }

    fn is_empty(model: &Members) -> bool {
        model.is_empty()
    }
}

super::model_tests!(SortedSets);
