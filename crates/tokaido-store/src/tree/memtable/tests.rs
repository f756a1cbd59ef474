//! One writer and three readers, which must see whole transactions in point lookups and in order.
//!
//! With `cargo test`, the system schedules the threads. Miri adds every effect that weak memory
//! may have (`cargo xtask test miri`), and shuttle runs thousands of interleavings
//! (`cargo xtask test shuttle`).

use std::{collections::BTreeMap, ops::Bound};

#[cfg(feature = "shuttle")]
use shuttle::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};
#[cfg(not(feature = "shuttle"))]
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use crate::Direction;

use super::{Memtable, MemtableWriter, Node, Seen};

const TREE: u32 = 7;

/// As many as each way of running the threads can handle.
const TRANSACTIONS: u64 = match (cfg!(miri), cfg!(feature = "shuttle")) {
    (true, _) => 8,
    (_, true) => 5,
    _ => 200,
};
const KEYS: u64 = if cfg!(any(miri, feature = "shuttle")) { 5 } else { 64 };
const ROUNDS: usize = if cfg!(any(miri, feature = "shuttle")) { 2 } else { 50 };

/// The keys that the published transactions have left, with the transaction that wrote each.
type Model = BTreeMap<Vec<u8>, u64>;

enum Write {
    Put(Vec<u8>),
    Delete(Vec<u8>),
}

fn key(n: u64) -> Vec<u8> {
    // Some differ in their first eight bytes, some only after them.
    let n = n % KEYS;
    if n.is_multiple_of(2) { vec![n as u8] } else { format!("a longer key {n}").into_bytes() }
}

/// What transaction `number` does. One key is written twice.
fn writes(number: u64) -> [Write; 4] {
    [
        Write::Put(key(number)),
        Write::Put(key(number * 3 + 1)),
        Write::Delete(key(number * 5 + 2)),
        Write::Put(key(number)),
    ]
}

fn model(sequence: u64) -> Model {
    let mut model = Model::new();
    for number in 1..=sequence {
        for write in writes(number) {
            match write {
                Write::Put(key) => drop(model.insert(key, number)),
                Write::Delete(key) => drop(model.remove(&key)),
            }
        }
    }
    model
}

fn apply(writer: &mut MemtableWriter, number: u64) -> Vec<std::ptr::NonNull<Node>> {
    let mut written = Vec::new();
    for write in writes(number) {
        let value = number.to_le_bytes();
        let (key, parts) = match &write {
            Write::Put(key) => (key, Some([&value[..3], &value[3..]])),
            Write::Delete(key) => (key, None),
        };
        written.push(writer.write(TREE, key, parts, number, |_| {}).node);
    }
    written
}

fn write_all(writer: &mut MemtableWriter, published: &AtomicU64) {
    for number in 1..=TRANSACTIONS {
        if number.is_multiple_of(3) {
            // This one is rolled back, and the next one takes its number.
            for node in apply(writer, number) {
                // SAFETY: the writer has just returned the node.
                unsafe { writer.take_back(node, number) }
            }
        }
        apply(writer, number);
        published.store(number, Ordering::SeqCst);
    }
}

fn record(node: &Node, sequence: u64) -> Option<(Vec<u8>, u64)> {
    match node.see(sequence)? {
        Seen::Deleted => None,
        Seen::Record(stored) => {
            Some((node.key().to_vec(), u64::from_le_bytes(stored.try_into().unwrap())))
        }
    }
}

fn read_points(table: &Memtable, sequence: u64) {
    let expected = model(sequence);
    for n in 0..KEYS {
        let key = key(n);
        let found = table.find(TREE, &key).and_then(|node| record(node, sequence));
        assert_eq!(found.map(|(_, number)| number), expected.get(&key).copied());
    }
}

/// What a walk from `from` on finds.
fn walk(
    table: &Memtable,
    sequence: u64,
    from: Bound<&[u8]>,
    direction: Direction,
) -> Vec<(Vec<u8>, u64)> {
    let mut walk = table.walk(table.seek(TREE, from, direction), direction);
    let mut met = Vec::new();
    while let Some(node) = walk.node() {
        met.extend(record(node, sequence));
        walk.step();
    }
    met
}

fn read_in_order(table: &Memtable, sequence: u64) {
    let expected: Vec<_> = model(sequence).into_iter().collect();
    let forward = walk(table, sequence, Bound::Unbounded, Direction::Forward);
    assert_eq!(forward, expected);
    let mut backward = walk(table, sequence, Bound::Unbounded, Direction::Backward);
    backward.reverse();
    assert_eq!(backward, expected);
    // From the middle, where there may or may not be a key.
    let middle = key(1);
    let behind = walk(table, sequence, Bound::Excluded(&middle), Direction::Forward);
    let split = expected.partition_point(|(key, _)| *key <= middle);
    assert_eq!(behind, expected[split..]);
    let mut before = walk(table, sequence, Bound::Included(&middle), Direction::Backward);
    before.reverse();
    assert_eq!(before, expected[..split]);
}

fn one_writer_and_three_readers() {
    let mut writer = Memtable::create(0);
    let published = Arc::new(AtomicU64::new(0));
    // Two read in order, so that one may search while the other links.
    let readers: Vec<_> = [read_points, read_in_order, read_in_order]
        .map(|read| {
            let (table, published) =
                (std::sync::Arc::clone(writer.table()), Arc::clone(&published));
            thread::spawn(move || {
                for _ in 0..ROUNDS {
                    read(&table, published.load(Ordering::SeqCst));
                }
            })
        })
        .into();
    write_all(&mut writer, &published);
    for reader in readers {
        reader.join().unwrap();
    }
    read_points(writer.table(), TRANSACTIONS);
    read_in_order(writer.table(), TRANSACTIONS);
}

#[cfg(feature = "shuttle")]
#[test]
fn readers_see_whole_transactions() {
    const ORDERS: usize = 3000;
    shuttle::check_random(one_writer_and_three_readers, ORDERS);
    // Few context switches, each where it hurts most.
    shuttle::check_pct(one_writer_and_three_readers, ORDERS, 3);
}

#[cfg(not(feature = "shuttle"))]
#[test]
fn readers_see_whole_transactions() {
    for _ in 0..if cfg!(miri) { 1 } else { 50 } {
        one_writer_and_three_readers();
    }
}

/// Some records need chunks of their own, others do not.
#[cfg(not(feature = "shuttle"))]
#[test]
fn records_of_all_sizes_stay_where_they_are() {
    let mut writer = Memtable::create(0);
    let sizes = if cfg!(miri) { [0, 7, 900, 5000] } else { [0, 7, 200_000, 3_000_000] };
    for (number, size) in (1u64..).zip(sizes.into_iter().cycle().take(12)) {
        let value = vec![number as u8; size];
        writer.write(TREE, &key(number), Some([b"head", &value]), number, |_| {});
    }
    for (number, size) in (1u64..).zip(sizes.into_iter().cycle().take(12)) {
        let node = writer.table().find(TREE, &key(number)).unwrap();
        let expected = [b"head", &vec![number as u8; size][..]].concat();
        assert_eq!(node.see(number), Some(Seen::Record(&expected[..])));
    }
}
