//! Cases that random operations do not reach: clustered elements, lowered limits, range ends longer
//! than any member, records with wrong counts.

use std::{
    collections::HashSet,
    ops::{Bound, ControlFlow},
};

use super::{PACKING, engine::Engine};
use tokaido_collections::{Packing, Set, SortedSet, Span};
use tokaido_store::{DatabaseId, Direction, ReadError, WriteTransaction};

/// Runs `body` in a transaction that is then rolled back.
fn with_transaction(body: impl FnOnce(&mut dyn WriteTransaction, DatabaseId)) {
    let store = Engine::new().store();
    let database = store.database("main").unwrap();
    let mut writer = store.writer().unwrap();
    body(writer.begin().unwrap(), database);
    writer.rollback().unwrap();
}

fn numbers(count: u32) -> Vec<Vec<u8>> {
    (0..count).map(|n| n.to_string().into_bytes()).collect()
}

fn slices(members: &[Vec<u8>]) -> impl Iterator<Item = &[u8]> {
    members.iter().map(Vec::as_slice)
}

#[test]
fn a_sample_is_complete_where_draws_meet_the_same_elements_again_and_again() {
    with_transaction(|tx, database| {
        let members = numbers(100);
        for packing in [PACKING, Packing { elements_max: 200, text_len_max: 9 }] {
            let set = Set::new(database, b"set");
            set.replace(tx, packing, slices(&members)).unwrap();
            for random in [0, u64::MAX / 3, u64::MAX] {
                let mut sample = HashSet::new();
                set.sample(tx, 20, &mut || random, |member| {
                    assert!(sample.insert(member.to_vec()));
                    ControlFlow::Continue(())
                })
                .unwrap();
                assert_eq!(sample.len(), 20);
            }
            let popped = set.pop(tx, 20, &mut || 0, |_| ControlFlow::Continue(())).unwrap();
            assert_eq!((popped, set.len(tx).unwrap()), (20, 80));
        }
    });
}

#[test]
fn a_sample_of_fewer_elements_than_there_should_be_is_damage() {
    with_transaction(|tx, database| {
        let set = Set::new(database, b"set");
        set.add(tx, PACKING, slices(&numbers(20))).unwrap();
        let record = tx.get(database, b"set").unwrap().unwrap();
        let count = 1000u64.to_le_bytes();
        let record = record.with_value(&count);
        tx.put(database, b"set", record).unwrap();
        let mut random = 0u64;
        let mut random = || {
            random = random.wrapping_add(0x9e37_79b9_7f4a_7c15);
            random
        };
        let sample = set.sample(tx, 30, &mut random, |_| ControlFlow::Continue(()));
        assert!(matches!(sample, Err(ReadError::Damaged { .. })), "{sample:?}");
    });
}

#[test]
fn an_element_that_is_packed_already_is_added_under_lower_limits() {
    with_transaction(|tx, database| {
        let set = Set::new(database, b"set");
        set.add(tx, Packing::default(), [&b"a long member"[..]]).unwrap();
        assert_eq!(set.add(tx, PACKING, [&b"a long member"[..]]).unwrap(), 0);
        let elements = tx.statistics(database.elements()).unwrap().records;
        let is_large = tx.get(database, b"set").unwrap().unwrap().collection.is_some();
        assert_eq!(elements, u64::from(is_large), "elements that no record owns");
        assert_eq!(set.len(tx).unwrap(), 1);
    });
}

#[test]
fn ends_of_ranges_may_be_longer_than_members() {
    let long = |byte: u8| [&b"5"[..], &vec![byte; 5000]].concat();
    with_transaction(|tx, database| {
        let set = SortedSet::new(database, b"set");
        let members = numbers(10);
        set.update(tx, PACKING, slices(&members).map(|member| (member, 0.0)), |_, score| {
            Some(score)
        })
        .unwrap();
        let mut seen = |low: Bound<&[u8]>, high: Bound<&[u8]>| {
            let span = Span::of_members(0.0, low, high);
            let ranks = set.ranks(tx, &span).unwrap();
            for direction in [Direction::Forward, Direction::Backward] {
                let mut count = 0;
                set.visit(tx, &span, direction, |_, _| {
                    count += 1;
                    ControlFlow::Continue(())
                })
                .unwrap();
                assert_eq!(count, ranks.end - ranks.start, "{direction:?}");
            }
            ranks
        };
        let after_5 = long(b'x');
        assert_eq!(seen(Bound::Included(&after_5), Bound::Unbounded), 6..10);
        assert_eq!(seen(Bound::Excluded(&after_5), Bound::Unbounded), 6..10);
        assert_eq!(seen(Bound::Unbounded, Bound::Included(&after_5)), 0..6);
        assert_eq!(seen(Bound::Unbounded, Bound::Excluded(&after_5)), 0..6);
        assert_eq!(seen(Bound::Included(&after_5), Bound::Included(&long(b'y'))), 6..6);
    });
}

#[test]
fn many_ranks_are_removed_from_either_end_of_a_range() {
    let numbered = |n: u64| format!("{n:04}").into_bytes();
    for direction in [Direction::Forward, Direction::Backward] {
        for start in [0, 10] {
            with_transaction(|tx, database| {
                let set = SortedSet::new(database, b"set");
                let all: Vec<_> = (0..3000).map(numbered).collect();
                let members = slices(&all).map(|member| (member, 0.0));
                set.update(tx, PACKING, members, |_, score| Some(score)).unwrap();
                let (mut removed, mut left) = (Vec::new(), Vec::new());
                let count = set.remove_ranks(tx, start..2900, direction, |member, _| {
                    removed.push(member.to_vec());
                    ControlFlow::Continue(())
                });
                let mut expected: Vec<_> = (start..2900).map(numbered).collect();
                if direction == Direction::Backward {
                    expected.reverse();
                }
                assert_eq!((count.unwrap(), removed), (2900 - start, expected));
                set.visit(tx, &Span::all(), Direction::Forward, |member, _| {
                    left.push(member.to_vec());
                    ControlFlow::Continue(())
                })
                .unwrap();
                assert_eq!(left, (0..start).chain(2900..3000).map(numbered).collect::<Vec<_>>());
                assert_eq!(set.rank(tx, b"2950").unwrap(), Some((start + 50, 0.0)));
            });
        }
    }
}

#[test]
fn a_pop_of_all_takes_constant_time() {
    with_transaction(|tx, database| {
        let (set, sorted) = (Set::new(database, b"set"), SortedSet::new(database, b"sorted"));
        let all = numbers(1000);
        set.add(tx, PACKING, slices(&all)).unwrap();
        sorted
            .update(tx, PACKING, slices(&all).map(|member| (member, 0.0)), |_, score| Some(score))
            .unwrap();
        let elements = tx.statistics(database.elements()).unwrap().records;
        let popped = set.pop(tx, u64::MAX, &mut || 0, |_| ControlFlow::Continue(())).unwrap();
        let removed =
            sorted.remove_ranks(tx, 0..1000, Direction::Forward, |_, _| ControlFlow::Continue(()));
        assert_eq!((popped, removed.unwrap()), (1000, 1000));
        assert!(tx.get(database, b"set").unwrap().is_none());
        assert!(tx.get(database, b"sorted").unwrap().is_none());
        // They are removed later, in the background.
        assert_eq!(tx.statistics(database.elements()).unwrap().records, elements);
    });
}
