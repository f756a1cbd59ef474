//! Compares the order with that of a `BTreeSet`, however the keys are added.

use std::{collections::BTreeSet, ops::Bound};

use proptest::{collection::vec, prelude::*};

use crate::Direction;

use super::super::{Memtable, MemtableWriter, Node};

/// As many as Miri, or a normal run, can handle.
const BATCH_MAX: usize = if cfg!(miri) { 6 } else { 60 };
const BATCHES_MAX: usize = if cfg!(miri) { 4 } else { 20 };

type Key = (u32, Vec<u8>);

fn add(writer: &mut MemtableWriter, (tree, key): &Key) {
    writer.write(*tree, key, Some([b"", b"value"]), 1, |_| {});
}

fn key_of(node: &Node) -> Key {
    (node.tree(), node.key().to_vec())
}

/// Checks everything that the order can be asked for.
fn check(table: &Memtable, expected: &BTreeSet<Key>) {
    assert!(table.nodes().map(key_of).eq(expected.iter().cloned()));
    for (tree, key) in expected {
        let longer = [&key[..], b"\0"].concat();
        for key in [key, &longer, &key[..key.len() - 1].to_vec()] {
            let (tree, place) = (*tree, (*tree, key.clone()));
            let in_tree = |found: Option<&Key>| found.filter(|found| found.0 == tree).cloned();
            let at_or_after = in_tree(expected.range(place.clone()..).next());
            let found = table.seek(tree, Bound::Included(key), Direction::Forward);
            assert_eq!(found.map(key_of), at_or_after);
            let before = in_tree(expected.range(..place).next_back());
            let found = table.seek(tree, Bound::Excluded(key), Direction::Backward);
            assert_eq!(found.map(key_of), before);
        }
        let last = expected.range((*tree, vec![])..(*tree + 1, vec![])).next_back().cloned();
        let found = table.seek(*tree, Bound::Unbounded, Direction::Backward);
        assert_eq!(found.map(key_of), last);
    }
}

/// Keys of a few trees, some with a common prefix.
fn keys() -> impl Strategy<Value = Key> {
    let key = prop_oneof![
        vec(any::<u8>(), 1..3),
        (0..300u16).prop_map(|n| n.to_be_bytes().to_vec()),
        (0..300u16).prop_map(|n| format!("the same beginning {n}").into_bytes()),
        // Prefixes longer than the head of a page, and shorter ones, of all zeros.
        (0..300u16).prop_map(|n| [&[0; 40][..], &n.to_be_bytes()].concat()),
        (1..45usize).prop_map(|len| vec![0; len]),
    ];
    (2..5u32, key)
}

proptest! {
    #[test]
    fn nodes_come_in_order_whenever_it_is_asked_for(
        batches in vec(vec(keys(), 1..BATCH_MAX), 1..BATCHES_MAX)
    ) {
        let mut writer = Memtable::create(0);
        let mut expected = BTreeSet::new();
        for batch in batches {
            for key in batch {
                add(&mut writer, &key);
                expected.insert(key);
            }
            check(writer.table(), &expected);
        }
    }
}

/// Orders in which a search tree may become deep or sparse, each asked for after every key.
#[test]
fn pages_are_filled_in_whatever_order_keys_come() {
    /// For half-full pages; under Miri, pages are small.
    const ENTRY_BYTES_MAX: usize = if cfg!(miri) { 200 } else { 50 };
    const KEYS: u32 = if cfg!(miri) { 20 } else { 20_000 };
    let upwards = |n| n;
    let downwards = |n| KEYS - n;
    let inwards = |n| if n % 2 == 0 { n } else { 2 * KEYS - n };
    let outwards = |n| if n % 2 == 0 { KEYS + n } else { KEYS - n };
    // Fills a page, then always inserts right after it.
    let behind_a_page = |n| if n < 32 { n } else { 2 * KEYS - n };
    let scattered = |n| n * 7_919 % KEYS;
    let orders: [fn(u32) -> u32; 6] =
        [upwards, downwards, inwards, outwards, behind_a_page, scattered];
    for order in orders {
        let mut writer = Memtable::create(0);
        let bare = writer.table().list_bytes();
        let mut expected = BTreeSet::new();
        for n in 0..KEYS {
            let key = (2, [&b"the same beginning"[..], &order(n).to_be_bytes()].concat());
            add(&mut writer, &key);
            expected.insert(key);
            let last = writer.table().seek(2, Bound::Unbounded, Direction::Backward);
            assert!(last.is_some());
        }
        assert!(writer.table().nodes().map(key_of).eq(expected));
        let bytes = writer.table().list_bytes() - bare;
        assert!(bytes <= ENTRY_BYTES_MAX * KEYS as usize, "{bytes} bytes for {KEYS} keys");
    }
}

/// Elements of a few collections are added at random, a few at a time, like scores of sorted sets. So pages of all
/// levels get keys with other prefixes, and split, again and again.
#[test]
fn elements_of_collections_stay_in_order_however_pages_split() {
    const KEYS: u64 = if cfg!(miri) { 30 } else { 30_000 };
    const GROUP: u64 = 16;
    let mut writer = Memtable::create(0);
    let mut expected = BTreeSet::new();
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for n in 0..KEYS {
        let collection = random() % 3 * 0x0101;
        let kind = [random() as u8 % 4];
        let score = random() >> (random() % 50);
        let member = vec![b'm'; (random() % 40) as usize];
        let key = [&collection.to_be_bytes()[..], &kind, &score.to_be_bytes(), &member].concat();
        let key = (2 + (random() % 50 == 0) as u32, key);
        add(&mut writer, &key);
        expected.insert(key.clone());
        if n % GROUP == 0 {
            let found = writer.table().seek(key.0, Bound::Included(&key.1), Direction::Forward);
            assert_eq!(found.map(key_of), Some(key.clone()));
            let before = expected.range(..key.clone()).next_back().filter(|b| b.0 == key.0);
            let found = writer.table().seek(key.0, Bound::Excluded(&key.1), Direction::Backward);
            assert_eq!(found.map(key_of).as_ref(), before);
            // At a place that has a node, and at one after it that has none.
            let behind = [&key.1[..], &[0]].concat();
            for place in [&key.1, &behind] {
                let found = writer.table().seek(key.0, Bound::Included(place), Direction::Backward);
                let last = expected.range(..=(key.0, place.clone())).next_back();
                assert_eq!(found.map(key_of).as_ref(), last);
            }
        }
    }
    assert!(writer.table().nodes().map(key_of).eq(expected));
}
